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
	"onlinerna/data"
	"onlinerna/data/random"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/optim"
	"onlinerna/train/network"
)

// trainer is a small net with BatchNorm on a device, with everything that training needs.
type trainer struct {
	*network.Network
	momentum, sum device.Vector
}

func newTrainer(t *testing.T, dev device.Device) *trainer {
	t.Helper()
	net, err := network.New(dev, "conv6", nn.Config{Classes: 4, Channels: 3, Size: 8, Mean: []float64{.5, .5, .5},
		Std: []float64{.25, .25, .25}}, 1)
	check(t, err)
	x := &trainer{Network: net}
	x.momentum, err = net.NewParams()
	check(t, err)
	x.sum, err = net.NewParams()
	check(t, err)
	t.Cleanup(func() {
		x.momentum.Free()
		x.sum.Free()
		check(t, net.Close())
	})
	return x
}

// batchOf is a batch of n images of noise.
func batchOf(n int, seed uint64) *data.Batch {
	r := random.New(seed)
	const size = 8
	b := &data.Batch{N: n, Height: size, Width: size, Channels: 3, Images: make([]uint8, n*size*size*3),
		Crops: make([]int32, 3*n), Labels: make([]int32, n)}
	for i := range b.Images {
		b.Images[i] = uint8(r.Uint64())
	}
	for i := range b.Labels {
		b.Labels[i], b.Crops[3*i+2] = int32(r.Uint64()%4), int32(r.Uint64()%2)
	}
	return b
}

// options are the options of a step at a learning rate.
func (x *trainer) options(rate float64) network.StepOptions {
	return network.StepOptions{StatsMomentum: .1, Update: device.Update{Optimizer: optim.SGD{Momentum: .9, Decay: 1e-3},
		State: []device.Vector{x.momentum}, NoDecay: x.NoDecay(),
		Numbers: device.Numbers{Rate: rate, Scale: 1, Step: 1}}}
}

// exercise trains and evaluates in all ways, and returns the resulting numbers.
func (x *trainer) exercise(t *testing.T) (all []float64) {
	t.Helper()
	var last *network.Pending
	settle := func(next *network.Pending) {
		if last != nil {
			l, score, err := last.Wait()
			check(t, err)
			all = append(all, l, score.Loss, score.Top1, score.Top5)
		}
		last = next
	}
	step := func(n, seed int, o network.StepOptions) {
		p, err := x.Start(batchOf(n, uint64(seed)), o)
		check(t, err)
		settle(p)
	}
	for i := range 8 { // with different learning rates and a smaller last batch
		n := 6
		if i%4 == 3 {
			n = 3
		}
		step(n, i, x.options(.02/float64(i+1)))
	}
	for i := range 9 { // three batches a step
		o := x.options(.01)
		o.Sum, o.First = x.sum, i%3 == 0
		if o.Update.Optimizer, o.Update.Numbers.Scale = (optim.SGD{Momentum: .9, Decay: 1e-3, Nesterov: true}),
			1./float64(18-i/3); i%3 != 2 {
			o.Update = device.Update{}
		}
		step(6, 100+i, o)
	}
	settle(nil)
	for i := range 4 {
		check(t, x.UpdateStats(batchOf(6, uint64(200+i)), 1/float64(i+1)))
	}
	logits := make([]float32, 4*6)
	for i := range 4 {
		score, err := x.Evaluate(batchOf(6, uint64(300+i)), logits)
		check(t, err)
		all = append(all, score.Loss, score.Top1, score.Top5)
	}
	for _, l := range logits {
		all = append(all, float64(l))
	}
	l, _, err := x.Gradient(batchOf(10, 400), .1) // larger than all before: arena and lanes grow
	check(t, err)
	all = append(all, l)
	for i := range 4 {
		step(6, 500+i, x.options(.01))
	}
	settle(nil)
	x.momentum.Free() // and another vector replaces it
	x.momentum, err = x.NewParams()
	check(t, err)
	for i := range 4 {
		step(6, 600+i, x.options(.01))
	}
	settle(nil)
	for _, v := range []device.Vector{x.Params, x.Stats, x.momentum, x.sum} {
		numbers := make([]float64, v.Len())
		check(t, v.ReadAt64(numbers, 0))
		all = append(all, numbers...)
	}
	return all
}

// Captured and replayed steps give the same bits as others, in each precision.
func TestNetReplay(t *testing.T) {
	gputest.NeedDNN(t)
	for _, p := range []number.Precision{number.Float32, number.BFloat16, number.Float16} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			gputest.Ran(t, gputest.Replayed, p)
			exercise := func(o Options) []float64 {
				o.Precision = p
				dev, err := openNet(o)()
				check(t, err)
				t.Cleanup(func() { check(t, dev.Close()) })
				x := newTrainer(t, dev)
				before := sim.Calls("cuGraphLaunch")
				all := x.exercise(t)
				eager := o.DebugSync || o.Eager
				if launched := sim.Calls("cuGraphLaunch") - before; sim.Active() &&
					(eager && launched != 0 || !eager && launched < 15) {
					t.Errorf("%+v: %d graphs launched", o, launched)
				}
				return all
			}
			same := func(what string, got, want []float64) {
				for i, w := range want {
					if got[i] != w || math.IsNaN(w) {
						t.Fatalf("number %d of %d is %v when %s, %v with a wait after each op", i, len(want), got[i],
							what, w)
					}
				}
			}
			waiting := exercise(Options{DebugSync: true})
			same("replayed", exercise(Options{}), waiting)
			if p == number.Float32 {
				same("eager", exercise(Options{Eager: true}), waiting)
			}
		})
	}
}

// After a loss that is not finite no step changes the weights, in each precision, also if steps are replayed and were
// issued before the loss was known.
func TestNetGuard(t *testing.T) {
	gputest.NeedDNN(t)
	for _, p := range []number.Precision{number.Float32, number.BFloat16, number.Float16} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			dev, err := openNet(Options{Precision: p})()
			check(t, err)
			t.Cleanup(func() { check(t, dev.Close()) })
			x := newTrainer(t, dev)
			read := func(v device.Vector) []float64 {
				numbers := make([]float64, v.Len())
				check(t, v.ReadAt64(numbers, 0))
				return numbers
			}
			step := func(k int) *network.Pending {
				p, err := x.Start(batchOf(6, uint64(k)), x.options(.01))
				check(t, err)
				return p
			}
			for k := range 6 {
				step(k)
			}
			good, err := x.NewParams()
			check(t, err)
			defer good.Free()
			check(t, good.Copy(x.Params))
			weights, momentum := read(good), read(x.momentum)
			check(t, x.Params.WriteAt64([]float64{math.NaN()}, x.Params.Len()-1))
			broken := step(6)
			check(t, x.Params.Copy(good))
			last := step(7)
			if loss, _, err := broken.Wait(); err != nil || !math.IsNaN(loss) {
				t.Fatalf("loss %v, %v", loss, err)
			}
			if loss, _, err := last.Wait(); err != nil || math.IsNaN(loss) {
				t.Fatalf("loss %v, %v", loss, err)
			}
			if !slices.Equal(read(x.Params), weights) || !slices.Equal(read(x.momentum), momentum) {
				t.Error("steps were made")
			}
			check(t, x.Reset(1))
			weights = read(x.Params)
			step(8)
			if slices.Equal(read(x.Params), weights) {
				t.Error("no step with other weights")
			}
		})
	}
}

// A steady step is one launch of a graph, one copy of its input and the ordering of two streams, without allocations or
// waits for the stream. The stand-in counts.
func TestNetReplaySteady(t *testing.T) {
	gputest.NeedDNN(t)
	dev, err := openNet(Options{})()
	check(t, err)
	t.Cleanup(func() { check(t, dev.Close()) })
	x := newTrainer(t, dev)
	want := map[string]uint64{"cuGraphLaunch": 1, "cuMemcpyHtoDAsync_v2": 1, "cuEventRecord": 2, "cuStreamWaitEvent": 1,
		"cuEventSynchronize": 1}
	var last *network.Pending
	for i := range 8 {
		b := batchOf(6, uint64(i))
		all, each := sim.Calls(""), map[string]uint64{}
		for f := range want {
			each[f] = sim.Calls(f)
		}
		p, err := x.Start(b, x.options(.1/float64(i+1)))
		check(t, err)
		if last != nil {
			_, _, err := last.Wait()
			check(t, err)
		}
		last = p
		if i < 4 || !sim.Active() { // both lanes warm up and capture
			continue
		}
		sum := uint64(0)
		for f, n := range want {
			if got := sim.Calls(f) - each[f]; got != n {
				t.Errorf("step %d: %d calls of %s, want %d", i, got, f, n)
			}
			sum += n
		}
		if got := sim.Calls("") - all; got != sum {
			t.Errorf("step %d: %d calls, want %d", i, got, sum)
		}
	}
}

// A refused capture only costs speed: later steps run kernel by kernel, to the same bits, and one warning gives the
// reason.
func TestFaultOfCapture(t *testing.T) {
	fault(t, "")
	gputest.NeedDNN(t)
	want := fewSteps(t, Options{}, "")
	for _, test := range []struct{ plan, why string }{
		{"cuStreamBeginCapture_v2@1=400", "cuStreamBeginCapture"},
		{"cuLaunchKernel@5=1", "cuLaunchKernel"},
		{"cudnnBackendExecute@2=4000", "cudnnBackendExecute"},
		{"cuStreamEndCapture@1=901", "cuStreamEndCapture"},
		{"cuGraphInstantiateWithFlags@1=2", "cuGraphInstantiateWithFlags"},
	} {
		t.Run(test.plan, func(t *testing.T) {
			before := sim.Leaks()
			var warned []string
			if got := fewSteps(t, Options{Warn: func(s string) { warned = append(warned, s) }},
				test.plan); !slices.Equal(got, want) {
				t.Errorf("losses %v, want %v", got, want)
			}
			if len(warned) != 1 || !strings.Contains(warned[0], "kernel by kernel") ||
				!strings.Contains(warned[0], test.why) {
				t.Errorf("warned %q; want once, of %s", warned, test.why)
			}
			if after := sim.Leaks(); after != before {
				t.Errorf("leaked: %s", after)
			}
		})
	}
}

// smallNet is a net to train on dev; end closes both.
func smallNet(t *testing.T, o Options) (x *trainer, end func()) {
	dev, err := openNet(o)()
	check(t, err)
	net, err := network.New(dev, "conv6", nn.Config{Classes: 4, Channels: 3, Size: 8, Mean: []float64{.5, .5, .5},
		Std: []float64{.25, .25, .25}}, 1)
	check(t, err)
	x = &trainer{Network: net}
	x.momentum, err = net.NewParams()
	check(t, err)
	return x, func() {
		x.momentum.Free()
		_, _ = net.Close(), dev.Close() // they may repeat the error
	}
}

// fewSteps trains some steps, with a plan of faults after the first two, and returns the losses.
func fewSteps(t *testing.T, o Options, plan string) (losses []float64) {
	x, end := smallNet(t, o)
	defer end()
	for i := range 6 {
		if i == 2 {
			check(t, sim.Fault(plan))
		}
		p, err := x.Start(batchOf(6, uint64(i)), x.options(.1))
		check(t, err)
		loss, _, err := p.Wait()
		check(t, err)
		losses = append(losses, loss)
	}
	check(t, sim.Fault(""))
	return losses
}

// A GPU failure in a replay is an error that names the running work and a remedy.
func TestFaultOfReplay(t *testing.T) {
	fault(t, "")
	gputest.NeedDNN(t)
	for _, test := range []struct{ plan, want string }{
		{"cuGraphLaunch@1=1", "replay"},
		{"cuGraphLaunch@3=719,later", "--debug-sync"},
		{"cuGraphLaunch@2=719,sticky", "--debug-sync"},
		{"cuMemcpyHtoDAsync_v2@3=719,later", "--debug-sync"},
		{"cuEventRecord@4=721,sticky", "--debug-sync"},
		{"cuEventSynchronize@2=719", "--debug-sync"},
	} {
		t.Run(test.plan, func(t *testing.T) {
			if strings.HasSuffix(test.plan, "=1") {
				failReplay(t, test.plan, test.want)
			} else {
				gputest.Alone(t, "", func(string) { failReplay(t, test.plan, test.want) })
			}
		})
	}
}

func failReplay(t *testing.T, plan, want string) {
	before := sim.Leaks()
	x, end := smallNet(t, Options{})
	var last *network.Pending
	run := func() error {
		for i := range 10 {
			if i == 2 {
				check(t, sim.Fault(plan))
			}
			p, err := x.Start(batchOf(6, uint64(i)), x.options(.1))
			if err == nil && last != nil {
				_, _, err = last.Wait()
			}
			if err != nil {
				return err
			}
			last = p
		}
		return nil
	}
	err := run()
	if err == nil || !strings.Contains(err.Error(), "conv6, training at batch 6") ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v; want one about %s", err, want)
	}
	check(t, sim.Fault(""))
	end()
	if after := sim.Leaks(); after != before && !errors.Is(err, driver.ErrLost) {
		t.Errorf("leaked: %s", after)
	}
}
