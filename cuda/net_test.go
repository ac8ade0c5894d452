//go:build gpu && cgo

package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/sim"
	"onlinerna/nn/device"
	"onlinerna/nn/device/devicetest"
	"onlinerna/nn/op"
	"onlinerna/rna"
)

func openNet(o NetOptions) devicetest.Open {
	o.Context.KernelCache = kernelCache
	o.Context.ExactMemory = true // each buffer between pages that cannot be touched
	o.Deterministic = true
	return func() (device.Device, error) { return OpenNet(0, o) }
}

func TestNet(t *testing.T) {
	needDNN(t)
	for p := Float32; p <= Float16; p++ {
		t.Run(p.String(), func(t *testing.T) {
			ran(t, vectors, p)
			devicetest.Run(t, recording(openNet(NetOptions{Precision: p})), conformance(p))
		})
	}
}

// conformance says how exact the device is: what is stored in 16 bits, and factors of TensorFloat-32, are off by half a unit in the
// last place; all else is float32.
func conformance(p Precision) devicetest.Options {
	switch p {
	case TF32:
		return devicetest.Options{Unit: 0x1p-11, Round: func(x float64) float64 {
			u := math.Float32bits(float32(x))
			return float64(math.Float32frombits((u + 0xfff + u>>13&1) &^ 0x1fff))
		}}
	case BFloat16, Float16:
		unit := map[Precision]float64{BFloat16: 0x1p-8, Float16: 0x1p-11}[p]
		return devicetest.Options{Unit: unit, Round: func(x float64) float64 {
			return float64(widened(p, narrowed(p, []float32{float32(x)}))[0])
		}}
	}
	return devicetest.Options{}
}

// bound binds an op on operands with the given types, which lie one behind the other in a memory, all of it zero.
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

	a.In[0].Bytes-- // and what does not fit
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

// A kernel that fails shows where somebody waits: at the next one that does, or with DebugSync at its own op.
func TestFaultOfNetKernel(t *testing.T) {
	needDNN(t)
	fault(t, "")
	x := op.T(op.Float32, 2, 3, 4, 5)
	for _, debug := range []bool{false, true} {
		t.Run(fmt.Sprintf("debug %v", debug), func(t *testing.T) {
			if debug {
				t.Setenv("RNA_CUDA_SYNC", "1")
			}
			d, err := openNet(NetOptions{})()
			check(t, err)
			t.Cleanup(func() { check(t, d.Close()) })
			fails, works := bound(t, d, op.ReLU{}, x), bound(t, d, op.Add{}, x, x)
			check(t, sim.Fault("cuLaunchKernel@1=719,later"))
			if err := fails(); debug != errors.Is(err, ErrLost) || !debug && err != nil {
				t.Errorf("the op that fails: %v", err)
			}
			check(t, sim.Fault(""))
			if err := works(); debug != errors.Is(err, ErrLost) || !debug && err != nil {
				t.Errorf("the op after it: %v", err)
			}
			if err := d.Sync(); !errors.Is(err, ErrLost) || strings.Contains(err.Error(), "RNA_CUDA_SYNC=1") == debug {
				t.Errorf("sync: %v", err)
			}
		})
	}
}

func TestFaultOfNetMemory(t *testing.T) {
	needDNN(t)
	fault(t, "")
	d, err := openNet(NetOptions{})()
	check(t, err)
	defer func() { check(t, d.Close()) }()
	check(t, sim.Fault("cuMemAlloc_v2@0=2"))
	if _, err := d.NewMemory(1 << 20); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("%v, want ErrOutOfMemory", err)
	}
	if _, err := d.NewVector(1 << 20); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "1048576 elements") {
		t.Errorf("%v, want ErrOutOfMemory", err)
	}
}

// Each call that opening a device makes fails once: nothing is left behind.
func TestFaultOfOpenNet(t *testing.T) {
	needDNN(t)
	fault(t, "")
	for _, f := range []string{"cudnnCreate@1=4000", "cudnnSetStream@1=4000", "cublasCreate_v2@1=14", "cuMemAlloc_v2@1=2", "cuStreamCreate@1=400"} {
		before := sim.Leaks()
		check(t, sim.Fault(f))
		if _, err := openNet(NetOptions{})(); err == nil {
			t.Errorf("%s fails and the device opens", f)
		}
		check(t, sim.Fault(""))
		if after := sim.Leaks(); after != before {
			t.Errorf("%s: leaked: %s", f, after)
		}
	}
	if _, err := OpenNet(0, NetOptions{Workspace: -1}); err == nil {
		t.Error("a workspace of -1 bytes is no error")
	}
}

// The device's groups are the ones that its kernels are for.
func TestNetGroups(t *testing.T) {
	needDNN(t)
	d, err := openNet(NetOptions{})()
	check(t, err)
	defer func() { check(t, d.Close()) }()
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
	if got, want := d.(device.Grouper).Group(p), [][]int{{0, 1, 2}, {3, 4, 5}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("groups %v, want %v", got, want)
	}
}

// Snapshots of vectors and combinations into them stay on the GPU.
func TestNetSpace(t *testing.T) {
	needDNN(t)
	d, err := openNet(NetOptions{})()
	check(t, err)
	defer func() { check(t, d.Close()) }()
	const n = 1000
	v, err := d.NewVector(n)
	check(t, err)
	defer v.Free()
	space, err := d.(*Net).NewSpace(n)
	check(t, err)
	w, err := rna.NewWindow(space, 3)
	check(t, err)
	defer func() { check(t, w.Close()) }()
	for i := range 4 {
		check(t, v.Fill(float64(i*i))) // not waited for: the space does
		check(t, w.Push(v))
	}
	if s, ok := v.(DeviceMemory); !ok {
		t.Error("a vector is not in the GPU's memory")
	} else if _, ok := s.Float32Span(1, n); ok {
		t.Error("elements behind the end are there")
	}
	check(t, w.Average(v, 2)) // of 4 and 9
	check(t, v.AddScaled(1, v))
	norm, err := v.Norm()
	check(t, err)
	if want := 13 * math.Sqrt(n); math.Abs(norm-want) > 1e-9 {
		t.Errorf("norm %v, want %v", norm, want)
	}
}
