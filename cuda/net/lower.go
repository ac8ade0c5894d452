//go:build gpu && cgo

package net

import (
	"fmt"
	"slices"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// lowering is how a group runs: what Describe says, and how to make the calls for given storage. The plan's
// outputs are those of results, in the same order.
type lowering struct {
	results   []int // values of the group
	outputs   []device.Output
	workspace int
	narrow    bool   // the kernels' elements have 16 bits
	wants     []want // of operands
	bind      func(b *binding)
}

// binding collects the calls of a group for the storage that it was given. The first error is kept.
type binding struct {
	d      *Device
	group  *device.Group
	spans  []driver.Span // by value; empty for those that stay inside the group
	owner  []*vector     // by value: whose a region is; nil for other memory
	work   driver.Span
	narrow bool
	calls  []func() error
	err    error
}

// Describe implements device.Device.
func (d *Device) Describe(g *device.Group) (*device.Plan, error) {
	l, err := d.lower(g)
	if err != nil {
		return nil, err
	}
	p := &device.Plan{Workspace: l.workspace}
	for _, v := range g.Outputs {
		p.Outputs = append(p.Outputs, l.outputs[slices.Index(l.results, v)])
	}
	return p, nil
}

// Bind implements device.Device.
func (d *Device) Bind(g *device.Group, p *device.Plan, a device.Args) (device.Kernel, error) {
	l, err := d.lower(g)
	if err != nil {
		return nil, err
	}
	if len(a.In) != len(g.Inputs) || len(a.Out) != len(g.Outputs) || a.Workspace.Bytes < l.workspace {
		return nil, fmt.Errorf("cuda: bind %v: %d and %d regions for %d inputs and %d outputs, workspace of %d bytes for %d",
			g, len(a.In), len(a.Out), len(g.Inputs), len(g.Outputs), a.Workspace.Bytes, l.workspace)
	}
	b := &binding{d: d, group: g, spans: make([]driver.Span, len(g.Values)), owner: make([]*vector, len(g.Values)), narrow: l.narrow}
	place := func(v int, r device.Region, bytes int) {
		s, err := d.span(r)
		if err == nil && r.Bytes != bytes {
			err = fmt.Errorf("region of %d bytes for %v of %d", r.Bytes, g.Values[v].Type, bytes)
		}
		if err != nil {
			b.fail(fmt.Errorf("value %s: %w", g.Values[v].Name, err))
		}
		b.spans[v], b.owner[v] = s, vectorOf(r)
	}
	for i, v := range g.Inputs {
		place(v, a.In[i], d.Bytes(g.Values[v].Type, g.Values[v].Layout))
	}
	for i, v := range g.Outputs {
		place(v, a.Out[i], l.outputs[slices.Index(l.results, v)].Bytes)
	}
	if b.work, err = d.span(a.Workspace); err != nil {
		b.fail(fmt.Errorf("workspace: %w", err))
	}
	if b.err == nil {
		l.bind(b)
	}
	for _, v := range g.Outputs {
		if o := b.owner[v]; o != nil && b.err == nil {
			b.calls = append(b.calls, o.refresh)
		}
	}
	if b.err != nil {
		return nil, fmt.Errorf("cuda: bind %v: %w", g, b.err)
	}
	run := func() error {
		for _, call := range b.calls {
			if err := call(); err != nil {
				return err
			}
		}
		if d.opts.DebugSync {
			return d.stream.Synchronize()
		}
		return nil
	}
	return func() error { return d.Explain(d.c.Do(run)) }, nil
}

func (b *binding) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// launch adds a kernel of one of the sources.
func (b *binding) launch(file, name string, grid, block driver.Dim, args ...any) {
	k, err := b.d.kernel(file, name, b.narrow)
	if err != nil {
		b.fail(err)
		return
	}
	for i, a := range args { // an empty span is a null pointer
		switch n := a.(type) {
		case int:
			args[i] = int32(n)
		case bool:
			args[i] = int32(0)
			if n {
				args[i] = int32(1)
			}
		}
	}
	b.calls = append(b.calls, func() error { return b.d.stream.Launch(k, grid, block, 0, args...) })
}

// each adds a kernel with a thread for each of n elements, which is its last argument.
func (b *binding) each(file, name string, n int, args ...any) {
	grid, block := b.d.flat(n)
	b.launch(file, name, grid, block, append(args, int64(n))...)
}

// copy adds a copy.
func (b *binding) copy(dst, src driver.Span) {
	b.calls = append(b.calls, func() error { return b.d.stream.Copy(dst, src) })
}

// lower finds how to run a group.
func (d *Device) lower(g *device.Group) (*lowering, error) {
	unsupported := func(reason string) error {
		return &device.UnsupportedError{Device: d.Name(), Group: g, Reason: reason}
	}
	if err := g.Check(); err != nil {
		return nil, unsupported(err.Error())
	}
	l, reason, err := d.choose(g)
	if err != nil {
		return nil, fmt.Errorf("cuda: describe %v: %w", g, d.Explain(err))
	}
	if reason == "" {
		reason = l.convert(d, g)
	}
	if reason == "" {
		for _, v := range g.Outputs {
			if !slices.Contains(l.results, v) {
				reason = fmt.Sprintf("value %s does not leave the group", g.Values[v].Name)
			}
		}
	}
	if reason != "" {
		return nil, unsupported(reason)
	}
	return l, nil
}

// choose returns the lowering of a group whose types fit, or why there is none.
func (d *Device) choose(g *device.Group) (l *lowering, reason string, err error) {
	if len(g.Steps) == 0 {
		return nil, "empty group", nil
	}
	for _, s := range g.Steps {
		for _, v := range append(slices.Clone(s.In), s.Out) {
			x := g.Values[v].Type
			if x.DType == op.Float64 {
				return nil, "float64 values are not supported", nil
			}
			if slices.ContainsFunc(x.Shape, func(n int) bool { return n > 1<<30 }) {
				return nil, fmt.Sprintf("an extent of %v is too large", x), nil
			}
		}
	}
	if len(g.Steps) > 1 {
		l, reason = d.fuse(g)
		return l, reason, nil
	}
	s := step{d, g, g.Steps[0]}
	switch o := s.Op.(type) {
	case op.Conv2D:
		return s.convForward(o)
	case op.Conv2DGradInput:
		return s.convGradInput(o)
	case op.Conv2DGradWeight:
		return s.convGradWeight(o)
	}
	l, reason = s.lower()
	return l, reason, nil
}

// step is a step of a group that is being lowered.
type step struct {
	d     *Device
	group *device.Group
	device.Step
}

// lower lowers a step that is no convolution.
func (s step) lower() (*lowering, string) {
	switch o := s.Op.(type) {
	case op.Images:
		return s.images(o)
	case op.Linear:
		return s.linear()
	case op.LinearGradInput:
		return s.linearGradInput()
	case op.LinearGradWeight:
		return s.linearGradWeight()
	case op.ChannelSum:
		return s.channelSum()
	case op.BatchNormStats:
		return s.batchNormStats()
	case op.BatchNorm:
		return s.batchNorm(o)
	case op.BatchNormUpdate:
		return s.batchNormUpdate(o)
	case op.BatchNormGradSums:
		return s.batchNormGradSums(o)
	case op.BatchNormGradInput:
		return s.batchNormGradInput(o)
	case op.ReLU:
		return s.elementwise("nn_relu")
	case op.ReLUGrad:
		return s.elementwise("nn_relu_grad")
	case op.Add:
		return s.elementwise("nn_add")
	case op.MaxPool:
		return s.pool("nn_max_pool", o.Kernel, o.Stride, o.Pad)
	case op.MaxPoolGrad:
		return s.poolGrad("nn_max_pool_grad", o.MaxPool.Kernel, o.MaxPool.Stride, o.MaxPool.Pad)
	case op.AvgPool:
		return s.pool("nn_avg_pool", o.Kernel, o.Stride, o.Pad)
	case op.AvgPoolGrad:
		return s.poolGrad("nn_avg_pool_grad", o.AvgPool.Kernel, o.AvgPool.Stride, o.AvgPool.Pad)
	case op.GlobalAvgPool:
		return s.globalAvgPool("nn_global_avg_pool", s.in(0))
	case op.GlobalAvgPoolGrad:
		return s.globalAvgPool("nn_global_avg_pool_grad", s.out())
	case op.Shortcut:
		return s.shortcut("nn_shortcut", o, s.in(0), s.out())
	case op.ShortcutGrad:
		return s.shortcut("nn_shortcut_grad", o.Shortcut, s.out(), s.in(0))
	case op.Row, op.Flatten, op.Reshape:
		return s.view(o.(op.View))
	case op.SoftmaxCrossEntropy:
		return s.crossEntropy(o)
	case op.SoftmaxCrossEntropyGrad:
		return s.crossEntropyGrad(o)
	case op.Score:
		return s.score()
	}
	return nil, "there is no kernel for this op"
}

// in is the type of an operand, out that of the result.
func (s step) in(i int) op.Type { return s.group.Values[s.In[i]].Type }
func (s step) out() op.Type     { return s.group.Values[s.Out].Type }

// over lists operands, by number, whose storage the result may take.
func (s step) over(operands ...int) []int {
	var list []int
	for _, i := range operands {
		in := slices.Index(s.group.Inputs, s.In[i])
		if in >= 0 && !slices.Contains(list, in) {
			list = append(list, in)
		}
	}
	return list
}

// form is that of an operand. One of a layout that is not the device's is found later.
func (s step) form(i int) form {
	f, _ := s.d.form(s.group.Values[s.In[i]].Layout)
	return f
}

// like is the form of activations of a type: of 16 bits where one of the operands has them, and scaled where one is.
func (s step) like(t op.Type, operands ...int) form {
	f := form{last: len(t.Shape) == 4}
	for _, i := range operands {
		o := s.form(i)
		f.narrow, f.scaled = f.narrow || o.narrow, f.scaled || o.scaled
	}
	return f
}

// plain is the form of float32 elements.
func plain(t op.Type) form { return form{last: len(t.Shape) == 4 && t.DType == op.Float32} }

// want asks for an operand in a form.
func (s step) want(i int, f form) want { return want{value: s.In[i], form: f} }

// output describes a result in a form.
func (s step) output(f form) device.Output {
	return device.Output{Layout: s.d.layout(f), Bytes: f.bytes(s.out())}
}

// result is the lowering of a step with one result, of a form. Operands are wanted as they are listed, and the others in
// float32. Kernels have elements of the result's size.
func (s step) result(out form, workspace int, wants []want, bind func(b *binding, in []driver.Span, out driver.Span)) (*lowering, string) {
	for i, v := range s.In {
		if !slices.ContainsFunc(wants, func(w want) bool { return w.value == v }) {
			wants = append(wants, s.want(i, plain(s.in(i))))
		}
	}
	return &lowering{
		results:   []int{s.Out},
		outputs:   []device.Output{s.output(out)},
		workspace: workspace,
		narrow:    out.narrow,
		wants:     wants,
		bind: func(b *binding) {
			in := make([]driver.Span, len(s.In))
			for i, v := range s.In {
				in[i] = b.spans[v]
			}
			bind(b, in, b.spans[s.Out])
		},
	}, ""
}

// align rounds a part of a workspace up.
func align(bytes int) int { return (bytes + 255) / 256 * 256 }

// extents takes the shape of an activation apart: images, channels and what is left of the dimensions.
func extents(s op.Shape) (n, c, rest int) { return s[0], s[1], s[2:].Size() }
