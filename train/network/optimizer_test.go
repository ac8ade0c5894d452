package network

import (
	_ "embed"
	"encoding/json"
	"math"
	"testing"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

//go:embed testdata/optimizers.json
var optimizerLosses []byte

// TestOptimizersAsPyTorch repeats the losses of a LeNet in PyTorch. Biases do not decay.
func TestOptimizersAsPyTorch(t *testing.T) {
	var g struct {
		Size, Batch, Classes int
		Runs                 []struct {
			Optimizer   string
			Rate, Decay float64
			Losses      []float64
		}
	}
	if err := json.Unmarshal(optimizerLosses, &g); err != nil {
		t.Fatal(err)
	}
	for _, r := range g.Runs {
		o := map[string]device.Optimizer{
			"sgd":   optim.SGD{Momentum: .9, Decay: r.Decay, Nesterov: true},
			"adamw": optim.AdamW{Beta1: .9, Beta2: .999, Eps: 1e-8, Decay: r.Decay},
			"lars":  optim.LARS{Momentum: .9, Decay: r.Decay, Trust: .002, Eps: 1e-8},
			"lamb":  optim.LAMB{Beta1: .9, Beta2: .999, Eps: 1e-6, Decay: r.Decay, ClipNorm: 1},
		}[r.Optimizer]
		for _, dev := range []struct {
			device.Device
			tolerance float64
		}{{reference(op.Float64), 1e-12}, {cpuDevice(t, 2), 2e-4}} {
			n, err := New(dev, "lenet", nn.Config{Classes: g.Classes, Channels: 1, Size: g.Size, Mean: []float64{0},
				Std: []float64{1}}, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			for k, s := range n.params {
				x := op.New(op.T(op.Float64, s.typ.Shape...))
				for i := range x.Data.([]float64) {
					x.Data.([]float64)[i] = float64((i*37+k*11)%127-63) / 256
				}
				if err := n.upload(n.Params, s, x); err != nil {
					t.Fatal(err)
				}
			}
			u := device.Update{Optimizer: o, NoDecay: n.NoDecay(), Tensors: n.Tensors()}
			for range o.State() {
				u.State = append(u.State, vector(t, n))
			}
			for step, want := range r.Losses {
				u.Numbers = device.Numbers{Rate: r.Rate / float64(1+step), Scale: 1, Step: float64(step + 1)}
				p, err := n.Start(integers(g.Batch, g.Size, g.Classes, step), StepOptions{Update: u})
				if err != nil {
					t.Fatal(err)
				}
				got, _, err := p.Wait()
				if err != nil || math.Abs(got-want) > dev.tolerance*want {
					t.Errorf("%s on %s: loss before step %d is %v, %v; want %v", r.Optimizer, dev.Name(), step+1, got, err, want)
				}
			}
		}
	}
}

// integers is the batch of a step.
func integers(n, size, classes, step int) *data.Batch {
	b := &data.Batch{N: n, Height: size, Width: size, Channels: 1, Images: make([]uint8, n*size*size),
		Crops: make([]int32, 3*n), Labels: make([]int32, n)}
	for i := range b.Images {
		b.Images[i] = uint8((i*i*7 + i*13 + step*31) % 251)
	}
	for i := range b.Labels {
		b.Labels[i] = int32((i*3 + step) % classes)
	}
	return b
}
