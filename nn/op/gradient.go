package op

import "fmt"

// Gradient computes, by the reference kernels, the gradients of a scalar with respect to the operands in of o, from
// the result out and the gradient dout with respect to it. Where there is no gradient the tensor has no data. Results
// may share their data with the arguments and with each other.
func Gradient(o Differentiable, in []Tensor, out, dout Tensor) ([]Tensor, error) {
	types := make([]Type, len(in))
	for i, t := range in {
		types[i] = t.Type()
	}
	want, err := o.Infer(types...)
	if err != nil {
		return nil, err
	}
	if !out.Type().Equal(want) || !dout.Type().Equal(want) {
		return nil, wrong(o, types, "the result and its gradient are %v, not %v and %v", want, out.Type(), dout.Type())
	}
	terms, err := o.Gradients(types...)
	if err != nil {
		return nil, err
	}
	e := evaluator{in: in, out: out, dout: dout, done: make(map[*Term]Tensor)}
	grads := make([]Tensor, len(terms))
	for i, t := range terms {
		if t == nil {
			continue
		}
		if grads[i], err = e.value(t); err != nil {
			return nil, fmt.Errorf("gradient of operand %d of %v: %w", i, o, err)
		}
	}
	return grads, nil
}

// evaluator computes terms, each once.
type evaluator struct {
	in        []Tensor
	out, dout Tensor
	done      map[*Term]Tensor
}

func (e *evaluator) value(t *Term) (Tensor, error) {
	if t.Op == nil {
		switch {
		case t.Leaf == Result:
			return e.out, nil
		case t.Leaf == ResultGrad:
			return e.dout, nil
		case t.Leaf >= 0 && int(t.Leaf) < len(e.in):
			return e.in[t.Leaf], nil
		}
		return Tensor{}, fmt.Errorf("the formula refers to operand %d of %d", t.Leaf, len(e.in))
	}
	if x, ok := e.done[t]; ok {
		return x, nil
	}
	args, types := make([]Tensor, len(t.Args)), make([]Type, len(t.Args))
	for i, a := range t.Args {
		var err error
		if args[i], err = e.value(a); err != nil {
			return Tensor{}, err
		}
		types[i] = args[i].Type()
	}
	want, err := t.Op.Infer(types...)
	if err != nil {
		return Tensor{}, err
	}
	x := New(want)
	err = t.Op.Run(x, args...)
	e.done[t] = x
	return x, err
}
