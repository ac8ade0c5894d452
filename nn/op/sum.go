package op

// ChannelSum sums x [N,C,…] over all dimensions but the second: the gradient of a bias.
type ChannelSum struct{}

// Kind is "channel_sum".
func (ChannelSum) Kind() string { return "channel_sum" }

func (ChannelSum) String() string { return "channel_sum" }

// Infer gives [C].
func (o ChannelSum) Infer(in ...Type) (Type, error) {
	dt, err := check(o, in, operand{"input", -1, float})
	if err == nil && len(in[0].Shape) < 2 {
		err = wrong(o, in, "the input must have 2 dimensions or more")
	}
	if err != nil {
		return Type{}, err
	}
	return T(dt, in[0].Shape[1]), nil
}

// Run sums in float64.
func (o ChannelSum) Run(out Tensor, in ...Tensor) error {
	return run(o, out, in, channelSum[float32], channelSum[float64])
}

func channelSum[T element](_ ChannelSum, out Tensor, in []Tensor) {
	x, y := vec[T](in[0]), vec[T](out)
	n, c, hw := planes(in[0].Shape)
	for k := range c {
		sum := 0.0
		for i := range n {
			for _, v := range x[(i*c+k)*hw:][:hw] {
				sum += float64(v)
			}
		}
		y[k] = T(sum)
	}
}

// planes takes a shape [N,C,…] apart: N, C and the size of the rest.
func planes(s Shape) (n, c, rest int) { return s[0], s[1], s[2:].Size() }
