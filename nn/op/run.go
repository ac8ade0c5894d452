package op

import "fmt"

// element is the constraint of kernels, which are written once for both floating-point types. They add up in
// float64 and round once.
type element interface{ float32 | float64 }

// vec is the data of a tensor whose elements are T.
func vec[T any](t Tensor) []T { return t.Data.([]T) }

// run checks the tensors of o.Run and calls the kernel for the element type of the result.
func run[O Op](o O, out Tensor, in []Tensor, f32, f64 func(o O, out Tensor, in []Tensor)) error {
	types := make([]Type, len(in))
	for i, t := range in {
		types[i] = t.Type()
	}
	want, err := o.Infer(types...)
	if err != nil {
		return err
	}
	if !out.Type().Equal(want) {
		return wrong(o, types, "the result is %v, not %v", want, out.Type())
	}
	if n := length(out); n != want.Shape.Size() {
		return wrong(o, types, "the result holds %d elements", n)
	}
	for i, t := range in {
		if n := length(t); n != t.Shape.Size() {
			return wrong(o, types, "operand %d holds %d elements", i, n)
		}
	}
	switch want.DType {
	case Float32:
		f32(o, out, in)
	case Float64:
		f64(o, out, in)
	default:
		return fmt.Errorf("%v: no kernel for results of type %v", o, want.DType)
	}
	return nil
}

// length is the number of elements that t holds.
func length(t Tensor) int {
	switch d := t.Data.(type) {
	case []float32:
		return len(d)
	case []float64:
		return len(d)
	case []int32:
		return len(d)
	case []uint8:
		return len(d)
	}
	return 0
}
