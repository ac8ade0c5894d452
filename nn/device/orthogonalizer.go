package device

import (
	"errors"
	"fmt"

	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// Orthogonalizer is the program of update.NewtonSchulz on a device: products of matrices and expressions, bound to
// some matrices.
type Orthogonalizer struct {
	kernels   []Kernel
	workspace int
	memories  []Memory
}

// NewOrthogonalizer binds the program to those matrices of u that have a part, in the last vector of its state.
func NewOrthogonalizer(d Device, o update.NewtonSchulz, u *Update, parts []Part) (*Orthogonalizer, error) {
	z := &Orthogonalizer{}
	state := u.State[len(u.State)-1]
	var list []*orthogonal
	last, size := -1, 0
	for _, p := range parts {
		if p.Matrix < 0 || p.Matrix == last {
			continue
		}
		last = p.Matrix
		m, at := u.Matrices[p.Matrix], u.Tensors[u.Matrices[p.Matrix].Tensor]
		x := &orthogonal{d: d, NewtonSchulz: o, rows: m.Rows, columns: m.Columns, at: state.Region(at.Off, at.Len)}
		if m.Transposed {
			x.rows, x.columns = x.columns, x.rows
		}
		if err := x.plan(); err != nil {
			return nil, fmt.Errorf("device %s cannot orthogonalise matrices: %w", d.Name(), err)
		}
		size, z.workspace = max(size, x.size), max(z.workspace, x.workspace)
		list = append(list, x)
	}
	var regions [2]Region
	for i, n := range []int{size, z.workspace} {
		if n == 0 {
			continue
		}
		m, err := d.NewMemory(n)
		if err != nil {
			z.Free()
			return nil, err
		}
		z.memories = append(z.memories, m)
		regions[i] = Region{m, 0, n}
	}
	for _, x := range list {
		kernels, err := x.bind(regions[0], regions[1])
		if err != nil {
			z.Free()
			return nil, err
		}
		z.kernels = append(z.kernels, kernels...)
	}
	return z, nil
}

// Run runs the program.
func (z *Orthogonalizer) Run() error {
	for _, k := range z.kernels {
		if err := k(); err != nil {
			return err
		}
	}
	return nil
}

// Free gives its memory back.
func (z *Orthogonalizer) Free() {
	for _, m := range z.memories {
		m.Free()
	}
	z.memories, z.kernels = nil, nil
}

// orthogonal is the program of a matrix that lies row by row.
type orthogonal struct {
	d Device
	update.NewtonSchulz
	rows, columns   int
	at              Region // of the matrix
	steps           []orthogonalStep
	size, workspace int
}

// orthogonalStep is an op on some of the program's values.
type orthogonalStep struct {
	group *Group
	plan  *Plan
	in    []int
	out   int
}

// The values of the program: the matrix as it comes and goes, X, another of its size, XXᵀ or XᵀX, two more of that
// size, and a number.
const (
	orthogonalMatrix = iota
	orthogonalX
	orthogonalY
	orthogonalGram
	orthogonalSquare
	orthogonalPolynomial
	orthogonalNorm
	orthogonalValues
)

func (x *orthogonal) typ(value int) op.Type {
	n := min(x.rows, x.columns)
	switch value {
	case orthogonalMatrix, orthogonalX, orthogonalY:
		return op.T(x.d.DType(), x.rows, x.columns)
	case orthogonalNorm:
		return op.T(x.d.DType(), 1)
	}
	return op.T(x.d.DType(), n, n)
}

// plan lists the steps. XXᵀ is the smaller one of two: X(XᵀX)ᵏ is (XXᵀ)ᵏX.
func (x *orthogonal) plan() error {
	a, b := expr.Arg(0), expr.Arg(1)
	wide := x.rows <= x.columns
	var errs []error
	add := func(o op.Op, out int, in ...int) { errs = append(errs, x.add(o, out, in...)) }
	add(op.Map{Expr: a.Square()}, orthogonalY, orthogonalMatrix)
	add(op.SumTo{Shape: op.Shape{1}}, orthogonalNorm, orthogonalY)
	add(op.Map{Expr: a.Div(b.Sqrt().Max(expr.Const(x.Eps)))}, orthogonalX, orthogonalMatrix, orthogonalNorm)
	now, other := orthogonalX, orthogonalY
	for i := range x.Steps {
		if wide {
			add(op.Linear{}, orthogonalGram, now, now)
		} else {
			add(op.LinearGradWeight{}, orthogonalGram, now, now)
		}
		add(op.Linear{}, orthogonalSquare, orthogonalGram, orthogonalGram)
		add(op.Map{Expr: a.Scale(x.B).Add(b.Scale(x.C))}, orthogonalPolynomial, orthogonalGram, orthogonalSquare)
		if wide {
			add(op.LinearGradInput{}, other, now, orthogonalPolynomial)
		} else {
			add(op.Linear{}, other, now, orthogonalPolynomial)
		}
		to := now
		if i == x.Steps-1 {
			to = orthogonalMatrix
		}
		add(op.Map{Expr: a.Scale(x.A).Add(b)}, to, now, other)
	}
	return errors.Join(errs...)
}

// add plans a step alone. A result may take an operand's place only if the op allows it.
func (x *orthogonal) add(o op.Op, out int, in ...int) error {
	g := &Group{Steps: []Step{{Name: "orthogonalize", Op: o}}, Outputs: []int{len(in)}}
	for i, v := range append(in, out) {
		t := x.typ(v)
		if l := x.d.Layout(t, Data); l != "" {
			return fmt.Errorf("%v lies as %q", t, l)
		}
		g.Values = append(g.Values, Value{Name: "matrix", Type: t, Bytes: t.Bytes()})
		if i < len(in) {
			g.Inputs, g.Steps[0].In = append(g.Inputs, i), append(g.Steps[0].In, i)
		}
	}
	g.Steps[0].Out = len(in)
	p, err := x.d.Describe(g)
	if err != nil {
		return err
	}
	if y := p.Outputs[0]; y.Layout != "" || y.Bytes != g.Values[len(in)].Bytes {
		return fmt.Errorf("%v: the result lies as %q in %d bytes", g, y.Layout, y.Bytes)
	}
	x.workspace = max(x.workspace, p.Workspace)
	x.steps = append(x.steps, orthogonalStep{g, p, in, out})
	x.size = x.offset(orthogonalValues)
	return nil
}

// offset is where a value begins in the memory of the program.
func (x *orthogonal) offset(value int) int {
	at := 0
	for v := orthogonalX; v < value; v++ {
		at += (x.typ(v).Bytes() + hostAlign - 1) / hostAlign * hostAlign
	}
	return at
}

func (x *orthogonal) bind(memory, workspace Region) (kernels []Kernel, err error) {
	region := func(v int) Region {
		if v == orthogonalMatrix {
			return x.at
		}
		return memory.Part(x.offset(v), x.typ(v).Bytes())
	}
	for _, s := range x.steps {
		args := Args{Out: []Region{region(s.out)}}
		for _, v := range s.in {
			args.In = append(args.In, region(v))
		}
		if n := s.plan.Workspace; n > 0 {
			args.Workspace = workspace.Part(0, n)
		}
		k, err := x.d.Bind(s.group, s.plan, args)
		if err != nil {
			return nil, err
		}
		kernels = append(kernels, k)
	}
	return kernels, nil
}
