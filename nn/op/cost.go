package op

// FLOPs counts the floating-point multiplications and additions of the products in o, for operands of the
// given types: two for each weight that meets an input, zeros of the padding included,
//
//	2 · N·O·H'·W' · C/G·kh·kw      2 · N·O·I
//
// for the forward pass and as much for either gradient. Other ops count 0, since memory traffic bounds their time.
// Invalid operands give the error of Infer.
func FLOPs(o Op, in ...Type) (int64, error) {
	if _, err := o.Infer(in...); err != nil {
		return 0, err
	}
	if p, ok := o.(Product); ok {
		return p.FLOPs(in...), nil
	}
	return 0, nil
}

// products counts those of a layer: each element of y, its result or the gradient with respect to it, is a sum over a
// row of the weight w.
func products(y, w Shape) int64 { return 2 * int64(y.Size()) * int64(w[1:].Size()) }

// Reads counts the elements that o needs of each operand: all of them unless it is a View or Sparing. Invalid
// operands give the error of Infer.
func Reads(o Op, in ...Type) ([]int, error) {
	y, err := o.Infer(in...)
	if err != nil {
		return nil, err
	}
	switch o := o.(type) {
	case Sparing:
		return o.Reads(in...), nil
	case View:
		return []int{y.Shape.Size()}, nil
	}
	n := make([]int, len(in))
	for i, t := range in {
		n[i] = t.Shape.Size()
	}
	return n, nil
}

// Bytes counts the bytes that o moves with cold caches: the needed elements of its operands, and its result.
func Bytes(o Op, in ...Type) (int64, error) {
	reads, err := Reads(o, in...)
	if err != nil {
		return 0, err
	}
	y, err := o.Infer(in...)
	bytes := int64(y.Bytes())
	for i, n := range reads {
		bytes += int64(n) * int64(in[i].DType.Size())
	}
	return bytes, err
}
