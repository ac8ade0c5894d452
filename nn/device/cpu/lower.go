package cpu

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// phase is a part of a kernel: blocks that may run at the same time. Before a phase starts, the ones
// before it have finished.
type phase struct {
	blocks int
	run    func(worker, block int)
}

// one is the list of phases of a kernel that is too small to be shared out.
func one(f func()) []phase { return []phase{{1, func(int, int) { f() }}} }

// lowering is how a group runs: what Describe says, and how to make the phases for given storage. The
// plan's outputs are those of results, in the same order.
type lowering struct {
	results   []int // values of the group
	outputs   []device.Output
	workspace int
	bind      func(s *storage) []phase
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
	if len(a.In) != len(g.Inputs) || len(a.Out) != len(g.Outputs) {
		return nil, fmt.Errorf("cpu: bind %v: %d and %d regions for %d inputs and %d outputs",
			g, len(a.In), len(a.Out), len(g.Inputs), len(g.Outputs))
	}
	s := &storage{group: g, region: make([]device.Region, len(g.Values)), work: a.Workspace}
	for i, v := range g.Inputs {
		s.region[v] = a.In[i]
	}
	for i, v := range g.Outputs {
		s.region[v] = a.Out[i]
	}
	phases := l.bind(s)
	if s.err != nil {
		return nil, fmt.Errorf("cpu: bind %v: %w", g, s.err)
	}
	pool := d.pool
	return func() error {
		for _, p := range phases {
			pool.Run(p.blocks, p.run)
		}
		return nil
	}, nil
}

// lower finds the kernel for a group.
func (d *Device) lower(g *device.Group) (*lowering, error) {
	if err := g.Check(); err != nil {
		return nil, d.unsupported(g, err.Error())
	}
	l, reason := d.choose(g)
	if reason == "" {
		for _, v := range g.Outputs {
			if !slices.Contains(l.results, v) {
				reason = fmt.Sprintf("value %s does not leave the group", g.Values[v].Name)
			}
		}
	}
	if reason != "" {
		return nil, d.unsupported(g, reason)
	}
	return l, nil
}

func (d *Device) unsupported(g *device.Group, reason string) error {
	return &device.UnsupportedError{Device: d.Name(), Group: g, Reason: reason}
}

// choose returns the lowering of a group whose types fit, or why there is none.
func (d *Device) choose(g *device.Group) (*lowering, string) {
	if len(g.Steps) == 0 {
		return nil, "empty group"
	}
	for _, s := range g.Steps {
		for _, v := range append(slices.Clone(s.In), s.Out) {
			if g.Values[v].Type.DType == op.Float64 {
				return nil, "float64 values are not supported"
			}
		}
	}
	if len(g.Steps) > 1 {
		return d.fuse(g)
	}
	s := step{d, g, g.Steps[0]}
	switch o := s.Op.(type) {
	case op.Images:
		return lowerImages(s, o)
	case op.Conv2D:
		return lowerConv(s, o)
	case op.Conv2DGradInput:
		return lowerConvGradInput(s, o)
	case op.Conv2DGradWeight:
		return lowerConvGradWeight(s, o)
	case op.Linear:
		return lowerLinear(s)
	case op.LinearGradInput:
		return lowerLinearGradInput(s)
	case op.LinearGradWeight:
		return lowerLinearGradWeight(s)
	case op.ChannelSum:
		return lowerChannelSum(s)
	case op.BatchNormStats:
		return lowerBatchNormStats(s)
	case op.BatchNorm:
		return lowerBatchNorm(s, o)
	case op.BatchNormUpdate:
		return lowerBatchNormUpdate(s, o)
	case op.BatchNormGradSums:
		return lowerBatchNormGradSums(s, o)
	case op.BatchNormGradInput:
		return lowerBatchNormGradInput(s, o)
	case op.ReLU:
		return lowerReLU(s)
	case op.ReLUGrad:
		return lowerReLUGrad(s)
	case op.Add:
		return lowerAdd(s)
	case op.MaxPool:
		return lowerMaxPool(s, o)
	case op.MaxPoolGrad:
		return lowerMaxPoolGrad(s, o)
	case op.AvgPool:
		return lowerAvgPool(s, o)
	case op.AvgPoolGrad:
		return lowerAvgPoolGrad(s, o)
	case op.GlobalAvgPool:
		return lowerGlobalAvgPool(s)
	case op.GlobalAvgPoolGrad:
		return lowerGlobalAvgPoolGrad(s)
	case op.Shortcut:
		return lowerShortcut(s, o)
	case op.ShortcutGrad:
		return lowerShortcutGrad(s, o)
	case op.Row, op.Flatten, op.Reshape:
		return lowerView(s, o.(op.View))
	case op.SoftmaxCrossEntropy:
		return lowerSoftmaxCrossEntropy(s, o)
	case op.SoftmaxCrossEntropyGrad:
		return lowerSoftmaxCrossEntropyGrad(s, o)
	case op.Score:
		return lowerScore(s)
	}
	return nil, "there is no kernel for this op"
}

// step is a step of a group that is being lowered.
type step struct {
	*Device
	group *device.Group
	device.Step
}

// in is the type of an operand, out that of the result.
func (s step) in(i int) op.Type { return s.group.Values[s.In[i]].Type }
func (s step) out() op.Type     { return s.group.Values[s.Out].Type }

// expect says which operand has a layout other than the device's own for its role.
func (s step) expect(roles ...device.Role) string {
	for i, r := range roles {
		v := s.group.Values[s.In[i]]
		if want := s.Layout(v.Type, r); v.Layout != want {
			return fmt.Sprintf("operand %d has layout %q, want %q", i, v.Layout, want)
		}
	}
	return ""
}

// dataIn is expect for operands that are all activations.
func (s step) dataIn() string {
	roles := make([]device.Role, len(s.In))
	return s.expect(roles...)
}

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

// result is the lowering of a step with one result in layout l, without scratch.
func (s step) result(l device.Layout, bind func(st *storage) []phase) *lowering {
	return &lowering{
		results: []int{s.Out},
		outputs: []device.Output{{Layout: l, Bytes: s.out().Bytes()}},
		bind:    bind,
	}
}

// data is result in the layout of activations.
func (s step) data(bind func(st *storage) []phase) *lowering {
	return s.result(s.Layout(s.out(), device.Data), bind)
}
