package device

import (
	"fmt"
	"slices"

	"onlinerna/nn/op"
)

// Reference is the device that defines the results of all others: it runs every op by its own Run, one after the
// other, row-major, in host memory.
type Reference struct{ dtype op.DType }

var _ Composer = (*Reference)(nil)

// NewReference makes a reference device whose vectors are of type d, op.Float32 or op.Float64.
func NewReference(d op.DType) Device { return &Reference{d} }

// Name implements Device.
func (r *Reference) Name() string { return "reference" }

// DType implements Device.
func (r *Reference) DType() op.DType { return r.dtype }

// Layout implements Device: all values are row-major.
func (r *Reference) Layout(op.Type, Role) Layout { return "" }

// Whole implements Composer: every op has its definition.
func (r *Reference) Whole(op.Composite, []op.Type) bool { return true }

// Describe implements Device. It takes every group whose types fit.
func (r *Reference) Describe(g *Group) (*Plan, error) {
	if err := g.Check(); err != nil {
		return nil, &UnsupportedError{Device: r.Name(), Group: g, Reason: err.Error()}
	}
	p := new(Plan)
	for _, v := range g.Outputs {
		step := slices.IndexFunc(g.Steps, func(s Step) bool { return s.Out == v })
		p.Outputs = append(p.Outputs, Output{
			Bytes: g.Values[v].Type.Bytes(),
			Over:  overwritable(g, step),
			View:  viewed(g, g.Steps[step]),
		})
	}
	_, p.Workspace = scratch(g)
	return p, nil
}

// overwritable lists the inputs whose storage the result of a step may take over: those of its op's Overwrites, and
// the first of an in-place op, if no later step reads them.
func overwritable(g *Group, step int) []int {
	s := g.Steps[step]
	var from []int
	switch o := s.Op.(type) {
	case op.Overwriter:
		for _, i := range o.Overwrites(g.types(s.In)...) {
			from = append(from, s.In[i])
		}
	case op.InPlace:
		from = s.In[:1]
	}
	var over []int
	for _, v := range from {
		read := func(t Step) bool { return slices.Contains(t.In, v) }
		i := slices.Index(g.Inputs, v)
		if i >= 0 && !slices.Contains(over, i) && !slices.ContainsFunc(g.Steps[step+1:], read) {
			over = append(over, i)
		}
	}
	return over
}

// viewed is the part of an input that the result of s is, or nil.
func viewed(g *Group, s Step) *View {
	o, ok := s.Op.(op.View)
	if !ok {
		return nil
	}
	i := slices.Index(g.Inputs, s.In[0])
	if i < 0 {
		return nil
	}
	t := g.Values[s.In[0]].Type
	return &View{Input: i, Offset: o.ViewOffset(t) * t.DType.Size()}
}

// scratch places the values that do not leave g in a workspace of the given size.
func scratch(g *Group) (offset map[int]int, bytes int) {
	offset = make(map[int]int)
	for _, s := range g.Steps {
		if !slices.Contains(g.Outputs, s.Out) {
			offset[s.Out] = bytes
			bytes += (g.Values[s.Out].Type.Bytes() + hostAlign - 1) / hostAlign * hostAlign
		}
	}
	return offset, bytes
}

// call is a step bound to its tensors.
type call struct {
	name string
	op   op.Op
	out  op.Tensor
	in   []op.Tensor
	from *op.Tensor // initial content of an in-place op's result with separate storage
}

// Bind implements Device.
func (r *Reference) Bind(g *Group, p *Plan, a Args) (Kernel, error) {
	if len(a.In) != len(g.Inputs) || len(a.Out) != len(g.Outputs) {
		return nil, fmt.Errorf("bind %v: %d and %d regions for %d inputs and %d outputs",
			g, len(a.In), len(a.Out), len(g.Inputs), len(g.Outputs))
	}
	region := make([]Region, len(g.Values))
	offset, _ := scratch(g)
	for v, off := range offset {
		region[v] = a.Workspace.Part(off, g.Values[v].Type.Bytes())
	}
	for i, v := range g.Inputs {
		region[v] = a.In[i]
	}
	for i, v := range g.Outputs {
		region[v] = a.Out[i]
	}
	tensor := make([]op.Tensor, len(g.Values))
	for v, x := range g.Values {
		var err error
		if tensor[v], err = HostTensor(region[v], x.Type); err != nil {
			return nil, fmt.Errorf("bind %v: value %s: %w", g, x.Name, err)
		}
	}

	var calls []call
	for _, s := range g.Steps {
		if i := slices.Index(g.Outputs, s.Out); i >= 0 && p.Outputs[i].View != nil {
			w := p.Outputs[i].View
			if a.Out[i] == a.In[w.Input].Part(w.Offset, a.Out[i].Bytes) {
				continue // the view is there without computing
			}
		}
		c := call{name: s.Name, op: s.Op, out: tensor[s.Out]}
		for _, v := range s.In {
			c.in = append(c.in, tensor[v])
		}
		if _, ok := s.Op.(op.InPlace); ok {
			if first := c.in[0]; region[s.Out] != region[s.In[0]] {
				c.from = &first
			}
			c.in[0] = c.out
		}
		calls = append(calls, c)
	}
	return func() error {
		for _, c := range calls {
			if c.from != nil {
				if err := ConvertTensor(c.out, *c.from); err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
			}
			if err := c.op.Run(c.out, c.in...); err != nil {
				return fmt.Errorf("%s: %v: %w", c.name, c.op, err)
			}
		}
		return nil
	}, nil
}

// NewMemory implements Device.
func (r *Reference) NewMemory(bytes int) (Memory, error) { return NewHostMemory(bytes) }

// NewVector implements Device.
func (r *Reference) NewVector(n int) (Vector, error) {
	switch r.dtype {
	case op.Float32:
		return newReferenceVector[float32](n)
	case op.Float64:
		return newReferenceVector[float64](n)
	}
	return nil, fmt.Errorf("no vectors of %v", r.dtype)
}

// Upload implements Device.
func (r *Reference) Upload(to Region, l Layout, src op.Tensor) error {
	if l != "" {
		return fmt.Errorf("upload: layout %q is not the reference device's", l)
	}
	return UploadRowMajor(to, src)
}

// Download implements Device.
func (r *Reference) Download(dst op.Tensor, from Region, l Layout) error {
	if l != "" {
		return fmt.Errorf("download: layout %q is not the reference device's", l)
	}
	return DownloadRowMajor(dst, from)
}

// Sync implements Device. Kernels have finished when they return.
func (r *Reference) Sync() error { return nil }

// Close implements Device.
func (r *Reference) Close() error { return nil }
