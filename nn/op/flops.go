package op

// FLOPs counts the floating-point multiplications and additions of the products in o, a convolution, a linear
// layer or the gradient of one, for operands of the given types: two for each weight that meets an
// input, zeros of the padding included,
//
//	2 · N·O·H'·W' · C/G·kh·kw      2 · N·O·I
//
// for the forward pass and as much for either gradient. Other ops count 0: what bounds them is the memory
// they read and write. Operands that o does not take are an error, Infer's.
func FLOPs(o Op, in ...Type) (int64, error) {
	out, err := o.Infer(in...)
	if err != nil {
		return 0, err
	}
	// y is the layer's result or its gradient, w its weight.
	var y, w Shape
	switch o.(type) {
	case Conv2D, Linear:
		y, w = out.Shape, in[1].Shape
	case Conv2DGradInput, LinearGradInput:
		y, w = in[1].Shape, in[0].Shape
	case Conv2DGradWeight, LinearGradWeight:
		y, w = in[1].Shape, out.Shape
	default:
		return 0, nil
	}
	return 2 * int64(y.Size()) * int64(w[1:].Size()), nil
}
