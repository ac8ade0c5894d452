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
	"onlinerna/cuda/space"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
	"onlinerna/rna"
)

// product is a 1×1 convolution of a picture of ones with the last of a vector's weights: its result shows the weights
// used.
type product struct {
	d       device.Device
	weights device.Vector
	run     device.Kernel
	y       device.Region
	value   device.Value
}

func newProduct(t *testing.T, d device.Device, weights device.Vector) *product {
	t.Helper()
	const channels = 8
	x, w := op.T(op.Float32, 1, channels, 1, 1), op.T(op.Float32, 1, channels, 1, 1)
	g := &device.Group{Steps: []device.Step{{Name: "conv", Op: op.Conv2D{}, In: []int{0, 1}, Out: 2}},
		Inputs: []int{0, 1}, Outputs: []int{2}}
	for i, v := range []op.Type{x, w, op.T(op.Float32, 1, 1, 1, 1)} {
		l := d.Layout(v, device.Role(i%2))
		g.Values = append(g.Values, device.Value{Name: fmt.Sprint(i), Type: v, Layout: l, Bytes: device.Bytes(d, v, l)})
	}
	p, err := d.Describe(g)
	check(t, err)
	memory := func(n int) device.Region {
		m, err := d.NewMemory(max(n, 1))
		check(t, err)
		t.Cleanup(m.Free)
		return device.Region{Memory: m, Bytes: n}
	}
	ones := op.New(x)
	for i := range channels {
		ones.Data.([]float32)[i] = 1
	}
	in := memory(g.Values[0].Bytes)
	check(t, d.Upload(in, g.Values[0].Layout, ones))
	r := &product{d: d, weights: weights, y: memory(p.Outputs[0].Bytes), value: g.Values[2]}
	r.value.Layout = p.Outputs[0].Layout
	r.run, err = d.Bind(g, p, device.Args{
		In: []device.Region{in, weights.Region(weights.Len()-channels, channels)}, Out: []device.Region{r.y},
		Workspace: memory(p.Workspace),
	})
	check(t, err)
	return r
}

// sum returns the convolution's result: the sum of the weights.
func (r *product) sum(t *testing.T) float64 {
	t.Helper()
	check(t, r.run())
	y := op.New(op.T(op.Float64, 1, 1, 1, 1))
	check(t, r.d.Download(y, r.y, r.value.Layout))
	return y.Data.([]float64)[0]
}

// Products use the current weights, whoever wrote them: the weights' 16-bit copy is never outdated.
func TestNarrowCopy(t *testing.T) {
	gputest.NeedDNN(t)
	for _, p := range []number.Precision{number.BFloat16, number.Float16} {
		for _, n := range []int{16, 21} { // with a copy at cuDNN's alignment, and not
			t.Run(fmt.Sprintf("%v/%d", p, n), func(t *testing.T) {
				d, err := openNet(Options{Precision: p})()
				check(t, err)
				t.Cleanup(func() { check(t, d.Close()) })
				vector := func(a float64) device.Vector {
					v, err := d.NewVector(n)
					check(t, err)
					t.Cleanup(v.Free)
					check(t, v.Fill(a))
					return v
				}
				w, other, momentum := vector(1), vector(3), vector(0)
				sum := newProduct(t, d, w)
				vectors, err := space.New(d.(*Device).Context(), n, space.Options{})
				check(t, err)
				window, err := rna.NewWindow(vectors, 3)
				check(t, err)
				defer func() { check(t, errors.Join(window.Close(), vectors.Close())) }()
				check(t, window.Push(vector(5)))
				check(t, window.Push(vector(6)))
				check(t, window.Push(vector(7)))
				host := slices.Repeat([]float32{9}, n)
				for _, write := range []struct {
					name string
					by   func() error
					want float64
				}{
					{"nobody", func() error { return nil }, 8},
					{"Fill", func() error { return w.Fill(2) }, 16},
					{"Copy", func() error { return w.Copy(other) }, 24},
					{"AddScaled", func() error { return w.AddScaled(2, other) }, 72},
					{"WriteAt", func() error { return w.WriteAt(host[:8], n-8) }, 72},
					{"WriteAt64", func() error { return w.WriteAt64([]float64{1}, n-1) }, 64},
					{"SGD", func() error { return w.Update(sgd(other, momentum, 0, 1)) }, 40},
					{"Upload", func() error {
						return d.Upload(w.Region(0, n), "", op.Tensor{Shape: op.Shape{n},
							Data: slices.Repeat([]float32{4}, n)})
					}, 32},
					{"Average", func() error { return window.Average(w, 2) }, 52},
				} {
					check(t, write.by())
					if got := sum.sum(t); got != write.want {
						t.Errorf("after %s: the weights sum up to %v, want %v", write.name, got, write.want)
					}
				}
			})
		}
	}
}

// A gradient that is not finite skips the step and halves the scale; enough good steps double it.
func TestLossScale(t *testing.T) {
	gputest.NeedDNN(t)
	dev, err := openNet(Options{Precision: number.Float16})()
	check(t, err)
	t.Cleanup(func() { check(t, dev.Close()) })
	d := dev.(*Device)
	const n = 300
	vector := func(a float64) device.Vector {
		v, err := d.NewVector(n)
		check(t, err)
		t.Cleanup(v.Free)
		check(t, v.Fill(a))
		return v
	}
	w, g, m := vector(1), vector(1), vector(1)
	state := func(want device.LossScale, weight float64) {
		t.Helper()
		s, err := d.LossScale()
		check(t, err)
		if s != want {
			t.Errorf("scale %+v, want %+v", s, want)
		}
		x := make([]float64, n)
		check(t, w.ReadAt64(x, 0))
		if i := slices.IndexFunc(x, func(a float64) bool { return a != weight }); i >= 0 {
			t.Errorf("weight %d is %v, want %v", i, x[i], weight)
		}
	}
	step := func() {
		t.Helper()
		check(t, w.Update(sgd(g, m, .5, .5)))
	}
	state(device.LossScale{Scale: firstScale}, 1)
	step() // momentum 1.5
	state(device.LossScale{Scale: firstScale, Good: 1}, .25)
	for i, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		check(t, g.WriteAt64([]float64{bad}, []int{0, n / 2, n - 1}[i]))
		step()
		state(device.LossScale{Scale: firstScale / math.Pow(2, float64(i+1)), Skipped: i + 1}, .25)
		check(t, g.Fill(1))
	}
	check(t, d.SetLossScale(device.LossScale{Scale: 8, Good: scaleInterval - 2, Skipped: 3}))
	step() // momentum 1.75
	state(device.LossScale{Scale: 8, Good: scaleInterval - 1, Skipped: 3}, -.625)
	step() // momentum 1.875
	state(device.LossScale{Scale: 16, Skipped: 3}, -1.5625)
	for _, s := range []device.LossScale{{}, {Scale: 3}, {Scale: -2}, {Scale: math.Inf(1)},
		{Scale: 1, Good: scaleInterval}, {Scale: 1, Skipped: -1}} {
		if err := d.SetLossScale(s); err == nil {
			t.Errorf("scale %+v is no error", s)
		}
	}
	other, err := openNet(Options{Precision: number.BFloat16})()
	check(t, err)
	defer func() { check(t, other.Close()) }()
	if s, err := other.(*Device).LossScale(); err != nil || s != (device.LossScale{}) {
		t.Errorf("scale %+v, %v in bfloat16", s, err)
	}
	if err := other.(*Device).SetLossScale(device.LossScale{Scale: 8}); err == nil {
		t.Error("a scale in bfloat16 is no error")
	}
}

// Precisions that a card lacks are errors, and so is a failure to make the loss scale.
func TestPrecisionsOfCards(t *testing.T) {
	for p, ok := range map[number.Precision]bool{number.Float32: true, number.TF32: false, number.BFloat16: false,
		number.Float16: true} {
		if err := supports(driver.Info{Major: 7, Minor: 5}, p); (err == nil) != ok || err != nil &&
			!strings.Contains(err.Error(), "sm_75 lacks "+p.String()) {
			t.Errorf("%v on sm_75: %v", p, err)
		}
		if err := supports(driver.Info{Major: 8}, p); err != nil {
			t.Errorf("%v on sm_80: %v", p, err)
		}
	}
}

func TestNoPrecision(t *testing.T) {
	if err := supports(driver.Info{Major: 9}, number.Float16+1); err == nil {
		t.Error("a precision that is none is no error")
	}
}

func TestFaultOfLossScale(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	for _, f := range []string{"cuMemAlloc_v2@0=2", "cuMemcpyHtoDAsync_v2@1=400"} {
		before := sim.Leaks()
		check(t, sim.Fault(f))
		if _, err := openNet(Options{Precision: number.Float16})(); err == nil {
			t.Errorf("%s fails and the device opens", f)
		}
		check(t, sim.Fault(""))
		if after := sim.Leaks(); after != before {
			t.Errorf("%s: leaked: %s", f, after)
		}
	}
}

// sgd is a step of SGD.
func sgd(grad, state device.Vector, momentum, rate float64) device.Update {
	return device.Update{Optimizer: optim.SGD{Momentum: momentum}, Grad: grad, State: []device.Vector{state},
		Numbers: device.Numbers{Rate: rate, Scale: 1, Step: 1}}
}
