package op

// patches writes a convolution as a matrix product. For one image and one group of channels, a block, row j of the
// matrix is the patch of input that output pixel j depends on, in the order of the weights.
type patches struct {
	images, groups int
	outputs        int     // output channels of a group
	pixels, depth  int     // rows and columns of the matrix: output pixels, weights of an output channel
	input          int     // elements of a block of the input
	taps           []int32 // where each element of the matrix lies in a block of the input, -1 in the padding
}

// newPatches makes the patches of the convolution of x with w that gives y.
func newPatches(o Conv2D, x, w, y Shape) *patches {
	o = o.norm()
	p := &patches{
		images: x[0], groups: o.Groups, outputs: w[0] / o.Groups,
		pixels: y[2] * y[3], depth: w[1] * w[2] * w[3],
		input: w[1] * x[2] * x[3],
	}
	p.taps = make([]int32, 0, p.pixels*p.depth)
	for i := range y[2] {
		for j := range y[3] {
			for c := range w[1] {
				for r := range w[2] {
					for s := range w[3] {
						row := i*o.Stride[0] - o.Pad[0] + r*o.Dilation[0]
						col := j*o.Stride[1] - o.Pad[1] + s*o.Dilation[1]
						at := -1
						if row >= 0 && row < x[2] && col >= 0 && col < x[3] {
							at = (c*x[2]+row)*x[3] + col
						}
						p.taps = append(p.taps, int32(at))
					}
				}
			}
		}
	}
	return p
}

// gather sets dst[i] to x[taps[i]], or 0 if the tap is negative.
func gather[T element](dst []float64, x []T, taps []int32) {
	for i, at := range taps {
		dst[i] = 0
		if at >= 0 {
			dst[i] = float64(x[at])
		}
	}
}

// dot is Σ a[i]·b[i], in four interleaved sums.
func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// axpy adds a·x to y.
func axpy(y []float64, a float64, x []float64) {
	n := min(len(x), len(y))
	x, y = x[:n], y[:n]
	for i, v := range x {
		y[i] += a * v
	}
}

// wide is x in float64.
func wide[T element](x []T) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// narrow rounds x into dst.
func narrow[T element](dst []T, x []float64) {
	for i, v := range x {
		dst[i] = T(v)
	}
}
