//go:build gpu && cgo

package cuda

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/sim"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/rna"
)

func TestNarrow(t *testing.T) {
	for _, test := range []struct {
		p    Precision
		x    float32
		bits uint16
	}{
		{BFloat16, 1, 0x3f80}, {BFloat16, 1 + 0x1p-8, 0x3f80}, {BFloat16, 1 + 0x3p-8, 0x3f82}, {BFloat16, -3e38, 0xff62},
		{BFloat16, math.MaxFloat32, 0x7f80}, {BFloat16, 1e-42, 0}, {BFloat16, float32(math.Inf(-1)), 0xff80},
		{Float16, 1, 0x3c00}, {Float16, 1 + 0x1p-11, 0x3c00}, {Float16, 1 + 0x3p-11, 0x3c02}, {Float16, 65504, 0x7bff}, {Float16, 65519, 0x7bff},
		{Float16, 65520, 0x7c00}, {Float16, -0x1p-24, 0x8001}, {Float16, 0x1p-25, 0}, {Float16, 0x3p-26, 1}, {Float16, 0x1p-14, 0x400},
	} {
		if got := narrowed(test.p, []float32{test.x})[0]; got != test.bits {
			t.Errorf("%v: %v is %#04x, want %#04x", test.p, test.x, got, test.bits)
		}
	}
	for _, p := range []Precision{BFloat16, Float16} {
		for u := range uint16(math.MaxUint16) {
			if f := widened(p, []uint16{u}); f[0] == f[0] && narrowed(p, f)[0] != u {
				t.Fatalf("%v: %#04x is %v, and that %#04x", p, u, f[0], narrowed(p, f)[0])
			}
		}
		if f := widened(p, narrowed(p, []float32{float32(math.NaN())})); f[0] == f[0] {
			t.Errorf("%v: NaN is %v", p, f[0])
		}
	}
}

// product is a 1×1 convolution of a picture of ones with the last of a vector's weights: it shows what is multiplied.
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
	g := &device.Group{Steps: []device.Step{{Name: "conv", Op: op.Conv2D{}, In: []int{0, 1}, Out: 2}}, Inputs: []int{0, 1}, Outputs: []int{2}}
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
		In: []device.Region{in, weights.Region(weights.Len()-channels, channels)}, Out: []device.Region{r.y}, Workspace: memory(p.Workspace),
	})
	check(t, err)
	return r
}

// sum is what the convolution makes of the weights: their sum.
func (r *product) sum(t *testing.T) float64 {
	t.Helper()
	check(t, r.run())
	y := op.New(op.T(op.Float64, 1, 1, 1, 1))
	check(t, r.d.Download(y, r.y, r.value.Layout))
	return y.Data.([]float64)[0]
}

// Whoever writes the weights, what is multiplied are those: they have a copy in 16 bits, which must not be old.
func TestNarrowCopy(t *testing.T) {
	needDNN(t)
	for _, p := range []Precision{BFloat16, Float16} {
		for _, n := range []int{16, 21} { // where the copy is as cuDNN needs it, and where it is not
			t.Run(fmt.Sprintf("%v/%d", p, n), func(t *testing.T) {
				d, err := openNet(NetOptions{Precision: p})()
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
				space, err := d.(*Net).NewSpace(n)
				check(t, err)
				window, err := rna.NewWindow(space, 3)
				check(t, err)
				defer func() { check(t, window.Close()) }()
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
					{"SGD", func() error { return w.SGD(other, momentum, device.SGD{Rate: 1, Scale: 1}) }, 40},
					{"Upload", func() error {
						return d.Upload(w.Region(0, n), "", op.Tensor{Shape: op.Shape{n}, Data: slices.Repeat([]float32{4}, n)})
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

// A gradient that is not finite skips the step and halves the scale; so many good steps double it.
func TestLossScale(t *testing.T) {
	needDNN(t)
	dev, err := openNet(NetOptions{Precision: Float16})()
	check(t, err)
	t.Cleanup(func() { check(t, dev.Close()) })
	d := dev.(*Net)
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
		check(t, w.SGD(g, m, device.SGD{Rate: .5, Momentum: .5, Scale: 1}))
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
	for _, s := range []device.LossScale{{}, {Scale: 3}, {Scale: -2}, {Scale: math.Inf(1)}, {Scale: 1, Good: scaleInterval}, {Scale: 1, Skipped: -1}} {
		if err := d.SetLossScale(s); err == nil {
			t.Errorf("scale %+v is no error", s)
		}
	}
	other, err := openNet(NetOptions{Precision: BFloat16})()
	check(t, err)
	defer func() { check(t, other.Close()) }()
	if s, err := other.(*Net).LossScale(); err != nil || s != (device.LossScale{}) {
		t.Errorf("scale %+v, %v in bfloat16", s, err)
	}
	if err := other.(*Net).SetLossScale(device.LossScale{Scale: 8}); err == nil {
		t.Error("a scale in bfloat16 is no error")
	}
}

// Precisions that a card does not have are errors, and so is what fails when the scale of the loss is made.
func TestPrecisionsOfCards(t *testing.T) {
	for p, ok := range map[Precision]bool{Float32: true, TF32: false, BFloat16: false, Float16: true} {
		if err := p.on(Info{Major: 7, Minor: 5}); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "sm_75 has no "+p.String()) {
			t.Errorf("%v on sm_75: %v", p, err)
		}
		if err := p.on(Info{Major: 8}); err != nil {
			t.Errorf("%v on sm_80: %v", p, err)
		}
	}
}

func TestFaultOfLossScale(t *testing.T) {
	needDNN(t)
	fault(t, "")
	for _, f := range []string{"cuMemAlloc_v2@0=2", "cuMemcpyHtoDAsync_v2@1=400"} {
		before := sim.Leaks()
		check(t, sim.Fault(f))
		if _, err := openNet(NetOptions{Precision: Float16})(); err == nil {
			t.Errorf("%s fails and the device opens", f)
		}
		check(t, sim.Fault(""))
		if after := sim.Leaks(); after != before {
			t.Errorf("%s: leaked: %s", f, after)
		}
	}
}
