package devicetest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// opCase is one op on operands of given shapes.
type opCase struct {
	op     op.Op
	in     []operand
	weight bool // the result is the gradient of a weight, and lies as the weight does
	alike  bool // to cases that are not, but for arithmetic
}

// operand is a value from outside.
type operand struct {
	role  device.Role
	dtype op.DType // 0 means the device's
	shape op.Shape
	fill  fill
}

// data is an activation.
func data(f fill, shape ...int) operand { return operand{shape: shape, fill: f} }

// weight is a parameter or a state.
func weight(f fill, shape ...int) operand {
	return operand{role: device.Weight, shape: shape, fill: f}
}

// whole is an operand of another element type than the device's.
func whole(d op.DType, f fill, shape ...int) operand {
	return operand{dtype: d, shape: shape, fill: f}
}

// program is the program of the case alone, for floats of type d.
func (c opCase) program(d op.DType) *program {
	p := newProgram()
	seed := c.op.String()
	for _, o := range c.in {
		seed += o.shape.String()
	}
	r := newRand(seed)
	in := make([]int, len(c.in))
	for i, o := range c.in {
		t := op.Type{DType: cmp.Or(o.dtype, d), Shape: o.shape}
		x := make([]float64, o.shape.Size())
		o.fill(r, x)
		in[i] = p.input(strconv.Itoa(i), o.role, tensor(t, x))
	}
	y := p.apply(c.op, in...)
	p.Values[y].Name = "result"
	if c.weight {
		p.roles[y] = device.Weight
	}
	p.keep(y)
	return p
}

// opCases lists the cases of all ops for floats of type d.
func opCases(d op.DType) []opCase {
	return slices.Concat(imagesCases(d), convCases(), normCases(), elementCases(), mapCases(), sumCases(), poolCases(),
		viewCases(), linearCases(), lossCases(), moveCases(), reduceCases(), matMulCases(), gatherCases(), rowCases(),
		attentionCases())
}

// exactness is the tolerance of o for the given number of operands, relative to the largest element.
func (s *suite) exactness(o op.Op, operands int) float64 {
	switch o.Kind() {
	case "batch_norm_stats", "batch_norm", "batch_norm_update", "batch_norm_grad_sums", "batch_norm_grad_input":
		return 5 * s.tolerance
	case "layer_norm", "layer_norm_grad_input", "layer_norm_grad_scale", "rms_norm", "group_norm", "softmax",
		"softmax_grad", "self_attention_grad_bias":
		return 5 * s.tolerance
	case "attention", "attention_grad", "self_attention", "self_attention_grad":
		// weights inside may have the device's width
		return 5*s.tolerance + 2*s.unit
	case "conv2d":
		if operands == 3 {
			return s.tolerance + s.unit // the bias may be added to a rounded sum
		}
	}
	return s.tolerance
}

// own is the error of a value relative to each of its elements: that of its storage, or of the device's for
// the gradient of a convolution's weights, which may come from there.
func (s *suite) own(j *job, v int) float64 {
	x := j.values[v]
	made := slices.IndexFunc(j.p.Steps, func(t device.Step) bool { return t.Out == v })
	if x.Bytes < x.Type.Bytes() || made >= 0 && j.p.Steps[made].Op.Kind() == "conv2d_grad_weight" {
		return s.unit
	}
	return 0
}

// roundedProgram rounds the inputs of p as the device does.
func (s *suite) roundedProgram(p *program) *program {
	if s.round == nil {
		return p
	}
	for v, x := range p.given {
		if x.DType().Float() {
			p.given[v] = s.roundedTensor(x)
		}
	}
	return p
}

// roundedTensor is x rounded as the device does.
func (s *suite) roundedTensor(x op.Tensor) op.Tensor {
	f := floats(x)
	for i := range f {
		f[i] = s.round(f[i])
	}
	return tensor(x.Type(), f)
}

// kinds are the kinds of op of the cases, each once.
func kinds(cases []opCase) []string {
	var all []string
	for _, c := range cases {
		if !slices.Contains(all, c.op.Kind()) {
			all = append(all, c.op.Kind())
		}
	}
	return all
}

// ops runs every case against the definition of its op.
func (s *suite) ops(t tester) {
	cases := opCases(s.dtype)
	if s.round != nil { // other storage, the same arithmetic
		cases = slices.DeleteFunc(cases, func(c opCase) bool { return c.alike })
	}
	for _, kind := range kinds(cases) {
		t.run(kind, func(t tester) {
			failures, left := 0, 0
			for _, c := range cases {
				if c.op.Kind() != kind {
					continue
				}
				p := s.roundedProgram(c.program(s.dtype))
				p.decompose(s.dev)
				var err error
				if s.round != nil && p.whole != nil {
					err = s.stepwise(p, p.alone())
				} else {
					err = s.conform(p, p.alone(), s.exactness(c.op, len(c.in)))
				}
				if err == nil && p.whole == nil && (s.left == 0 || left < s.left) && s.hasOwnLayout(p) {
					p.left = true
					left++
					if err = s.conform(p, p.alone(), s.exactness(c.op, len(c.in))); err != nil {
						err = fmt.Errorf("with operands in the device's own layout: %w", err)
					}
				}
				if err != nil {
					g, _ := p.Program.Group(0)
					t.Errorf("%v\n\t%v", g, err)
					if failures++; failures == 5 {
						t.Fatalf("further cases of %s are left out", kind)
					}
				}
			}
		})
	}
}

// hasOwnLayout reports whether the device writes activations, of a type that p is given, in another layout than it
// takes from outside.
func (s *suite) hasOwnLayout(p *program) bool {
	for v, x := range p.given {
		if t := x.Type(); p.roles[v] == device.Data && t.DType.Float() {
			if o, err := left(s.dev, t); err == nil && o.Layout != s.dev.Layout(t, device.Data) {
				return true
			}
		}
	}
	return false
}

// conform runs p in all placements, twice in the first, and compares the kept values with their exact ones,
// and with each other bit for bit.
func (s *suite) conform(p *program, groups [][]int, tolerance float64) error {
	exact, err := p.exact()
	if err != nil {
		return fmt.Errorf("definition: %w", err)
	}
	j, err := describe(s.dev, p, groups)
	if err != nil {
		return err
	}
	var first []op.Tensor
	for _, pl := range j.placements() {
		runs, err := s.runs(j, pl)
		if err != nil {
			return fmt.Errorf("%s: %w", pl.name, err)
		}
		first := &first
		if pl.odd && s.byAddress {
			first = new([]op.Tensor)
		}
		for n, got := range runs {
			for i, v := range p.Keep {
				name := p.Values[v].Name
				if d := differs(got[i], exact[v], tolerance, s.own(j, v), p.rows[v]); d != "" {
					return fmt.Errorf("%s, run %d: %s: %s", pl.name, n+1, name, d)
				}
				if *first == nil {
					continue
				}
				if d := unequal((*first)[i], got[i]); d != "" {
					return fmt.Errorf("%s, run %d: differs from the first run: %s: %s", pl.name, n+1, name, d)
				}
			}
			if *first == nil {
				*first = got
			}
		}
	}
	return nil
}

// runs gives the kept values of two runs in a placement, or of one where operands are overwritten.
func (s *suite) runs(j *job, pl placement) ([][]op.Tensor, error) {
	b, err := j.bind(pl)
	if err != nil {
		return nil, err
	}
	defer b.memory.Free()
	if err := b.fill(); err != nil {
		return nil, err
	}
	once := pl.taken != nil || slices.ContainsFunc(j.p.Steps, func(s device.Step) bool { return inPlace(s.Op) })
	var all [][]op.Tensor
	for len(all) < 2 {
		x, err := b.run()
		if err != nil {
			return nil, err
		}
		all = append(all, x)
		if once {
			break
		}
	}
	return all, nil
}
