package network

import (
	_ "embed"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/devicetest"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

//go:embed testdata/distill.json
var distillLosses []byte

// TestTeacherAsPyTorch repeats training in PyTorch by labels and by the logits of another net.
func TestTeacherAsPyTorch(t *testing.T) {
	var g struct {
		Size, Batch, Classes                           int
		Rate, Alpha, Temperature, Smoothing, Mean, Std float64
		Losses                                         []float64
	}
	if err := json.Unmarshal(distillLosses, &g); err != nil {
		t.Fatal(err)
	}
	cpu := cpuDevice(t, 2)
	for _, dev := range []struct {
		device.Device
		tolerance float64
	}{{reference(op.Float64), 1e-12}, {cpu, 1e-4}, {devicetest.Lazy(cpu), 1e-4}} {
		for _, soft := range []bool{false, true} {
			tolerance := dev.tolerance
			if soft { // targets are float32
				tolerance = max(tolerance, 1e-7)
			}
			config := nn.Config{Classes: g.Classes, Channels: 1, Size: g.Size}
			made := func(c nn.Config, first int) *Network {
				n, err := New(dev.Device, "conv6", c, 0)
				if err != nil {
					t.Fatal(err)
				}
				formulas(t, n, first)
				return n
			}
			own := config
			own.Teacher, own.Temperature, own.Smoothing = g.Alpha, g.Temperature, g.Smoothing
			if soft {
				own.Smoothing, own.Loss = 0, nn.SoftTargets
			}
			n := made(own, 0)
			defer n.Close()
			n.Objective(g.Smoothing, 0, nil)
			config.Mean, config.Std = []float64{g.Mean}, []float64{g.Std}
			teacher := made(config, 500)
			last := teacher.params[len(teacher.params)-2]
			x := make([]float64, last.n)
			if err := teacher.Params.ReadAt64(x, last.off); err != nil {
				t.Fatal(err)
			}
			for i := range x {
				x[i] *= 20
			}
			if err := teacher.Params.WriteAt64(x, last.off); err != nil {
				t.Fatal(err)
			}
			if err := n.Teach(teacher); err != nil {
				t.Fatal(err)
			}
			if err := n.Prepare(0, Work{Training, g.Batch, g.Size, g.Size}); err != nil {
				t.Fatal(err)
			}
			u := device.Update{Optimizer: optim.SGD{Momentum: .9}, Tensors: n.Tensors(), State: []device.Vector{vector(t, n)}}
			for step, want := range g.Losses {
				u.Numbers = device.Numbers{Rate: g.Rate, Step: float64(step + 1)}
				p, err := n.Start(integers(g.Batch, g.Size, g.Classes, step), StepOptions{Update: u, StatsMomentum: .1})
				if err != nil {
					t.Fatal(err)
				}
				got, _, err := p.Wait()
				if err != nil || math.Abs(got-want) > tolerance*want {
					t.Errorf("on %s: loss before step %d is %v, %v; want %v", dev.Name(), step+1, got, err, want)
				}
			}
		}
	}
}

// A teacher that does not fit is refused.
func TestTeachRefuses(t *testing.T) {
	dev := cpuDevice(t, 1)
	open := func(c nn.Config) *Network {
		c.Size = 8
		n, err := New(dev, "conv6", c, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		return n
	}
	for want, pair := range map[string][2]nn.Config{
		"without a weight":                  {{}, {}},
		"has 3 outputs, and conv6 has 2":    {{Teacher: .5, Temperature: 1, Classes: 2}, {Classes: 3}},
		"takes images of 1 channels, and c": {{Teacher: .5, Temperature: 1, Channels: 3}, {Channels: 1}},
	} {
		if err := open(pair[0]).Teach(open(pair[1])); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	n, other := open(nn.Config{Teacher: .5, Temperature: 1}), open(nn.Config{})
	other.Meaning.Task = data.MultiLabel
	if err := n.Teach(other); err == nil || !strings.Contains(err.Error(), "task multi-label") {
		t.Error(err)
	}
	if _, _, err := n.Gradient(noise(2, 8, 1), .1); err == nil || !strings.Contains(err.Error(), "no teacher") {
		t.Error(err)
	}
}

// Networks of other weights or statistics have other fingerprints, and devices do not change them.
func TestFingerprint(t *testing.T) {
	seen := map[string]bool{}
	of := func(n *Network) {
		s, err := n.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		seen[s] = true
	}
	for _, dev := range []device.Device{cpuDevice(t, 1), reference(op.Float32)} {
		n := open(t, dev, "conv6", 2)
		of(n)
		for _, v := range []device.Vector{n.Params, n.Stats} {
			if err := v.Fill(7); err != nil {
				t.Fatal(err)
			}
			of(n)
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d fingerprints, want 3", len(seen))
	}
}
