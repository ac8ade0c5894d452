package network

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/devicetest"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

// step1 is a step of one batch.
func step1(momentum device.Vector) StepOptions {
	return StepOptions{StatsMomentum: .1, Update: device.Update{Optimizer: optim.SGD{Momentum: .9, Decay: 1e-4},
		State:   []device.Vector{momentum},
		Numbers: device.Numbers{Rate: .05, Scale: 1, Step: 1}}}
}

// A loss that is not finite ends the updates on each device: the weights and the momentum stay those of the step
// before, even if later steps with finite losses were issued already. Other weights restart the updates.
func TestGuard(t *testing.T) {
	cpu := cpuDevice(t, 2)
	for name, dev := range map[string]device.Device{
		"cpu": cpu, "reference": reference(op.Float32), "reference64": reference(op.Float64), "ahead": devicetest.Lazy(cpu),
	} {
		for _, accumulate := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, accumulate %v", name, accumulate), func(t *testing.T) {
				n := open(t, dev, "conv6", 2)
				path := filepath.Join(t.TempDir(), "weights.safetensors")
				if err := n.SaveWeights(path, n.Params, n.Stats, Meta{}); err != nil {
					t.Fatal(err)
				}
				o := step1(vector(t, n))
				update, batches := o.Update, 1 // batches of a step
				if accumulate {
					o.Sum, batches = vector(t, n), 2
				}
				var last *Pending
				step := func(k int) {
					t.Helper()
					o.First, o.Update = k%batches == 0, device.Update{}
					if k%batches == batches-1 {
						o.Update = update
					}
					p, err := n.Start(noise(4, 32, uint64(k)), o)
					if err != nil {
						t.Fatal(err)
					}
					last = p
				}
				for k := range 2 * batches {
					step(k)
				}
				good := vector(t, n)
				if err := good.Copy(n.Params); err != nil {
					t.Fatal(err)
				}
				want, momentum := numbers(t, good), numbers(t, update.State[0])
				if err := n.Params.WriteAt64([]float64{math.NaN()}, n.Params.Len()-1); err != nil {
					t.Fatal(err)
				}
				step(2 * batches)
				if loss, _, err := last.Wait(); err != nil || !math.IsNaN(loss) {
					t.Fatalf("loss %v, %v", loss, err)
				}
				if got := numbers(t, n.Params); !slices.Equal(got[:len(got)-1], want[:len(want)-1]) {
					t.Error("the step of a loss that is not finite was made")
				}
				if err := n.Params.Copy(good); err != nil {
					t.Fatal(err)
				}
				for k := range 3 {
					step(2*batches + 1 + k)
				}
				if loss, _, err := last.Wait(); err != nil || math.IsNaN(loss) {
					t.Fatalf("loss %v, %v", loss, err)
				}
				if !slices.Equal(numbers(t, n.Params), want) || !slices.Equal(numbers(t, update.State[0]), momentum) {
					t.Error("steps behind it were made")
				}
				if _, err := n.LoadWeights(path); err != nil {
					t.Fatal(err)
				}
				before := numbers(t, n.Params)
				for k := range batches {
					step(k)
				}
				if after := numbers(t, n.Params); slices.Equal(after, before) || slices.ContainsFunc(after, math.IsNaN) {
					t.Error("no step with other weights")
				}
			})
		}
	}
}

// TestReplays checks when steps are recorded: at their second run in a lane, and again after their memory has moved.
func TestReplays(t *testing.T) {
	n := open(t, devicetest.Lazy(cpuDevice(t, 2)), "conv6", 2)
	momentum, err := n.NewParams()
	if err != nil {
		t.Fatal(err)
	}
	defer momentum.Free()
	batch := noise(8, 32, 1)
	step := func(o StepOptions) {
		t.Helper()
		p, err := n.Start(batch, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	recorded := func() (k int) {
		for _, ps := range n.programs {
			for _, p := range ps {
				if p == nil {
					continue
				}
				for _, x := range p.replays {
					if x.Recorded() {
						k++
					}
				}
			}
		}
		return k
	}
	o := step1(momentum)
	for i, want := range []int{0, 0, 1, 2, 2} {
		step(o)
		if got := recorded(); got != want {
			t.Errorf("%d recordings after step %d, want %d", got, i+1, want)
		}
	}
	o.Update.Numbers.Rate, o.StatsMomentum = 1e-3, .5 // read from memory
	step(o)
	if got := recorded(); got != 2 {
		t.Errorf("%d recordings after another rate, want 2", got)
	}
	o.Update.Optimizer = optim.SGD{Momentum: .9, Decay: .1} // part of the recording
	step(o)
	step(o)
	step(o)
	if got := recorded(); got != 3 {
		t.Errorf("%d recordings after another decay, want 3", got)
	}
	spare, err := n.NewParams()
	if err != nil {
		t.Fatal(err)
	}
	spare.Free() // invalidates all recordings: the device does not say which memory was freed
	if got := recorded(); got != 0 {
		t.Errorf("%d recordings are valid after memory went, want 0", got)
	}
	step(o)
	if got := recorded(); got != 1 {
		t.Errorf("%d recordings after another step, want 1", got)
	}
	var told phases
	n.Trace(&told) // a recording does not separate the phases
	step(o)
	n.Trace(nil)
	want := []Phase{Input, Forward, Backward, Updating}
	if !slices.Equal(told.list, want) || told.late {
		t.Errorf("a step that is traced tells of the phases %v, want %v; out of order: %v", told.list, want, told.late)
	}
}

// phases records each phase of a step once.
type phases struct {
	list []Phase
	end  time.Time
	late bool // a part began before the previous part ended
}

func (p *phases) Group(x Phase, _ *device.Group, at time.Time, took time.Duration) {
	p.Part(x, at, took)
}

func (p *phases) Part(x Phase, at time.Time, took time.Duration) {
	if k := len(p.list); k == 0 || p.list[k-1] != x {
		p.list = append(p.list, x)
	}
	p.late = p.late || at.Before(p.end)
	p.end = at.Add(took)
}

// A step of one image, also where the last stage has one pixel: then there are as many factors as activations.
func TestOneImage(t *testing.T) {
	for _, size := range []int{64, 32} {
		n, err := New(cpuDevice(t, 2), "convnext_narrow", nn.Config{Classes: 2, Channels: 3, Size: size,
			Mean: []float64{.5, .5, .5}, Std: []float64{.25, .25, .25}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		o := step1(vector(t, n))
		o.First = true
		p, err := n.Start(noise(1, size, 1), o)
		if err != nil {
			t.Fatal(size, err)
		}
		if _, _, err := p.Wait(); err != nil {
			t.Error(size, err)
		}
	}
}
