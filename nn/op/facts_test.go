package op_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"onlinerna/nn/internal/golden"
	"onlinerna/nn/op"
)

// A result may lie where an operand that its op lists does.
func TestOverwrites(t *testing.T) {
	tried := 0
	for _, d := range []op.DType{op.Float32, op.Float64} {
		for _, e := range examples(d) {
			o, ok := e.op.(op.Overwriter)
			if !ok {
				continue
			}
			in := e.operands(rand.New(rand.NewPCG(1, 2)))
			want := golden.Floats(compute(t, o, in...))
			for _, i := range o.Overwrites(e.in...) {
				in := e.operands(rand.New(rand.NewPCG(1, 2)))
				if err := o.Run(in[i], in...); err != nil {
					t.Errorf("%v over operand %d: %v", o, i, err)
				} else if got := golden.Floats(in[i]); !slices.Equal(got, want) {
					t.Errorf("%v over operand %d is %v, elsewhere %v", o, i, got, want)
				}
				tried++
			}
		}
	}
	if tried < 10 {
		t.Errorf("only %d operands were overwritten", tried)
	}
}

// Weights are operands: trained parameters or statistics.
func TestWeights(t *testing.T) {
	want := map[string][]int{
		"conv2d": {1, 2}, "linear": {1, 2}, "conv2d_grad_input": {0}, "linear_grad_input": {0},
		"layer_norm": {1, 2}, "layer_norm_grad_input": {1}, "rms_norm": {1}, "group_norm": {1, 2}, "taps": {0},
		"batch_norm": {1, 2, 3}, "batch_norm_update": {0}, "batch_norm_grad_sums": {1}, "batch_norm_grad_input": {1, 2},
	}
	for _, e := range examples(op.Float32) {
		var got []int
		if o, ok := e.op.(op.Weighted); ok {
			got = o.Weights()
		}
		if !slices.Equal(got, want[e.op.Kind()]) {
			t.Errorf("weights of %v are the operands %v, want %v", e.op, got, want[e.op.Kind()])
		}
	}
}

// Operand elements that a sparing op does not need do not change its result.
func TestReads(t *testing.T) {
	for _, e := range examples(op.Float64) {
		o, ok := e.op.(op.Sparing)
		if !ok || !e.in[0].DType.Float() {
			continue
		}
		in := e.operands(rand.New(rand.NewPCG(1, 2)))
		before, needed := golden.Floats(compute(t, o, in...)), 0
		for i := range in[0].Data.([]float64) {
			in[0].Data.([]float64)[i] += 2
			if !slices.Equal(before, golden.Floats(compute(t, o, in...))) {
				needed++
			}
			in[0].Data.([]float64)[i] -= 2
		}
		if got := o.Reads(e.in...)[0]; got != needed {
			t.Errorf("%v reads %d elements, but needs %d", o, got, needed)
		}
	}
}
