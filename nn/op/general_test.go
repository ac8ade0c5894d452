package op_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"onlinerna/nn/internal/golden"
	"onlinerna/nn/op"
)

// general are examples of the ops of any rank, and of ops composed of them.
func general(d op.DType) []example {
	f := func(shape ...int) op.Type { return op.T(d, shape...) }
	return []example{
		{op.Reduce{By: op.Mean, Axes: []int{0, 2}}, []op.Type{f(2, 3, 4, 5)}},
		{op.Reduce{By: op.Max, Axes: []int{1, 3}}, []op.Type{f(2, 3, 4, 5)}},
		{op.Reduce{By: op.Sum, Axes: []int{1}}, []op.Type{f(6, 5)}},
		{op.MatMul{}, []op.Type{f(3, 4), f(4, 5)}},
		{op.MatMul{TransA: true}, []op.Type{f(2, 4, 3), f(2, 4, 5)}},
		{op.MatMul{TransB: true}, []op.Type{f(2, 3, 4), f(2, 5, 4)}},
		{op.MatMul{TransA: true, TransB: true}, []op.Type{f(2, 3, 4, 3), f(2, 3, 5, 4)}},
		{op.Permute{Axes: []int{2, 0, 3, 1}}, []op.Type{f(2, 3, 4, 5)}},
		{op.Slice{From: []int{1, 2, 3}, To: []int{2, 4, 6}}, []op.Type{f(3, 5, 7)}},
		{op.Pad{Before: []int{1, 2, 3}, After: []int{4, 5, 6}}, []op.Type{f(2, 3, 4)}},
		{op.Concat{Axis: 1}, []op.Type{f(2, 3, 4), f(2, 5, 4), f(2, 1, 4)}},
		{op.Expand{Shape: op.Shape{3, 2, 4, 5}}, []op.Type{f(1, 2, 1, 5)}},
		{op.Gather{Axis: 1}, []op.Type{f(2, 3, 4), op.T(op.Int32, 6)}},
		{op.GatherGrad{Axis: 1, Extent: 4}, []op.Type{f(2, 6, 3), op.T(op.Int32, 6)}},
		{op.LayerNorm{Eps: 1e-3}, []op.Type{f(2, 3, 5), f(5), f(5)}},
		{op.LayerNormGradInput{Eps: 1e-3}, []op.Type{f(2, 3, 5), f(5), f(2, 3, 5)}},
		{op.LayerNormGradScale{Eps: 1e-3}, []op.Type{f(2, 3, 5), f(2, 3, 5)}},
		{op.RMSNorm{Eps: 1e-3}, []op.Type{f(2, 3, 5), f(5)}},
		{op.GroupNorm{Groups: 3, Eps: 1e-3}, []op.Type{f(2, 6, 3, 2), f(6), f(6)}},
		{op.Softmax{}, []op.Type{f(2, 3, 5)}},
		{op.SoftmaxGrad{}, []op.Type{f(2, 3, 5), f(2, 3, 5)}},
		{op.Attention{Scale: .4}, []op.Type{f(4, 3, 5), f(4, 6, 5), f(4, 6, 2)}},
		{op.Attention{Scale: .7}, []op.Type{f(4, 3, 5), f(4, 6, 5), f(4, 6, 2), f(2, 3, 6)}},
		{op.AttentionGrad{Scale: .4, By: 1}, []op.Type{f(4, 3, 5), f(4, 6, 5), f(4, 6, 2), f(4, 3, 2)}},
		{op.AttentionGrad{Scale: .7}, []op.Type{f(4, 3, 5), f(4, 6, 5), f(4, 6, 2), f(2, 3, 6), f(4, 3, 2)}},
		{op.AttentionGrad{Scale: .7, By: 2}, []op.Type{f(4, 3, 5), f(4, 6, 5), f(4, 6, 2), f(2, 3, 6), f(4, 3, 2)}},
		{op.AttentionGrad{Scale: .7, By: 3}, []op.Type{f(4, 3, 5), f(4, 6, 5), f(4, 6, 2), f(2, 3, 6), f(4, 3, 2)}},
		{op.SelfAttention{Tokens: 4, Heads: 2, Scale: .6}, []op.Type{f(12, 30)}},
		{op.SelfAttention{Tokens: 4, Heads: 2, Scale: .6}, []op.Type{f(12, 30), f(3, 4, 4)}},
		{op.SelfAttentionGrad{Tokens: 4, Heads: 2, Scale: .6}, []op.Type{f(12, 30), f(12, 10)}},
		{op.SelfAttentionGrad{Tokens: 4, Heads: 2, Scale: .6}, []op.Type{f(12, 30), f(3, 4, 4), f(12, 10)}},
		{op.SelfAttentionGradBias{Tokens: 4, Heads: 2, Scale: .6}, []op.Type{f(12, 30), f(3, 4, 4), f(12, 10)}},
		{op.Roll{By: []int{0, 2, -1}}, []op.Type{f(2, 5, 3)}},
		{op.Roll{By: []int{0, 0}}, []op.Type{f(2, 5)}},
		{op.Tokens{}, []op.Type{f(2, 3, 4, 5)}},
		{op.Planes{Height: 4, Width: 5}, []op.Type{f(2, 20, 3)}},
		{op.Taps{}, []op.Type{f(4, 3, 2, 5)}},
		{op.Filters{Height: 2, Width: 5}, []op.Type{f(1, 4, 10, 3)}},
	}
}

// PyTorch's results and gradients, in float64.
func TestGeneralAgainstPyTorch(t *testing.T) {
	b, err := os.ReadFile("testdata/general.json")
	if err != nil {
		t.Fatal(err)
	}
	type array struct {
		Shape op.Shape
		Data  []float64
	}
	tensor := func(a array) op.Tensor { return op.Tensor{Shape: a.Shape, Data: a.Data} }
	var cases []struct {
		Op         string
		Attributes json.RawMessage
		X, Grads   []array
		Index      []int32
		Y, DY      array
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	made := map[string]func(a json.RawMessage) (op.Differentiable, error){
		"matmul": attributes[op.MatMul], "permute": attributes[op.Permute], "slice": attributes[op.Slice],
		"pad": attributes[op.Pad], "concat": attributes[op.Concat], "expand": attributes[op.Expand],
		"gather": attributes[op.Gather], "reduce": attributes[op.Reduce], "layer_norm": attributes[op.LayerNorm],
		"rms_norm": attributes[op.RMSNorm], "group_norm": attributes[op.GroupNorm], "softmax": attributes[op.Softmax],
		"attention": attributes[op.Attention], "self_attention": attributes[op.SelfAttention], "focal_loss": attributes[op.FocalLoss], "asymmetric_loss": attributes[op.AsymmetricLoss],
		"distill_loss": attributes[op.DistillLoss], "regression_loss": attributes[op.RegressionLoss],
		"tokens": attributes[op.Tokens],
		"planes": attributes[op.Planes], "taps": attributes[op.Taps],
		"filters": attributes[op.Filters], "roll": attributes[op.Roll],
	}
	seen := map[string]bool{}
	for _, c := range cases {
		o, err := made[c.Op](c.Attributes)
		if err != nil {
			t.Fatal(err)
		}
		seen[c.Op] = true
		var in []op.Tensor
		for _, x := range c.X {
			in = append(in, tensor(x))
		}
		if c.Index != nil {
			in = append(in, op.Tensor{Shape: op.Shape{len(c.Index)}, Data: c.Index})
		}
		t.Run(o.String(), func(t *testing.T) {
			y := compute(t, o, in...)
			near(t, "y", y, tensor(c.Y), 1e-12)
			for i, g := range gradients(t, o, in, y, tensor(c.DY))[:len(c.Grads)] {
				near(t, "gradient", g, tensor(c.Grads[i]), 1e-12)
			}
		})
	}
	if len(seen) != len(made) {
		t.Errorf("cases of %d ops, want %d", len(seen), len(made))
	}
}

func attributes[O op.Differentiable](a json.RawMessage) (op.Differentiable, error) {
	var o O
	return o, json.Unmarshal(a, &o)
}

// The formula of a composite op gives its definition's results and types.
func TestDecompositions(t *testing.T) {
	tried := 0
	for i, e := range examples(op.Float64) {
		c, ok := e.op.(op.Composite)
		if !ok {
			continue
		}
		tried++
		in := e.operands(rand.New(rand.NewPCG(5, uint64(i))))
		want := compute(t, c, in...)
		term := c.Decompose(e.in...)
		if got := term.Type(e.in...); !got.Equal(want.Type()) {
			t.Errorf("%v: the formula makes %v, the op %v", c, got, want.Type())
		}
		near(t, c.String(), evaluate(t, term, in), want, 1e-12)
	}
	if tried < 10 {
		t.Errorf("only %d composite ops", tried)
	}
}

// evaluate computes a formula of operands.
func evaluate(t *testing.T, term *op.Term, in []op.Tensor) op.Tensor {
	if term.Op == nil {
		return in[term.Leaf]
	}
	args := make([]op.Tensor, len(term.Args))
	for i, a := range term.Args {
		args[i] = evaluate(t, a, in)
	}
	return compute(t, term.Op, args...)
}

// Indices that x does not have pick zeros, and their gradient goes nowhere.
func TestGatherOutside(t *testing.T) {
	x := op.New(op.T(op.Float64, 3, 2))
	set(x, 1, 2, 3, 4, 5, 6)
	index := op.Tensor{Shape: op.Shape{4}, Data: []int32{2, -1, 3, 0}}
	y := compute(t, op.Gather{}, x, index)
	if got := golden.Floats(y); !slices.Equal(got, []float64{5, 6, 0, 0, 0, 0, 1, 2}) {
		t.Errorf("picked %v", got)
	}
	g := compute(t, op.GatherGrad{Extent: 3}, y, index)
	if got := golden.Floats(g); !slices.Equal(got, []float64{1, 2, 0, 0, 5, 6}) {
		t.Errorf("gradient %v", got)
	}
}

// Elements that share the maximum share its gradient, as torch.amax has it.
func TestSharedMaximum(t *testing.T) {
	x := op.New(op.T(op.Float64, 1, 4))
	set(x, 3, 1, 3, 2)
	o := op.Reduce{By: op.Max, Axes: []int{1}}
	y, dy := compute(t, o, x), op.New(op.T(op.Float64, 1, 1))
	set(dy, 5)
	if got := golden.Floats(gradients(t, o, []op.Tensor{x}, y, dy)[0]); !slices.Equal(got, []float64{2.5, 0, 2.5, 0}) {
		t.Errorf("gradient %v", got)
	}
}
