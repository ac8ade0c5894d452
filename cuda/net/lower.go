//go:build gpu && cgo

package net

import (
	"fmt"
	"slices"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// kernel makes the calls of a group for given storage.
type kernel struct {
	narrow bool   // the kernels' elements have 16 bits
	wants  []want // the operands' forms
	moves  []move // conversions of operands in other forms
	bind   func(b *binding)
}

// lowering is the lowering of a group, with its kernel.
type lowering = lower.Lowering[kernel]

// patterns are the groups that the device runs. If several patterns match the same steps, the first one takes them.
func (d *Device) patterns() lower.Table[kernel] {
	return lower.Table[kernel]{
		Device: d.Name(),
		Patterns: []lower.Pattern[kernel]{
			d.maskedGradient, d.normalisedTwice, d.normalised, d.summedGradient, d.updatedStats, d.paddedImages, d.placedPool,
			d.layerNormGradient, d.windowGradient,
			alone(d, step.convForward), alone(d, step.convGradInput), alone(d, step.convGradWeight),
			alone(d, step.linear), alone(d, step.narrowLinear), alone(d, step.linearGradInput), alone(d, step.linearGradWeight),
			alone(d, step.images), alone(d, step.channelSum),
			alone(d, step.batchNormStats), alone(d, step.batchNorm), alone(d, step.batchNormUpdate),
			alone(d, step.batchNormGradSums), alone(d, step.batchNormGradInput),
			alone(d, func(s step, _ op.ReLU) (*lowering, error) { return s.elementwise("nn_relu") }),
			alone(d, func(s step, _ op.ReLUGrad) (*lowering, error) { return s.elementwise("nn_relu_grad") }),
			alone(d, func(s step, _ op.Add) (*lowering, error) { return s.elementwise("nn_add") }),
			alone(d, step.maxPool), alone(d, step.maxPlaces), alone(d, step.maxPoolGrad), alone(d, step.placedGrad),
			alone(d, step.avgPool), alone(d, step.avgPoolGrad),
			alone(d, step.globalAvgPool), alone(d, step.globalAvgPoolGrad),
			alone(d, func(s step, o op.Shortcut) (*lowering, error) {
				return s.shortcut("nn_shortcut", o, s.InType(0), s.OutType())
			}),
			alone(d, func(s step, o op.ShortcutGrad) (*lowering, error) {
				return s.shortcut("nn_shortcut_grad", o.Shortcut, s.OutType(), s.InType(0))
			}),
			alone(d, func(s step, o op.Permute) (*lowering, error) { return s.moves(o) }),
			alone(d, func(s step, o op.Slice) (*lowering, error) { return s.moves(o) }),
			alone(d, func(s step, o op.Pad) (*lowering, error) { return s.moves(o) }),
			alone(d, func(s step, o op.Concat) (*lowering, error) { return s.moves(o) }),
			alone(d, func(s step, o op.Expand) (*lowering, error) { return s.moves(o) }),
			alone(d, step.reduce), alone(d, step.matMul), alone(d, step.gather), alone(d, step.gatherGrad),
			alone(d, step.layerNorm), alone(d, step.softmax), alone(d, step.softmaxGrad),
			alone(d, step.selfAttention), alone(d, step.selfAttentionGrad),
			alone(d, func(s step, _ op.Tokens) (*lowering, error) { return s.same() }),
			alone(d, func(s step, _ op.Planes) (*lowering, error) { return s.same() }),
			alone(d, step.view), alone(d, step.expression), alone(d, step.sumTo),
			alone(d, step.crossEntropy), alone(d, step.crossEntropyGrad), alone(d, step.targetLoss),
			alone(d, step.targetLossGrad), alone(d, step.score),
		},
		Lacks: func(t op.Type) string {
			switch {
			case t.DType == op.Float64:
				return "float64 values are not supported"
			case slices.ContainsFunc(t.Shape, func(n int) bool { return n > 1<<30 }):
				return fmt.Sprintf("an extent of %v is too large", t)
			}
			return ""
		},
		Finish: d.convert,
	}
}

// alone is the pattern of an op that runs by itself.
func alone[O op.Op](d *Device, f func(s step, o O) (*lowering, error)) lower.Pattern[kernel] {
	return lower.Alone(func(s lower.Step, o O) (*lowering, error) { return f(step{d, s}, o) })
}

// Group implements device.Grouper.
func (d *Device) Group(p *device.Program) [][]int { return d.rules.Group(p) }

// Describe implements device.Device.
func (d *Device) Describe(g *device.Group) (*device.Plan, error) {
	p, err := d.rules.Describe(g)
	return p, d.Explain(err)
}

// Bind implements device.Device.
func (d *Device) Bind(g *device.Group, p *device.Plan, a device.Args) (device.Kernel, error) {
	l, err := d.rules.Bind(g, p, a)
	if err == nil {
		err = d.compile()
	}
	if err != nil {
		return nil, err
	}
	b := &binding{d: d, spans: make([]driver.Span, len(g.Values)), owner: make([]*vector, len(g.Values)),
		narrow: l.Kernel.narrow}
	place := func(v, bytes int) {
		r := l.Regions[v]
		s, err := d.span(r)
		if err == nil && r.Bytes != bytes {
			err = fmt.Errorf("region of %d bytes for %v, which takes %d", r.Bytes, g.Values[v].Type, bytes)
		}
		if err != nil {
			b.fail(fmt.Errorf("value %s: %w", g.Values[v].Name, err))
		}
		b.spans[v], b.owner[v] = s, vectorOf(r)
	}
	for _, v := range g.Inputs {
		place(v, d.Bytes(g.Values[v].Type, g.Values[v].Layout))
	}
	for i, v := range g.Outputs {
		place(v, p.Outputs[i].Bytes)
	}
	if b.work, err = d.span(l.Workspace); err != nil {
		b.fail(fmt.Errorf("workspace: %w", err))
	}
	if b.err == nil {
		b.convert(l.Kernel.moves)
		l.Kernel.bind(b)
	}
	for _, v := range g.Outputs {
		if o := b.owner[v]; o != nil && b.err == nil {
			b.calls = append(b.calls, o.refresh)
		}
	}
	if b.err != nil {
		return nil, fmt.Errorf("cuda: bind %v: %w", g, b.err)
	}
	title := g.Title()
	run := func() error {
		d.c.Begin(title)
		defer d.c.End()
		d.running = g
		defer func() { d.running = nil }()
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

// binding collects the calls of a group for the given storage. It keeps the first error.
type binding struct {
	d      *Device
	spans  []driver.Span // by value; empty for values that stay inside the group
	owner  []*vector     // by value: the vector of a region; nil for other memory
	work   driver.Span
	narrow bool
	calls  []func() error
	err    error
}

func (b *binding) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// launch adds a kernel of one of the package's sources.
func (b *binding) launch(file, name string, grid, block driver.Dim, args ...any) {
	k, err := b.d.kernel(file, name, b.narrow)
	if err != nil {
		b.fail(err)
		return
	}
	b.add(k, grid, block, args...)
}

// add adds a kernel.
func (b *binding) add(k *driver.Kernel, grid, block driver.Dim, args ...any) {
	for i, a := range args { // an empty span becomes a null pointer
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

// each adds a kernel with one thread for each of n elements; n is its last argument.
func (b *binding) each(file, name string, n int, args ...any) {
	grid, block := b.d.flat(n)
	b.launch(file, name, grid, block, append(args, int64(n))...)
}

// copy adds a copy.
func (b *binding) copy(dst, src driver.Span) {
	b.calls = append(b.calls, func() error { return b.d.stream.Copy(dst, src) })
}

// step is a step during its lowering.
type step struct {
	d *Device
	lower.Step
}

// form is the form of an operand. A layout of another device is refused later.
func (s step) form(i int) form { return s.formOf(s.In[i]) }

// formOf is the form of a value.
func (s step) formOf(v int) form {
	f, _ := s.d.form(s.Values[v].Layout)
	return f
}

// like is the form for activations of a type: 16 bits if some operand has them, and scaled if some operand is.
func (s step) like(t op.Type, operands ...int) form {
	f := form{last: len(t.Shape) == 4}
	for _, i := range operands {
		o := s.form(i)
		f.narrow, f.scaled = f.narrow || o.narrow, f.scaled || o.scaled
	}
	return f
}

// plain is the form with float32 elements.
func plain(t op.Type) form { return form{last: len(t.Shape) == 4 && t.DType == op.Float32} }

// want asks for operand i in a form.
func (s step) want(i int, f form) want { return want{value: s.In[i], form: f} }

// output describes a result in a form.
func (s step) output(f form) lower.Result {
	return lower.Result{Value: s.Out, Layout: s.d.layout(f), Bytes: f.bytes(s.OutType())}
}

// result is the lowering of a step with one result in the form out. Listed operands get the wanted forms, the others
// are float32. Kernels have elements of the result's size.
func (s step) result(out form, workspace int, wants []want,
	bind func(b *binding, in []driver.Span, out driver.Span)) *lowering {
	for i, v := range s.In {
		if !slices.ContainsFunc(wants, func(w want) bool { return w.value == v }) {
			wants = append(wants, s.want(i, plain(s.InType(i))))
		}
	}
	return &lowering{
		Results:   []lower.Result{s.output(out)},
		Workspace: workspace,
		Kernel: kernel{
			narrow: out.narrow,
			wants:  wants,
			bind: func(b *binding) {
				in := make([]driver.Span, len(s.In))
				for i, v := range s.In {
					in[i] = b.spans[v]
				}
				bind(b, in, b.spans[s.Out])
			},
		},
	}
}

// align rounds a size in the workspace up.
func align(bytes int) int { return (bytes + 255) / 256 * 256 }

// extents splits the shape of an activation: images, channels and the product of the other dimensions.
func extents(s op.Shape) (n, c, rest int) { return s[0], s[1], s[2:].Size() }
