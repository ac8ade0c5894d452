//go:build gpu && cgo

package net

import (
	"fmt"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/number"
	"onlinerna/data"
	"onlinerna/data/random"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/optim"
	"onlinerna/train/network"
)

// The work that the device reports equals the stand-in's counts: each piece of a training step is one launch or call,
// with the same bytes read and written. Only the stand-in of `make check-sim` counts kernels' bytes; a card counts
// nothing.
func TestObserve(t *testing.T) {
	gputest.NeedDNN(t)
	type net struct {
		model     string
		size      int
		precision number.Precision
		fuse      Fuse
	}
	nets := []net{{"lenet", 28, number.BFloat16, FuseTimed}, {"resnet20", 16, number.Float16, FuseNever},
		{"resnet20", 16, number.BFloat16, FuseAlways},
		{bottlenecks, 8, number.Float16, FuseAlways}}
	if sim.Checked() { // which takes minutes
		nets = append(nets, net{"resnet50", 32, number.BFloat16, FuseAlways})
	}
	for _, c := range nets {
		t.Run(fmt.Sprintf("%s/%v", c.model, c.precision), func(t *testing.T) {
			o := Options{Precision: c.precision, Eager: true, Fuse: c.fuse}
			o.Context.KernelCache = gputest.KernelCache
			dev, err := Open(0, o)
			check(t, err)
			defer func() { check(t, dev.Close()) }()
			cfg := nn.Config{Size: c.size, Mean: []float64{.5}, Std: []float64{.25}}
			net, err := network.New(dev, c.model, cfg, 1)
			check(t, err)
			defer func() { check(t, net.Close()) }()
			momentum, err := net.NewParams()
			check(t, err)
			defer momentum.Free()
			cfg = net.Model().Config
			b := &data.Batch{N: 2, Height: cfg.Size, Width: cfg.Size, Channels: cfg.Channels, Crops: make([]int32, 6),
				Labels: make([]int32, 2)}
			r := random.New(1)
			for range 2 * cfg.Size * cfg.Size * cfg.Channels {
				b.Images = append(b.Images, uint8(r.Uint64()))
			}
			step := func() {
				p, err := net.Start(b, network.StepOptions{StatsMomentum: .1,
					Update: device.Update{Optimizer: optim.SGD{Momentum: .9},
						State: []device.Vector{momentum}, NoDecay: net.NoDecay(),
						Numbers: device.Numbers{Rate: .01, Scale: 1, Step: 1}}})
				check(t, err)
				_, _, err = p.Wait()
				check(t, err)
			}
			for range net.Ahead() + 1 {
				step()
			}
			calls := map[string]uint64{}
			counted := func(name string) uint64 { return sim.Calls(name) - calls[name] }
			for _, name := range []string{"cuLaunchKernel", "cudnnBackendExecute", "cublasGemmEx", "cuMemsetD8Async",
				"cuMemcpyDtoDAsync_v2"} {
				calls[name] = sim.Calls(name)
			}
			kinds := map[string]uint64{}
			var of, found [2]int64
			check(t, dev.Observe(func(g *device.Group, w device.Work, give func() error) error {
				kind := "cuLaunchKernel"
				switch {
				case strings.HasPrefix(w.Name, "cublas"):
					kind = w.Name
				case w.FLOP > 0:
					kind = "cudnnBackendExecute"
				case w.Name == "fill":
					kind = "cuMemsetD8Async"
				case w.Name == "copy":
					kind = "cuMemcpyDtoDAsync_v2"
				case strings.HasPrefix(w.Name, "copy"):
					return give()
				}
				kinds[kind]++
				of[0], of[1] = of[0]+w.Read, of[1]+w.Write
				if !sim.Active() || kind == "cuLaunchKernel" && !sim.Checked() {
					return give()
				}
				check(t, dev.stream.Synchronize())
				r, written := sim.Moved()
				if err := give(); err != nil {
					return err
				}
				check(t, dev.stream.Synchronize())
				r2, written2 := sim.Moved()
				for i, n := range [2][2]int64{{w.Read, r2 - r}, {w.Write, written2 - written}} {
					found[i] += n[1]
					// The report leaves out little: counters, sums that the same block reads again, unused rows of
					// tables.
					if off := n[0] - n[1]; max(off, -off) > n[1]/50+2048 {
						t.Errorf("%v: %s: %s of %d bytes, the stand-in counts %d", g, w.Name,
							[]string{"reads", "writes"}[i], n[0], n[1])
					}
				}
				return nil
			}))
			step()
			check(t, dev.Observe(nil))
			for name, n := range kinds {
				if sim.Active() && n != counted(name) {
					t.Errorf("%d calls of %s, the stand-in counts %d", n, name, counted(name))
				}
			}
			if kinds["cudnnBackendExecute"] == 0 || kinds["cuLaunchKernel"] == 0 || of[0] == 0 {
				t.Errorf("calls %v, %d bytes", kinds, of)
			}
			t.Logf("%v, bytes read and written %d, counted %d", kinds, of, found)
		})
	}
}
