package op_test

import (
	"testing"

	"onlinerna/nn/op"
)

// gradients evaluates o's gradient formulas by the reference kernels, shared terms once. Tensors of missing
// gradients have no data.
func gradients(t *testing.T, o op.Differentiable, in []op.Tensor, y, dy op.Tensor) []op.Tensor {
	t.Helper()
	types := make([]op.Type, len(in))
	for i, x := range in {
		types[i] = x.Type()
	}
	terms, err := o.Gradients(types...)
	if err != nil {
		t.Fatal(err)
	}
	if len(terms) != len(in) {
		t.Fatalf("%v: %d gradients for %d operands", o, len(terms), len(in))
	}
	known := map[*op.Term]op.Tensor{}
	var value func(term *op.Term) op.Tensor
	value = func(term *op.Term) op.Tensor {
		switch {
		case term.Op != nil:
		case term.Leaf == op.Result:
			return y
		case term.Leaf == op.ResultGrad:
			return dy
		default:
			return in[term.Leaf]
		}
		if x, ok := known[term]; ok {
			return x
		}
		args := make([]op.Tensor, len(term.Args))
		for i, a := range term.Args {
			args[i] = value(a)
		}
		known[term] = compute(t, term.Op, args...)
		return known[term]
	}
	grads := make([]op.Tensor, len(terms))
	for i, term := range terms {
		if term != nil {
			grads[i] = value(term)
		}
	}
	return grads
}

// The sums of batch normalisation's backward pass serve all three gradients.
func TestBatchNormSharesSums(t *testing.T) {
	f := func(shape ...int) op.Type { return op.T(op.Float32, shape...) }
	terms, err := op.BatchNorm{Eps: 1e-5}.Gradients(f(2, 3, 4, 4), f(2, 3), f(3), f(3))
	if err != nil {
		t.Fatal(err)
	}
	distinct := map[*op.Term]string{}
	var visit func(term *op.Term)
	visit = func(term *op.Term) {
		if term != nil && term.Op != nil {
			distinct[term] = term.Op.Kind()
			for _, a := range term.Args {
				visit(a)
			}
		}
	}
	for _, term := range terms {
		visit(term)
	}
	count := map[string]int{}
	for _, kind := range distinct {
		count[kind]++
	}
	if count["batch_norm_grad_sums"] != 1 || count["batch_norm_grad_input"] != 1 || count["row"] != 2 ||
		len(distinct) != 4 {
		t.Errorf("the gradients are made of %v", count)
	}
}
