package network

import (
	"math"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

// TestMatrices takes steps of Muon, which needs matrices, on devices that store weights in different orders.
func TestMatrices(t *testing.T) {
	var losses [2][]float64
	for i, dev := range []device.Device{reference(op.Float64), cpuDevice(t, 2)} {
		c := nn.Config{Classes: 10, Channels: 1, Size: 28, Mean: []float64{0.5}, Std: []float64{0.5}}
		n, err := New(dev, "lenet", c, 3)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		o := optim.Muon{Momentum: .95, Beta1: .9, Beta2: .999, Eps: 1e-8, Decay: .1}
		list, err := n.Matrices(o)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		across := 0
		for _, m := range list {
			names = append(names, n.params[m.Tensor].name)
			if s := n.params[m.Tensor].typ.Shape; m.Rows != s[0] || m.Rows*m.Columns != s.Size() {
				t.Errorf("%s%v is %d×%d", n.params[m.Tensor].name, s, m.Rows, m.Columns)
			}
			if m.Transposed {
				across++
			}
		}
		if len(names) != 3 || (across > 0) != (dev.Name() == "cpu") {
			t.Errorf("%s: matrices %v, %d of them transposed", dev.Name(), names, across)
		}
		u := device.Update{Optimizer: o, NoDecay: n.NoDecay(), Tensors: n.Tensors(), Matrices: list,
			State: []device.Vector{vector(t, n), vector(t, n)}}
		for step := range 5 {
			u.Numbers = device.Numbers{Rate: 1e-2, Scale: 1, Step: float64(step + 1)}
			p, err := n.Start(integers(4, 28, 10, 0), StepOptions{Update: u})
			if err != nil {
				t.Fatal(err)
			}
			l, _, err := p.Wait()
			if err != nil {
				t.Fatal(err)
			}
			losses[i] = append(losses[i], l)
		}
	}
	for step, want := range losses[0] {
		if got := losses[1][step]; math.Abs(got-want) > 1e-3*want {
			t.Errorf("loss before step %d is %g on the CPU, want %g", step+1, got, want)
		}
	}
	if first, last := losses[0][0], losses[0][4]; !(last < .9*first) {
		t.Errorf("losses %v", losses[0])
	}
}
