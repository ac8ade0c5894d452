package devicetest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// job is a program described by a device, group by group.
type job struct {
	dev    device.Device
	p      *program
	values []device.Value // of the program, with layouts and bytes
	groups []described
}

type described struct {
	*device.Group
	plan   *device.Plan
	values []int // of the program, for each of the group's
}

// describe asks the device for its plans of the groups of p, in this order.
func describe(d device.Device, p *program, groups [][]int) (*job, error) {
	j := &job{dev: d, p: p, values: slices.Clone(p.Values)}
	for v, x := range p.given {
		j.values[v].Layout = d.Layout(x.Type(), p.roles[v])
		j.values[v].Bytes = device.Bytes(d, x.Type(), j.values[v].Layout)
		if p.left && p.roles[v] == device.Data && x.DType().Float() {
			o, err := left(d, x.Type())
			if err != nil {
				return nil, err
			}
			j.values[v].Layout, j.values[v].Bytes = o.Layout, o.Bytes
		}
	}
	if n, ok := device.As[device.Narrower](d); ok {
		for _, v := range n.Narrow(&p.Program) {
			j.values[v].Narrow = true
		}
	}
	laid := p.Program
	laid.Values = j.values
	for _, steps := range groups {
		g, values := laid.Group(steps...)
		plan, err := d.Describe(g)
		if err != nil {
			return nil, fmt.Errorf("describe: %w", err)
		}
		if err := j.accept(g, plan, values); err != nil {
			return nil, fmt.Errorf("plan for %v: %w", g, err)
		}
		j.groups = append(j.groups, described{g, plan, values})
	}
	return j, nil
}

// left is the layout in which the device writes activations of type t.
func left(d device.Device, t op.Type) (device.Output, error) {
	p := newProgram()
	x := p.input("x", device.Data, op.New(t))
	p.keep(p.apply(op.ReLU{}, x))
	j, err := describe(d, p, p.alone())
	if err != nil {
		return device.Output{}, err
	}
	return j.groups[0].plan.Outputs[0], nil
}

// accept checks a plan and notes the layouts of the outputs.
func (j *job) accept(g *device.Group, plan *device.Plan, values []int) error {
	if len(plan.Outputs) != len(g.Outputs) || plan.Workspace < 0 {
		return fmt.Errorf("%d outputs described of %d, workspace of %d bytes", len(plan.Outputs), len(g.Outputs),
			plan.Workspace)
	}
	for i, o := range plan.Outputs {
		v := values[g.Outputs[i]]
		t := j.values[v].Type
		if j.p.roles[v] == device.Weight {
			if want := j.dev.Layout(t, device.Weight); o.Layout != want || o.Bytes != t.Bytes() {
				return fmt.Errorf("gradient %v of a weight has layout %q and %d bytes, the weight has %q and %d",
					t, o.Layout, o.Bytes, want, t.Bytes())
			}
		}
		if o.Bytes <= 0 {
			return fmt.Errorf("output %v takes %d bytes", t, o.Bytes)
		}
		for _, in := range o.Over {
			if in < 0 || in >= len(g.Inputs) {
				return fmt.Errorf("output %v over input %d of %d", t, in, len(g.Inputs))
			}
		}
		if w := o.View; w != nil {
			if w.Input < 0 || w.Input >= len(g.Inputs) {
				return fmt.Errorf("output %v views input %d of %d", t, w.Input, len(g.Inputs))
			}
			if in := j.values[values[g.Inputs[w.Input]]]; w.Offset < 0 || w.Offset+o.Bytes > in.Bytes {
				return fmt.Errorf("output %v views bytes %d to %d of %d", t, w.Offset, w.Offset+o.Bytes, in.Bytes)
			}
		}
		j.values[v].Layout, j.values[v].Bytes = o.Layout, o.Bytes
	}
	return nil
}

// placement assigns storage to values. The zero value gives each its own aligned storage, and none to views.
type placement struct {
	name  string
	odd   bool        // weights start at odd elements
	copy  bool        // views have their own storage
	taken map[int]int // results that take over the storage of another value

	elsewhere map[int]device.Region // values that have their storage already
}

// placements lists the ways to lay out j: the plain one, the awkward one, and each take-over that the plans
// of single groups allow.
func (j *job) placements() []placement {
	all := []placement{{name: "aligned"}, {name: "at odd places", odd: true, copy: true}}
	if len(j.groups) != 1 {
		return all
	}
	g := j.groups[0]
	for i, o := range g.plan.Outputs {
		for _, in := range o.Over {
			out, from := g.values[g.Outputs[i]], g.values[g.Inputs[in]]
			if j.values[out].Bytes == j.values[from].Bytes {
				all = append(all, placement{
					name:  fmt.Sprintf("result over operand %s", j.values[from].Name),
					taken: map[int]int{out: from},
				})
			}
		}
	}
	return all
}

// guard is the number of bytes between buffers.
const guard = 256

// pattern fills guards, results and workspaces: each half of it is a NaN in float32, and the whole a NaN in float64.
const pattern = 0x7ffcdead_7fc0dead

// patterned is n bytes of the pattern, n a multiple of 8.
func patterned(n int) []byte {
	x := make([]byte, n)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(x[i:], pattern)
	}
	return x
}

// buffer is a named part of the memory that kernels may write.
type buffer struct {
	name       string
	off, bytes int
	constant   bool // they may only read it
}

// bound is a job with its storage and kernels.
type bound struct {
	*job
	memory  device.Memory
	regions []device.Region
	buffers []buffer
	kernels []device.Kernel
}

// bind places j and binds its kernels.
func (j *job) bind(pl placement) (*bound, error) {
	b := &bound{job: j, regions: make([]device.Region, len(j.values))}
	size := 0
	reserve := func(name string, bytes, shift int, constant bool) device.Region {
		off := (size+guard+63)/64*64 + shift
		size = off + bytes
		b.buffers = append(b.buffers, buffer{name, off, bytes, constant})
		return device.Region{Offset: off, Bytes: bytes}
	}
	place := func(v int) {
		if _, ok := pl.elsewhere[v]; ok {
			return
		}
		x, shift := j.values[v], 0
		if pl.odd && j.p.roles[v] == device.Weight {
			shift = x.Type.DType.Size()
		}
		_, given := j.p.given[v]
		b.regions[v] = reserve(x.Name+" "+x.Type.String(), x.Bytes, shift, given)
	}
	free := func(v int) { // v may be overwritten
		for i, u := range b.buffers {
			if u.off == b.regions[v].Offset {
				b.buffers[i].constant = false
			}
		}
	}
	for _, v := range slices.Sorted(maps.Keys(j.p.given)) {
		place(v)
	}
	var workspaces []device.Region
	for _, g := range j.groups {
		for i, o := range g.plan.Outputs {
			v := g.values[g.Outputs[i]]
			from, taken := pl.taken[v]
			if s := g.Steps[slices.IndexFunc(g.Steps,
				func(s device.Step) bool { return s.Out == g.Outputs[i] })]; inPlace(s.Op) {
				from, taken = g.values[s.In[0]], true
			}
			switch {
			case taken:
				b.regions[v] = b.regions[from]
				free(from)
			case o.View != nil && !pl.copy:
				b.regions[v] = b.regions[g.values[g.Inputs[o.View.Input]]].Part(o.View.Offset, o.Bytes)
			default:
				place(v)
			}
		}
		workspaces = append(workspaces, reserve("workspace", g.plan.Workspace, 0, false))
	}

	var err error
	if b.memory, err = j.dev.NewMemory((size + 2*guard) / 64 * 64); err != nil {
		return nil, err
	}
	for v := range b.regions {
		b.regions[v].Memory = b.memory
	}
	for v, r := range pl.elsewhere {
		b.regions[v] = r
	}
	for i, g := range j.groups {
		var a device.Args
		for _, v := range g.Inputs {
			a.In = append(a.In, b.regions[g.values[v]])
		}
		for _, v := range g.Outputs {
			a.Out = append(a.Out, b.regions[g.values[v]])
		}
		if workspaces[i].Bytes > 0 { // else there is none, as in the machine
			a.Workspace = device.Region{Memory: b.memory, Offset: workspaces[i].Offset, Bytes: workspaces[i].Bytes}
		}
		k, err := j.dev.Bind(g.Group, g.plan, a)
		if err != nil {
			return nil, fmt.Errorf("bind: %w", err)
		}
		b.kernels = append(b.kernels, k)
	}
	return b, nil
}

func inPlace(o op.Op) bool {
	_, ok := o.(op.InPlace)
	return ok
}

// fill stores the pattern everywhere, then the inputs of the program.
func (b *bound) fill() error {
	x := patterned(b.memory.Bytes())
	all := device.Region{Memory: b.memory, Bytes: len(x)}
	if err := b.dev.Upload(all, "", op.Tensor{Shape: op.Shape{len(x)}, Data: x}); err != nil {
		return fmt.Errorf("upload of bytes: %w", err)
	}
	for v, t := range b.p.given {
		if err := b.dev.Upload(b.regions[v], b.values[v].Layout, t); err != nil {
			return fmt.Errorf("upload of %v: %w", t.Type(), err)
		}
	}
	return nil
}

// run executes all kernels and gives the kept values. It fails if a kernel changed memory that is not its own.
func (b *bound) run() ([]op.Tensor, error) {
	before, err := b.bytes()
	if err != nil {
		return nil, err
	}
	for _, k := range b.kernels {
		if err := k(); err != nil {
			return nil, fmt.Errorf("kernel: %w", err)
		}
	}
	if err := b.dev.Sync(); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	after, err := b.bytes()
	if err != nil {
		return nil, err
	}
	if err := b.stray(before, after); err != nil {
		return nil, err
	}
	var out []op.Tensor
	for _, v := range b.p.Keep {
		x := op.New(b.values[v].Type)
		if err := b.dev.Download(x, b.regions[v], b.values[v].Layout); err != nil {
			return nil, fmt.Errorf("download of %v: %w", x.Type(), err)
		}
		out = append(out, x)
	}
	return out, nil
}

// bytes is the content of the memory.
func (b *bound) bytes() ([]byte, error) {
	x := op.New(op.T(op.Uint8, b.memory.Bytes()))
	err := b.dev.Download(x, device.Region{Memory: b.memory, Bytes: b.memory.Bytes()}, "")
	if err != nil {
		return nil, fmt.Errorf("download of bytes: %w", err)
	}
	return x.Data.([]byte), nil
}

// stray finds a byte that differs between before and after and belongs to no buffer that may be written.
func (b *bound) stray(before, after []byte) error {
	at := 0
	for i, u := range b.buffers {
		end := u.off
		if u.constant {
			end += u.bytes
		}
		for ; at < end; at++ {
			if before[at] == after[at] {
				continue
			}
			switch {
			case at >= u.off:
				return fmt.Errorf("operand %s was changed at byte %d", u.name, at-u.off)
			case i > 0 && at-b.buffers[i-1].off-b.buffers[i-1].bytes < u.off-at:
				last := b.buffers[i-1]
				return fmt.Errorf("byte %d behind the end of %s was changed", at-last.off-last.bytes, last.name)
			}
			return fmt.Errorf("byte %d before the start of %s was changed", u.off-at, u.name)
		}
		at = u.off + u.bytes
	}
	for last := b.buffers[len(b.buffers)-1]; at < len(before); at++ {
		if before[at] != after[at] {
			return fmt.Errorf("byte %d behind the end of %s was changed", at-last.off-last.bytes, last.name)
		}
	}
	return nil
}
