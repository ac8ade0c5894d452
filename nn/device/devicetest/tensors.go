package devicetest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"onlinerna/nn/op"
)

// newRand is a source that gives the same numbers in every run and place for the same name.
func newRand(name string) *rand.Rand {
	seed := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(name) {
		seed = (seed ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, 0))
}

// A fill sets the elements of an operand.
type fill func(r *rand.Rand, x []float64)

// uniform fills with numbers from lo to hi.
func uniform(lo, hi float64) fill {
	return func(r *rand.Rand, x []float64) {
		for i := range x {
			x[i] = lo + (hi-lo)*r.Float64()
		}
	}
}

// integers fills with integers from lo to hi, both included.
func integers(lo, hi int) fill {
	return func(r *rand.Rand, x []float64) {
		for i := range x {
			x[i] = float64(lo + r.IntN(hi-lo+1))
		}
	}
}

// constant fills with a.
func constant(a float64) fill { return uniform(a, a) }

// listed fills with the given numbers, over and over.
func listed(a ...float64) fill {
	return func(_ *rand.Rand, x []float64) {
		for i := range x {
			x[i] = a[i%len(a)]
		}
	}
}

// distinct fills with different numbers of [-1, 1] that keep their distance from each other and from 0,
// as finite differences need where a function has kinks.
func distinct(r *rand.Rand, x []float64) {
	for i, j := range r.Perm(len(x)) {
		x[i] = (float64(j)+0.5)*2/float64(len(x)) - 1
	}
}

// tensor makes a tensor of type t with the given elements.
func tensor(t op.Type, x []float64) op.Tensor {
	out := op.New(t)
	for i, a := range x {
		switch d := out.Data.(type) {
		case []float32:
			d[i] = float32(a)
		case []float64:
			d[i] = a
		case []int32:
			d[i] = int32(a)
		case []uint8:
			d[i] = uint8(a)
		}
	}
	return out
}

// floats is the content of x in float64.
func floats(x op.Tensor) []float64 {
	out := make([]float64, x.Shape.Size())
	for i := range out {
		switch d := x.Data.(type) {
		case []float32:
			out[i] = float64(d[i])
		case []float64:
			out[i] = d[i]
		case []int32:
			out[i] = float64(d[i])
		case []uint8:
			out[i] = float64(d[i])
		}
	}
	return out
}

// wide is t in float64 if it is of a floating-point type.
func wide(t op.Type) op.Type {
	if t.DType.Float() {
		t.DType = op.Float64
	}
	return t
}

// wide is t in float64 if its type is floating-point.
func wideOp(o op.Op) op.Op {
	if im, ok := o.(op.Images); ok {
		im.DType = op.Float64
		return im
	}
	return o
}

// index writes element i of a tensor of shape s as [1 0 2].
func index(s op.Shape, i int) string {
	at := make([]int, len(s))
	for d := len(s) - 1; d >= 0; d-- {
		at[d], i = i%s[d], i/s[d]
	}
	return fmt.Sprint(at)
}

// differs reports the first element of got that differs from want by more than tolerance times the largest
// element of its row, where the first dimension is cut into rows, plus own times its size. "" means none.
func differs(got op.Tensor, want []float64, tolerance, own float64, rows int) string {
	x := floats(got)
	n := len(x) / max(rows, 1)
	for lo := 0; n > 0 && lo < len(x); lo += n {
		var largest float64
		for _, a := range want[lo : lo+n] {
			if !math.IsInf(a, 0) && !math.IsNaN(a) {
				largest = max(largest, math.Abs(a))
			}
		}
		for i := lo; i < lo+n; i++ {
			a, b := x[i], want[i]
			if math.IsNaN(a) && math.IsNaN(b) || a == b || math.Abs(a-b) <= tolerance*largest+own*math.Abs(b) {
				continue
			}
			hint := ""
			if math.IsNaN(a) {
				hint = ": was it written, or computed from unwritten elements?"
			}
			return fmt.Sprintf("element %s is %v, want %v within %.2g%s", index(got.Shape, i), a, b,
				tolerance*largest+own*math.Abs(b), hint)
		}
	}
	return ""
}

// unequal reports the first element in which a and b differ in their bits, a NaN being as good as another.
// "" means none.
func unequal(a, b op.Tensor) string {
	x, y := floats(a), floats(b)
	for i := range x {
		if math.Float64bits(x[i]) != math.Float64bits(y[i]) && !(math.IsNaN(x[i]) && math.IsNaN(y[i])) {
			return fmt.Sprintf("element %s is %v, was %v", index(a.Shape, i), y[i], x[i])
		}
	}
	return ""
}
