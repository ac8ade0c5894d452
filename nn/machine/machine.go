package machine

import (
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// Config are the parameters of New. Device, and Keep or Bind, are required.
type Config struct {
	Device device.Device

	// Keep lists the results that stay readable after a run. Nodes on which neither they nor bound results
	// depend are not run: the update of a state has to be among them.
	Keep G.Nodes

	// Bind gives nodes storage that the caller owns: inputs, as parameters and statistics, and results, as
	// gradients that belong into a part of a flat vector. A bound result is computed even if it is not in Keep.
	Bind map[*G.Node]Binding

	// Ungrouped runs every op alone, also on a device that would rather group them.
	Ungrouped bool

	// LowMemory makes the backward pass recompute cheap results, such as normalised images and their ReLU, from
	// operands that it needs anyway. This saves a third or more of the memory of a convolutional net for a few
	// percent of the time. Results keep their bits in float32 on the CPU, and on CUDA with Deterministic. Otherwise a
	// device may recompute with another kernel, or run ops together that round a value in between when they run apart.
	LowMemory bool

	// Arena is shared with machines that never run at the same time. Nil means a private arena.
	Arena *Arena
}

// Binding is storage that the caller owns, and how the value lies in it. An input may have any layout that the
// device takes, usually Device.Layout's; a result has to have the one in which the device makes it.
type Binding struct {
	Region device.Region
	Layout device.Layout

	// Fixed says that an input is the same in all runs, from the first on. A device may then prepare it once, in more
	// memory: on the CPU packed weights take as much again.
	Fixed bool
}

// Machine runs a graph on a device. It may be used by one goroutine at a time.
type Machine struct {
	dev    device.Device
	prog   *program
	plan   *layout
	keep   G.Nodes
	arena  *Arena
	shared bool // the arena is

	inputs device.Memory // of constants and unbound inputs; nil until the first Write or Run
	calls  []call        // bound to the arena's memory as of moved
	moved  int
	tracer Tracer // nil: no tracing
}

// call is a kernel of a task, in the order in which they run: those of a loop come several times.
type call struct {
	task   int
	done   int // the last task that has run for all samples once the call returns
	kernel device.Kernel
}

var _ G.VM = (*Machine)(nil)

// New plans the run of g. It allocates no device memory: that is left to the first Write or Run.
func New(g *G.ExprGraph, c Config) (*Machine, error) {
	if g == nil || c.Device == nil {
		return nil, errors.New("machine: a graph and a Config.Device are required")
	}
	if c.Arena != nil && c.Arena.dev != c.Device {
		return nil, fmt.Errorf("machine: the arena is of another device than %s", c.Device.Name())
	}
	p, err := newProgram(g, &c)
	if err != nil {
		return nil, err
	}
	device.Decompose(c.Device, &p.Program)
	p.made()
	if err := p.checkSizes(c.Device); err != nil {
		return nil, err
	}
	if r, ok := device.As[device.Rewriter](c.Device); ok && !c.Ungrouped {
		p.rewrite(r)
	}
	if d, ok := device.As[device.Narrower](c.Device); ok {
		for _, v := range d.Narrow(&p.Program) {
			p.Values[v].Narrow = true
		}
	}
	if c.LowMemory {
		p.recompute()
	}
	if d, ok := device.As[device.Divider](c.Device); ok && !c.Ungrouped {
		if err := p.divide(d); err != nil {
			return nil, err
		}
	}
	s, err := p.outside(&c)
	if err != nil {
		return nil, err
	}
	groups, err := p.groups(&c)
	if err != nil {
		return nil, err
	}
	tasks, err := p.describe(&c, groups)
	if err != nil {
		return nil, err
	}
	if err := s.results(p, &c, tasks); err != nil {
		return nil, err
	}
	m := &Machine{dev: c.Device, prog: p, plan: newLayout(s, tasks, p.taskLoops(tasks)), keep: c.Keep, arena: c.Arena,
		shared: c.Arena != nil}
	if m.arena == nil {
		m.arena = NewArena(c.Device)
	}
	m.arena.reserve(m.plan.bytes)
	return m, nil
}

// checkSizes returns a *device.BoundError if the device takes no tensor of some value's size.
func (p *program) checkSizes(dev device.Device) error {
	d, ok := device.As[device.Bounded](dev)
	if !ok {
		return nil
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if shape := p.Values[s.Out].Type.Shape; shape.Size() > d.LargestTensor() {
			return &device.BoundError{Device: dev.Name(), Op: s.Name, Shape: shape, Most: d.LargestTensor()}
		}
	}
	return nil
}

// Run computes all results from the bound storage and from the inputs stored by Write. It allocates nothing after the
// first call, unless the arena grew for another machine. On a device with queues it may return before the work is
// done: Read and the device's Sync wait for it.
func (m *Machine) Run() error { return m.run(nil) }

// run is Run with marks, in the order of their tasks.
func (m *Machine) run(marks []mark) error {
	if err := m.prepare(); err != nil {
		return err
	}
	if m.tracer != nil {
		if err := m.runTraced(); err != nil {
			return err
		}
		return pass(&marks, len(m.plan.tasks))
	}
	if err := pass(&marks, -1); err != nil {
		return err
	}
	for _, c := range m.calls {
		if err := c.kernel(); err != nil {
			return m.runError(c.task, err)
		}
		if err := pass(&marks, c.done); err != nil {
			return err
		}
	}
	return nil
}

// pass calls the marks up to a task.
func pass(marks *[]mark, task int) error {
	for len(*marks) > 0 && (*marks)[0].task <= task {
		do := (*marks)[0].do
		*marks = (*marks)[1:]
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes sure that the kernels are bound to the arena, which is m's from then on.
func (m *Machine) prepare() error {
	mem, err := m.arena.memory()
	if err != nil {
		return err
	}
	if m.calls == nil || m.moved != m.arena.moved {
		if err := m.bind(mem); err != nil {
			return err
		}
	}
	m.arena.holder = m
	return nil
}

func (m *Machine) runError(i int, err error) error {
	s := m.plan.tasks[i].group.Steps
	last := s[len(s)-1]
	if len(s) == 1 {
		return fmt.Errorf("machine: %s %s: %w", last.Name, last.Op.Kind(), err)
	}
	return fmt.Errorf("machine: group of %d ops from %s %s to %s %s: %w", len(s), s[0].Name, s[0].Op.Kind(), last.Name,
		last.Op.Kind(), err)
}

// bind makes the kernels for the arena at mem.
func (m *Machine) bind(mem device.Memory) error {
	if err := m.allocateInputs(); err != nil {
		return err
	}
	var calls []call
	for i := 0; i < len(m.plan.tasks); {
		l := m.plan.loopOf(i)
		bound, kept := make([]device.Kernel, l.to-l.from), make([]device.Kept, l.to-l.from)
		for n := range l.times {
			for t := range bound {
				if n == 0 || m.plan.advances(l.from+t) {
					var err error
					if bound[t], err = m.bindTask(l.from+t, n, &kept[t], mem); err != nil {
						return m.runError(l.from+t, err)
					}
				}
				done := l.from - 1
				if n == l.times-1 {
					done += t + 1
				}
				calls = append(calls, call{l.from + t, done, bound[t]})
			}
		}
		i = l.to
	}
	m.calls, m.moved = calls, m.arena.moved
	return nil
}

// bindTask binds a task for a portion.
func (m *Machine) bindTask(i, portion int, kept *device.Kept, mem device.Memory) (device.Kernel, error) {
	k := &m.plan.tasks[i]
	a := device.Args{Kept: kept}
	for _, v := range k.in {
		a.In = append(a.In, m.region(v, portion, mem))
	}
	for _, v := range k.out {
		a.Out = append(a.Out, m.region(v, portion, mem))
	}
	if w := m.plan.work[i]; w >= 0 {
		a.Workspace = device.Region{Memory: mem, Offset: m.plan.offsets[w], Bytes: k.plan.Workspace}
	}
	return m.dev.Bind(k.group, k.plan, a)
}

// region returns the storage of value v for a portion, given the arena's memory.
func (m *Machine) region(v, portion int, mem device.Memory) device.Region {
	at := m.plan.places[v]
	b := &m.plan.buffers[at.buffer]
	var r device.Region
	switch b.owner {
	case arena:
		r = device.Region{Memory: mem, Offset: m.plan.offsets[b.item], Bytes: b.bytes}
	case inputs:
		r = device.Region{Memory: m.inputs, Offset: b.offset, Bytes: b.bytes}
	case caller:
		r = b.region
	}
	return r.Part(at.offset+portion*at.step, m.prog.Values[v].Bytes)
}

// allocateInputs makes the memory of the inputs and stores the constants there.
func (m *Machine) allocateInputs() error {
	if m.inputs != nil || m.plan.inputs == 0 {
		return nil
	}
	mem, err := m.dev.NewMemory(m.plan.inputs)
	if err != nil {
		return fmt.Errorf("machine: %d bytes of inputs on device %s: %w", m.plan.inputs, m.dev.Name(), err)
	}
	m.inputs = mem
	for v, s := range m.prog.sources {
		if s != constant {
			continue
		}
		t, err := hostTensor(m.prog.nodes[v].Value())
		if err == nil {
			err = m.dev.Upload(m.region(v, 0, nil), m.prog.Values[v].Layout, t)
		}
		if err != nil {
			mem.Free()
			m.inputs = nil
			return fmt.Errorf("machine: constant %s: %w", m.prog.Values[v].Name, err)
		}
	}
	return nil
}

// Write stores a host tensor in an input that is not bound, where it stays until it is written again. The shape must
// be the node's; between float32 and float64 the elements are converted. An input on which no kept or bound result
// depends is checked and ignored.
func (m *Machine) Write(n *G.Node, src op.Tensor) error {
	v, ok := m.prog.values[n]
	if !ok {
		return m.writeDead(n, src)
	}
	x := &m.prog.Values[v]
	if m.prog.sources[v] != input {
		return fmt.Errorf("machine: write to %s: it is computed, not an input", x.Name)
	}
	if m.plan.buffers[m.plan.places[v].buffer].owner == caller {
		return fmt.Errorf("machine: write to %s: its storage is bound, write there", x.Name)
	}
	if !fits(x.Type, src) {
		return fmt.Errorf("machine: write of %v to %s, %v: types or shapes differ", src.Type(), x.Name, x.Type)
	}
	if err := m.allocateInputs(); err != nil {
		return err
	}
	if err := m.dev.Upload(m.region(v, 0, nil), x.Layout, src); err != nil {
		return fmt.Errorf("machine: write of %v to %s: %w", src.Type(), x.Name, err)
	}
	return nil
}

// writeDead checks a write to an input that the program has no use for.
func (m *Machine) writeDead(n *G.Node, src op.Tensor) error {
	if n == nil || !m.prog.graph.Has(n.ID()) || m.prog.graph.Node(n.ID()) != n {
		return errors.New("machine: write to a node that is not of the machine's graph")
	}
	if n.Op() != nil {
		return fmt.Errorf("machine: write to %s: it is computed, not an input", label(n))
	}
	t, err := typeOf(n)
	if err == nil && !fits(t, src) {
		err = fmt.Errorf("%v written to %v: types or shapes differ", src.Type(), t)
	}
	if err != nil {
		return fmt.Errorf("machine: %s: %w", label(n), err)
	}
	return nil
}

// fits reports whether a host tensor can be converted to type t or back.
func fits(t op.Type, x op.Tensor) bool {
	d := x.DType()
	return t.Shape.Equal(x.Shape) && (t.DType == d || t.DType.Float() && d.Float())
}

// Read copies a kept or bound value, or an input, to the host. It reads the results of the last Run, which are lost
// once another machine has run on the same arena.
func (m *Machine) Read(dst op.Tensor, n *G.Node) error {
	v, ok := m.prog.values[n]
	if !ok {
		return errors.New("machine: read of a node on which no kept result depends: add it to Config.Keep")
	}
	x := &m.prog.Values[v]
	if !fits(x.Type, dst) {
		return fmt.Errorf("machine: read of %s, %v, into %v: types or shapes differ", x.Name, x.Type, dst.Type())
	}
	at := m.plan.places[v].buffer
	if at < 0 {
		return fmt.Errorf("machine: read of %s: it is not kept, add it to Config.Keep", x.Name)
	}
	switch b := &m.plan.buffers[at]; {
	case b.owner == arena && !b.kept:
		return fmt.Errorf("machine: read of %s: it is not kept, add it to Config.Keep", x.Name)
	case b.owner == arena && m.arena.holder != m:
		return fmt.Errorf("machine: read of %s: the machine has not run since another one ran on its arena, or not at "+
			"all", x.Name)
	case b.owner == inputs && m.inputs == nil:
		return fmt.Errorf("machine: read of %s: nothing was written to it", x.Name)
	}
	if err := m.dev.Download(dst, m.region(v, 0, m.arena.mem), x.Layout); err != nil {
		return fmt.Errorf("machine: read of %s into %v: %w", x.Name, dst.Type(), err)
	}
	return nil
}

// Reset implements gorgonia.VM. There is nothing to reset: every run starts from its inputs.
func (m *Machine) Reset() {}

// Close gives back the memory that the machine owns. A shared arena is left to its owner.
func (m *Machine) Close() error {
	var err error
	switch {
	case !m.shared:
		err = m.arena.Close()
	case m.inputs != nil:
		err = m.dev.Sync() // kernels may still be under way
	}
	if m.inputs != nil {
		m.inputs.Free()
		m.inputs = nil
	}
	m.calls = nil
	return err
}
