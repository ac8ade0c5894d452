package devicetest

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/op"
)

// stepwise runs p in all placements and compares each group's results with its definition on the device's own
// operands, so that errors do not add up.
func (s *suite) stepwise(p *program, groups [][]int) error {
	j, err := describe(s.dev, p, groups)
	if err != nil {
		return err
	}
	for _, pl := range j.placements() {
		if err := s.stepwiseIn(j, pl); err != nil {
			return fmt.Errorf("%s: %w", pl.name, err)
		}
	}
	return nil
}

func (s *suite) stepwiseIn(j *job, pl placement) error {
	b, err := j.bind(pl)
	if err != nil {
		return err
	}
	defer b.memory.Free()
	if err := b.fill(); err != nil {
		return err
	}
	if _, err := b.run(); err != nil {
		return err
	}
	made := make([]op.Tensor, len(j.values))
	for v, x := range j.p.given {
		made[v] = x
	}
	for _, g := range j.groups {
		exact := make([]op.Tensor, len(g.Values)) // in float64
		for _, v := range g.Inputs {
			x := made[g.values[v]]
			exact[v] = tensor(wide(x.Type()), floats(x))
		}
		tolerance := 0.
		for _, step := range g.Steps {
			in := make([]op.Tensor, len(step.In))
			for i, v := range step.In {
				in[i] = exact[v]
				if multiplies(step.Op) && i < 2 {
					in[i] = s.roundedTensor(in[i])
				}
			}
			out := op.New(wide(g.Values[step.Out].Type))
			if inPlace(step.Op) {
				out = tensor(in[0].Type(), floats(in[0]))
				in[0] = out
			}
			if err := wideOp(step.Op).Run(out, in...); err != nil {
				return fmt.Errorf("definition: %v: %w", step.Op, err)
			}
			exact[step.Out] = out
			tolerance = max(tolerance, s.exactness(step.Op, len(in)))
			change, err := s.byOperands(step.Op, out, in)
			if err != nil {
				return err
			}
			tolerance = max(tolerance, 2*change) // a device may round all operands, some or none
			if multiplies(step.Op) {
				tolerance = max(tolerance, s.unit) // a GPU need not round as Round does
			}
			if step.Op.Kind() == "add" { // a device may round operands to the type in which it stores the result
				tolerance = max(tolerance, s.unit*(largest(in[0])+largest(in[1]))/largest(out))
			}
			if step.Op.Kind() == "matmul" {
				tolerance = max(tolerance, 2*s.unit) // neither factor was given as rounded
			}
		}
		if len(g.Steps) > 1 {
			tolerance += 2 * s.unit // of values inside
		}
		for _, v := range g.Outputs {
			x := op.New(j.values[g.values[v]].Type)
			if err := s.dev.Download(x, b.regions[g.values[v]], j.values[g.values[v]].Layout); err != nil {
				return fmt.Errorf("download of %v: %w", x.Type(), err)
			}
			made[g.values[v]] = x
			name := j.values[g.values[v]].Name
			if d := differs(x, floats(exact[v]), tolerance, s.own(j, g.values[v]), j.p.rows[g.values[v]]); d != "" {
				return fmt.Errorf("%v: %s: %s", g.Group, name, d)
			}
		}
	}
	return nil
}

// multiplies reports whether the first two operands of o are the factors of sums of products.
func multiplies(o op.Op) bool {
	return slices.Contains([]string{"conv2d", "conv2d_grad_input", "conv2d_grad_weight", "linear", "linear_grad_input",
		"linear_grad_weight", "matmul"}, o.Kind())
}

// byOperands is the largest change of the result of o, to its largest element, if operands are rounded as the device stores
// them, 0 for ops that read them as they are.
func (s *suite) byOperands(o op.Op, out op.Tensor, in []op.Tensor) (float64, error) {
	if o.Kind() != "self_attention_grad_bias" {
		return 0, nil
	}
	rounded, other := make([]op.Tensor, len(in)), op.New(out.Type())
	for i, x := range in {
		rounded[i] = s.roundedTensor(x)
	}
	if err := wideOp(o).Run(other, rounded...); err != nil {
		return 0, fmt.Errorf("definition: %v: %w", o, err)
	}
	most, y := 0., floats(other)
	for i, v := range floats(out) {
		most = max(most, math.Abs(v-y[i]))
	}
	return most / largest(out), nil
}

// largest is the largest size of an element, at least the smallest normal number.
func largest(x op.Tensor) float64 {
	most := 0x1p-1022
	for _, a := range floats(x) {
		if !math.IsInf(a, 0) && !math.IsNaN(a) {
			most = max(most, math.Abs(a))
		}
	}
	return most
}
