package device

import (
	"testing"

	"onlinerna/nn/op"
)

// Formulas of the same operands share steps; those of other operands do not, so that a gradient repeats steps of
// the result's formula.
func TestDecomposeOnce(t *testing.T) {
	p := &Program{}
	value := func(x op.Type) int {
		p.Values = append(p.Values, Value{Type: x})
		return len(p.Values) - 1
	}
	q, k, v := value(op.T(op.Float32, 2, 3, 4)), value(op.T(op.Float32, 2, 5, 4)), value(op.T(op.Float32, 2, 5, 6))
	dy := value(op.T(op.Float32, 2, 3, 6))
	apply := func(o op.Op, in ...int) {
		y, err := o.Infer(p.types(in)...)
		if err != nil {
			t.Fatal(err)
		}
		p.Steps = append(p.Steps, Step{Op: o, In: in, Out: value(y)})
	}
	apply(op.Attention{Scale: .5}, q, k, v)
	for by := range 3 {
		apply(op.AttentionGrad{Scale: .5, By: by}, q, k, v, dy)
	}
	apply(op.AttentionGrad{Scale: .25}, q, k, v, dy)
	Decompose(nil, p)
	kinds := map[string]int{}
	made := map[int]bool{q: true, k: true, v: true, dy: true}
	for _, s := range p.Steps {
		kinds[s.Op.Kind()]++
		for _, x := range s.In {
			if !made[x] {
				t.Errorf("%v reads value %d before it is made", s.Op, x)
			}
		}
		made[s.Out] = true
	}
	// Two of the result; the scores, dy vᵀ and three of the gradients; one of the other attention's gradient.
	if kinds["matmul"] != 2+5+1 {
		t.Errorf("%d products, want 8", kinds["matmul"])
	}
	if scaled := kinds["map"]; scaled != 15 { // two scales of equal scores among them
		t.Errorf("%d maps, want 15", scaled)
	}
}
