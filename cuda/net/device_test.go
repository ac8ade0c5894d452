//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
	"onlinerna/nn/device"
	"onlinerna/nn/device/devicetest"
	"onlinerna/nn/op"
)

func openNet(o Options) devicetest.Open {
	o.Context.KernelCache = gputest.KernelCache
	o.Context.ExactMemory = true // puts each buffer between inaccessible pages
	o.Deterministic = true
	return func() (device.Device, error) { return Open(0, o) }
}

// opened opens a device, which the test closes.
func opened(t *testing.T, o Options) device.Device {
	t.Helper()
	gputest.NeedDNN(t)
	d, err := openNet(o)()
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	return d
}

func TestNet(t *testing.T) {
	gputest.NeedDNN(t)
	for p := number.Float32; p <= number.Float16; p++ {
		t.Run(p.String(), func(t *testing.T) {
			gputest.Ran(t, gputest.Vectors, p)
			devicetest.Run(t, noting(openNet(Options{Precision: p})), conformance(p))
		})
	}
}

// conformance gives the tolerances: values stored in 16 bits are off by half a unit in the last place, factors of
// TensorFloat-32 by a whole one, since tensor cores cut off their other digits; everything else is float32. cuBLAS
// chooses kernels by the alignment of operands.
func conformance(p number.Precision) devicetest.Options {
	switch p {
	case number.TF32:
		return devicetest.Options{Unit: 0x1p-10, ByAddress: true, Round: func(x float64) float64 {
			u := math.Float32bits(float32(x))
			return float64(math.Float32frombits((u + 0xfff + u>>13&1) &^ 0x1fff))
		}}
	case number.BFloat16, number.Float16:
		unit := map[number.Precision]float64{number.BFloat16: 0x1p-8, number.Float16: 0x1p-11}[p]
		left := map[number.Precision]int{number.BFloat16: 3, number.Float16: -1}[p] // few, since the stand-in is slow
		return devicetest.Options{Unit: unit, Left: left, ByAddress: true, Round: func(x float64) float64 {
			return float64(number.Widen(p, number.Narrow(p, []float32{float32(x)}))[0])
		}}
	}
	return devicetest.Options{ByAddress: true}
}

// bound binds an op to operands of the given types, which follow each other in zeroed memory.
func bound(t *testing.T, d device.Device, o op.Op, types ...op.Type) device.Kernel {
	t.Helper()
	out, err := o.Infer(types...)
	check(t, err)
	g := &device.Group{Steps: []device.Step{{Name: "layer", Op: o, Out: len(types)}}, Outputs: []int{len(types)}}
	for i, x := range append(types, out) {
		g.Values = append(g.Values, device.Value{Type: x, Layout: d.Layout(x, device.Data), Bytes: x.Bytes()})
		if i < len(types) {
			g.Inputs = append(g.Inputs, i)
			g.Steps[0].In = append(g.Steps[0].In, i)
		}
	}
	p, err := d.Describe(g)
	check(t, err)
	memory := func(n int) device.Region {
		m, err := d.NewMemory(n)
		check(t, err)
		t.Cleanup(m.Free)
		return device.Region{Memory: m, Bytes: n}
	}
	var a device.Args
	for _, x := range types {
		a.In = append(a.In, memory(x.Bytes()))
	}
	a.Out, a.Workspace = []device.Region{memory(out.Bytes())}, memory(p.Workspace)
	k, err := d.Bind(g, p, a)
	check(t, err)

	a.In[0].Bytes-- // a region that is too small
	if _, err := d.Bind(g, p, a); err == nil || !strings.Contains(err.Error(), "layer") {
		t.Errorf("bind of a region that is too short: %v", err)
	}
	host, err := device.NewHostMemory(types[0].Bytes())
	check(t, err)
	a.In[0] = device.Region{Memory: host, Bytes: types[0].Bytes()}
	if _, err := d.Bind(g, p, a); err == nil || !strings.Contains(err.Error(), "another device") {
		t.Errorf("bind of host memory: %v", err)
	}
	return k
}

// A kernel's failure shows at the next wait, or with DebugSync at its own op.
func TestFaultOfNetKernel(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	for _, debug := range []bool{false, true} {
		t.Run(fmt.Sprintf("debug %v", debug), func(t *testing.T) {
			if debug {
				t.Setenv("RNA_CUDA_SYNC", "1")
			}
			gputest.Alone(t, "", func(string) { failKernel(t, debug) })
		})
	}
}

func failKernel(t *testing.T, debug bool) {
	x := op.T(op.Float32, 2, 3, 4, 5)
	d, err := openNet(Options{})()
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	fails, works := bound(t, d, op.ReLU{}, x), bound(t, d, op.Add{}, x, x)
	check(t, sim.Fault("cuLaunchKernel@1=719,later"))
	if err := fails(); debug != errors.Is(err, driver.ErrLost) || !debug && err != nil {
		t.Errorf("the op that fails: %v", err)
	}
	check(t, sim.Fault(""))
	if err := works(); debug != errors.Is(err, driver.ErrLost) || !debug && err != nil {
		t.Errorf("the op after it: %v", err)
	}
	if err := d.Sync(); !errors.Is(err, driver.ErrLost) || strings.Contains(err.Error(), "RNA_CUDA_SYNC=1") == debug {
		t.Errorf("sync: %v", err)
	}
}

func TestFaultOfNetMemory(t *testing.T) {
	fault(t, "")
	d := opened(t, Options{})
	check(t, sim.Fault("cuMemAlloc_v2@0=2"))
	if _, err := d.NewMemory(1 << 20); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("%v, want driver.ErrOutOfMemory", err)
	}
	if _, err := d.NewVector(1 << 20); !errors.Is(err, driver.ErrOutOfMemory) ||
		!strings.Contains(err.Error(), "1048576 elements") {
		t.Errorf("%v, want driver.ErrOutOfMemory", err)
	}
}

// Each call that opens a device fails once: nothing leaks.
func TestFaultOfOpenNet(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	for _, f := range []string{"cudnnCreate@1=4000", "cudnnSetStream@1=4000", "cublasCreate_v2@1=14",
		"cuMemAlloc_v2@1=2", "cuStreamCreate@1=400"} {
		before := sim.Leaks()
		check(t, sim.Fault(f))
		if _, err := openNet(Options{})(); err == nil {
			t.Errorf("%s fails and the device opens", f)
		}
		check(t, sim.Fault(""))
		if after := sim.Leaks(); after != before {
			t.Errorf("%s: leaked: %s", f, after)
		}
	}
	if _, err := Open(0, Options{Workspace: -1}); err == nil {
		t.Error("a workspace of -1 bytes is no error")
	}
}

// The device groups exactly the steps for which it has kernels.
func TestNetGroups(t *testing.T) {
	d := opened(t, Options{})
	x, c := op.T(op.Float32, 2, 3, 4, 5), op.T(op.Float32, 3)
	two := op.T(op.Float32, 2, 3)
	p := &device.Program{Keep: []int{9, 11}}
	for _, v := range []op.Type{x, two, c, c, x, x, x, x, x, x, x, two} {
		p.Values = append(p.Values, device.Value{Type: v, Layout: d.Layout(v, device.Data)})
	}
	p.Steps = []device.Step{
		{Op: op.BatchNorm{}, In: []int{0, 1, 2, 3}, Out: 5},
		{Op: op.Add{}, In: []int{4, 5}, Out: 6},
		{Op: op.ReLU{}, In: []int{6}, Out: 7},
		{Op: op.Add{}, In: []int{7, 4}, Out: 8},
		{Op: op.ReLUGrad{}, In: []int{7, 8}, Out: 9},
		{Op: op.BatchNormGradSums{}, In: []int{0, 1, 9}, Out: 11},
		{Op: op.ReLU{}, In: []int{9}, Out: 10},
	}
	if got, want := d.(device.Grouper).Group(p), [][]int{{0, 1, 2}, {3, 4, 5}}; !slices.EqualFunc(got, want,
		slices.Equal) {
		t.Errorf("groups %v, want %v", got, want)
	}
}

// A rewritten program recomputes the mask of a ReLU after a batch normalisation in the group of its gradients, unless
// another step reads the gradient. It updates running statistics in the group of the statistics.
func TestNetRewrite(t *testing.T) {
	d := opened(t, Options{})
	x, two, c, one := op.T(op.Float32, 2, 3, 4, 5), op.T(op.Float32, 2, 3), op.T(op.Float32, 3), op.T(op.Float32, 1)
	program := func(more ...device.Step) *device.Program {
		p := &device.Program{Keep: []int{6, 10, 11, 12}}
		for _, v := range []op.Type{x, c, c, two, one, two, two, x, x, x, two, x, x, x} {
			p.Values = append(p.Values, device.Value{Type: v, Layout: d.Layout(v, device.Data)})
		}
		p.Steps = append([]device.Step{
			{Op: op.BatchNormStats{}, In: []int{0}, Out: 5},
			{Op: op.BatchNorm{}, In: []int{0, 5, 1, 2}, Out: 7},
			{Op: op.ReLU{}, In: []int{7}, Out: 8},
			{Op: op.BatchNormUpdate{Count: 40}, In: []int{3, 5, 4}, Out: 6},
			{Op: op.ReLU{}, In: []int{8}, Out: 12},
			{Op: op.ReLUGrad{}, In: []int{8, 12}, Out: 9},
			{Op: op.BatchNormGradSums{}, In: []int{0, 5, 9}, Out: 10},
			{Op: op.BatchNormGradInput{}, In: []int{0, 5, 1, 10, 9}, Out: 11},
		}, more...)
		return p
	}
	kinds := func(p *device.Program) (all []string) {
		p.Values = slices.Clone(p.Values)
		d.(device.Rewriter).Rewrite(p)
		for _, g := range d.(device.Grouper).Group(p) {
			var names []string
			for _, s := range g {
				names = append(names, p.Steps[s].Op.Kind())
			}
			all = append(all, strings.Join(names, " "))
		}
		return all
	}
	if got, want := kinds(program()), []string{"batch_norm_stats batch_norm_update", "batch_norm relu",
		"batch_norm relu relu_grad batch_norm_grad_sums batch_norm_grad_input"}; !slices.Equal(got, want) {
		t.Errorf("groups %q, want %q", got, want)
	}
	shared := program(device.Step{Op: op.ReLU{}, In: []int{9}, Out: 13})
	if got, want := kinds(shared), []string{"batch_norm_stats batch_norm_update", "batch_norm relu",
		"relu_grad batch_norm_grad_sums"}; !slices.Equal(got, want) {
		t.Errorf("groups where another op reads the gradient: %q, want %q", got, want)
	}
}

// In 16 bits a convolution of images reads images made with eight channels, and the gradient of its weights drops the
// added ones. Images with another reader, or with one channel, stay unpadded.
func TestNetStem(t *testing.T) {
	gputest.NeedDNN(t)
	const padded, plain = "images shortcut shortcut conv2d conv2d_grad_weight shortcut_grad",
		"images conv2d conv2d_grad_weight"
	for _, test := range []struct {
		precision number.Precision
		channels  int
		kept      bool
		want      string
	}{
		{number.BFloat16, 3, false, padded},
		{number.Float16, 4, false, padded},
		{number.BFloat16, 3, true, plain},
		{number.BFloat16, 1, false, plain},
		{number.Float32, 3, false, plain},
	} {
		d, err := openNet(Options{Precision: test.precision})()
		check(t, err)
		c := test.channels
		pixels, crops := op.T(op.Uint8, 2, 4, 4, c), op.T(op.Int32, 2, 3)
		x, w, y := op.T(op.Float32, 2, c, 4, 4), op.T(op.Float32, 8, c, 3, 3), op.T(op.Float32, 2, 8, 4, 4)
		ones := make([]float64, c)
		for i := range ones {
			ones[i] = 1
		}
		conv := op.Conv2D{Pad: [2]int{1, 1}}
		p := &device.Program{Keep: []int{5, 6}}
		if test.kept {
			p.Keep = append(p.Keep, 4)
		}
		for _, v := range []op.Type{pixels, crops, w, y, x, y, w} {
			p.Values = append(p.Values, device.Value{Type: v, Layout: d.Layout(v, device.Data)})
		}
		p.Steps = []device.Step{
			{Op: op.Images{DType: op.Float32, Height: 4, Width: 4, Mean: ones, Std: ones}, In: []int{0, 1}, Out: 4},
			{Op: conv, In: []int{4, 2}, Out: 5},
			{Op: op.Conv2DGradWeight{Conv2D: conv, Weight: w.Shape}, In: []int{4, 3}, Out: 6},
		}
		d.(device.Rewriter).Rewrite(p)
		var kinds []string
		for _, s := range p.Steps {
			kinds = append(kinds, s.Op.Kind())
			var in []op.Type
			for _, v := range s.In {
				in = append(in, p.Values[v].Type)
			}
			if out, err := s.Op.Infer(in...); err != nil || !out.Equal(p.Values[s.Out].Type) {
				t.Errorf("%v of %v: %v, %v, want %v", s.Op, in, out, err, p.Values[s.Out].Type)
			}
		}
		groups := d.(device.Grouper).Group(p)
		if got := strings.Join(kinds, " "); got != test.want ||
			(len(groups) == 1 && slices.Equal(groups[0], []int{0, 1})) != (got == padded) {
			t.Errorf("%v, %d channels: %s in groups %v, want %s", test.precision, c, got, groups, test.want)
		}
		check(t, d.Close())
	}
}

// recorder is a Device that records the kinds of the ops that it runs.
type recorder struct{ *Device }

func (r recorder) Bind(g *device.Group, p *device.Plan, a device.Args) (device.Kernel, error) {
	k, err := r.Device.Bind(g, p, a)
	if err != nil {
		return nil, err
	}
	return func() error {
		err := k()
		for _, s := range g.Steps {
			if err == nil {
				gputest.RanOp(kindOf(s), r.opts.Precision)
			}
		}
		return err
	}, nil
}

// kindOf is the kind of a step's op. Attention with a bias has kernels of its own.
func kindOf(s device.Step) string {
	kind := s.Op.Kind()
	if kind == "self_attention" && len(s.In) > 1 || kind == "self_attention_grad" && len(s.In) > 2 {
		kind += " with bias"
	}
	return kind
}

// noting opens devices that record the ops that they run.
func noting(open devicetest.Open) devicetest.Open {
	return func() (device.Device, error) {
		d, err := open()
		if err != nil {
			return nil, err
		}
		return recorder{d.(*Device)}, nil
	}
}
