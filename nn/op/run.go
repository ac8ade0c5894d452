package op

import "fmt"

// Float is the constraint of kernels that are written once for both floating-point types.
type Float interface{ ~float32 | ~float64 }

// vec is the data of a tensor of type T.
func vec[T float32 | float64](t Tensor) []T { return t.Data.([]T) }

// run checks the operands of Run and calls the kernel of out's type.
func run(o Op, out Tensor, in []Tensor, f32, f64 func()) error {
	types := make([]Type, len(in))
	for i, t := range in {
		types[i] = t.Type()
	}
	want, err := o.Infer(types...)
	if err != nil {
		return err
	}
	if !out.Type().Equal(want) {
		return fmt.Errorf("%v: result is %v, want %v", o, out.Type(), want)
	}
	for i, t := range append([]Tensor{out}, in...) {
		if n := length(t); n != t.Shape.Size() {
			return fmt.Errorf("%v: tensor %d of shape %v holds %d elements", o, i-1, t.Shape, n)
		}
	}
	if want.DType == Float64 {
		f64()
	} else {
		f32()
	}
	return nil
}

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
