//go:build gpu && cgo

package net

import (
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

// After the first step, a training step is launches, copies on the GPU, two copies to it, one of the loss, and a wait.
// Each copy waits because the host memory is not pinned here. Nothing is allocated, described or compiled: the stand-in
// counts.
func TestNetSteadyStep(t *testing.T) {
	gputest.NeedDNN(t)
	dev, err := openNet(Options{})()
	check(t, err)
	t.Cleanup(func() { check(t, dev.Close()) })

	g := G.NewGraph()
	value := func(name string, shape ...int) *G.Node {
		return G.NewTensor(g, tensor.Float32, len(shape), G.WithName(name), G.WithShape(shape...))
	}
	apply := func(name string, o op.Op, in ...*G.Node) *G.Node {
		t.Helper()
		n, err := nn.Apply(name, o, in...)
		check(t, err)
		return n
	}
	x, labels := value("x", 4, 3, 8, 8), G.NewVector(g, tensor.Int32, G.WithName("labels"), G.WithShape(4))
	params := G.Nodes{value("w", 8, 3, 3, 3), value("scale", 8), value("bias", 8), value("fc", 5, 8)}
	y := apply("conv", op.Conv2D{Pad: [2]int{1, 1}}, x, params[0])
	y = apply("relu", op.ReLU{}, apply("bn", op.BatchNorm{Eps: 1e-5}, y, apply("stats", op.BatchNormStats{}, y),
		params[1], params[2]))
	loss := apply("loss", op.SoftmaxCrossEntropy{}, apply("fc", op.Linear{}, apply("pool", op.GlobalAvgPool{}, y),
		params[3]), labels)
	grads, err := nn.Grad(loss, params...)
	check(t, err)

	vector := func() device.Vector {
		v, err := dev.NewVector(8*27 + 8 + 8 + 40)
		check(t, err)
		t.Cleanup(v.Free)
		check(t, v.Fill(.1))
		return v
	}
	weights, gradient, momentum := vector(), vector(), vector()
	bind := map[*G.Node]machine.Binding{}
	off := 0
	for i, p := range params {
		typ := op.T(op.Float32, p.Shape()...)
		n := typ.Shape.Size()
		bind[p] = machine.Binding{Region: weights.Region(off, n), Layout: dev.Layout(typ, device.Weight)}
		bind[grads[i]] = machine.Binding{Region: gradient.Region(off, n), Layout: dev.Layout(typ, device.Weight)}
		off += n
	}
	m, err := machine.New(g, machine.Config{Device: dev, Keep: G.Nodes{loss}, Bind: bind})
	check(t, err)
	defer func() { check(t, m.Close()) }()

	allowed := []string{"cuLaunchKernel", "cublasSgemm_v2", "cudnnBackendExecute",
		"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"}
	calls := func() (all uint64, each []uint64) {
		for _, f := range allowed {
			each = append(each, sim.Calls(f))
		}
		return sim.Calls(""), each
	}
	images, one, last := op.New(op.T(op.Float32, 4, 3, 8, 8)), op.New(op.T(op.Int32, 4)), op.New(op.T(op.Float32))
	for i := range images.Data.([]float32) {
		images.Data.([]float32)[i] = float32(i%7) / 7
	}
	for step := range 3 {
		before, beforeEach := calls()
		check(t, m.Write(x, images))
		check(t, m.Write(labels, one))
		check(t, m.Run())
		check(t, weights.Update(device.Update{Optimizer: optim.SGD{Decay: 1e-4}, Grad: gradient,
			State:   []device.Vector{momentum},
			NoDecay: []device.Span{{Off: 216, Len: 16}}, Numbers: device.Numbers{Rate: .1, Scale: 1, Step: 1}}))
		check(t, m.Read(last, loss))
		after, afterEach := calls()
		if step == 0 || !sim.Active() {
			continue
		}
		if after-before < 10 {
			t.Errorf("step %d: %d calls: they are not counted", step, after-before)
		}
		known := uint64(0)
		for i, n := range afterEach {
			d := n - beforeEach[i]
			known += d
			if most := map[string]uint64{"cuMemcpyHtoDAsync_v2": 2, "cuMemcpyDtoHAsync_v2": 1,
				"cuStreamSynchronize": 4}[allowed[i]]; most > 0 && d > most {
				t.Errorf("step %d: %d calls of %s, want %d at most", step, d, allowed[i], most)
			}
		}
		if after-before != known {
			t.Errorf("step %d: %d calls beside %v", step, after-before-known, allowed)
		}
		t.Logf("step %d: %d calls, loss %v", step, after-before, last.Data)
	}
}
