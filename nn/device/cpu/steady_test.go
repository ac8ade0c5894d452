package cpu

import (
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

// network is a small net with its gradients that has each op of this device at least once.
func network(tb testing.TB) *builder {
	b := &builder{tb: tb}
	conv := op.Conv2D{Pad: [2]int{1, 1}}
	down := op.Conv2D{Stride: [2]int{2, 2}, Groups: 2}
	max := op.MaxPool{Kernel: [2]int{3, 3}, Stride: [2]int{2, 2}, Pad: [2]int{1, 1}}
	avg := op.AvgPool{Kernel: [2]int{2, 2}, Stride: [2]int{2, 2}}
	const n, classes, eps = 6, 7, 1e-5

	x := b.apply(op.Images{DType: op.Float32, Height: 40, Width: 40, Mean: []float64{.5, .4, .3},
		Std: []float64{.2, .2, .2}},
		b.value(op.T(op.Uint8, n, 41, 42, 3)), b.value(op.T(op.Int32, n, 3)))
	shape := func(v int) op.Shape { return b.Values[v].Type.Shape }
	w := b.weight(16, 3, 3, 3)
	y := b.apply(conv, x, w, b.weight(16))
	stats := b.apply(op.BatchNormStats{}, y)
	scale, bias := b.weight(16), b.weight(16)
	normal := b.apply(op.BatchNorm{Eps: eps}, y, stats, scale, bias)
	b.apply(op.BatchNormUpdate{Count: n * 40 * 40}, b.weight(2, 16), stats, b.data(1))
	other := b.data(n, 16, 40, 40)
	z := b.apply(op.ReLU{}, b.apply(op.Add{}, other, normal))
	pooled := b.apply(max, z)
	halved := b.apply(avg, pooled)
	w2 := b.weight(32, 8, 2, 2)
	deep := b.apply(down, halved, w2)
	short := b.apply(op.Add{}, deep, b.apply(op.Shortcut{Stride: 2, Channels: 32}, halved))
	w3 := b.weight(classes, 32)
	logits := b.apply(op.Add{},
		b.apply(op.Linear{}, b.apply(op.GlobalAvgPool{}, short), w3, b.weight(classes)),
		b.apply(op.Linear{}, b.apply(op.Flatten{}, short), b.weight(classes, shape(short).Size()/n)))
	labels := b.value(op.T(op.Int32, n))
	b.apply(op.SoftmaxCrossEntropy{Smoothing: .1}, logits, labels)
	b.apply(op.Score{}, logits, labels)

	dlogits := b.apply(op.SoftmaxCrossEntropyGrad{Smoothing: .1}, logits, labels, b.data())
	b.apply(op.LinearGradWeight{}, b.apply(op.GlobalAvgPool{}, short), dlogits)
	dmean := b.apply(op.LinearGradInput{}, w3, dlogits)
	dshort := b.apply(op.Add{}, b.apply(op.GlobalAvgPoolGrad{Input: shape(short)}, dmean),
		b.apply(op.Reshape{Shape: shape(short)}, b.data(n, shape(short).Size()/n)))
	b.apply(op.Conv2DGradWeight{Conv2D: down, Weight: shape(w2)}, halved, dshort)
	dhalved := b.apply(op.Add{}, b.apply(op.Conv2DGradInput{Conv2D: down, Input: shape(halved)}, w2, dshort),
		b.apply(op.ShortcutGrad{Shortcut: op.Shortcut{Stride: 2, Channels: 32}, Input: shape(halved)}, dshort))
	dpooled := b.apply(op.AvgPoolGrad{AvgPool: avg, Input: shape(pooled)}, dhalved)
	dz := b.apply(op.MaxPoolGrad{MaxPool: max}, z, dpooled)
	dsum := b.apply(op.ReLUGrad{}, z, b.apply(op.Add{}, dz, b.data(shape(z)...)))
	sums := b.apply(op.BatchNormGradSums{Eps: eps}, y, stats, dsum)
	b.apply(op.Row{Index: 1}, sums)
	dy := b.apply(op.BatchNormGradInput{Eps: eps}, y, stats, scale, sums, dsum)
	b.apply(op.ChannelSum{}, dy)
	b.apply(op.Conv2DGradWeight{Conv2D: conv, Weight: shape(w)}, x, dy)
	return b
}

// same fails if x and y differ in a bit.
func same(t *testing.T, b *builder, x, y *bound, what string) {
	t.Helper()
	for v, value := range b.Values {
		if value.Type.DType != op.Float32 || x.regions[v].Memory == nil || y.regions[v].Memory == nil {
			continue
		}
		p, q := x.floats(t, v), y.floats(t, v)
		for i := range p {
			if math.Float32bits(p[i]) != math.Float32bits(q[i]) {
				t.Fatalf("%s: value %d, %v: element %d is %v and %v", what, v, value.Type, i, p[i], q[i])
			}
		}
	}
}

func TestGroupsEqualSingleSteps(t *testing.T) { eachLevel(t, groupsEqualSingleSteps) }

func groupsEqualSingleSteps(t *testing.T) {
	d := open(t, 3)
	b := network(t)
	alone := bind(t, d, &b.Program, b.weights, b.alone())
	alone.run(t)
	groups := b.grouped(d)
	want := []string{"batch_norm add relu", "add relu_grad batch_norm_grad_sums"}
	if at.Vectors() != simd.Go {
		want = []string{"conv2d batch_norm_stats", "batch_norm add relu", "conv2d add", "linear add",
			"add relu_grad batch_norm_grad_sums"}
	}
	if kinds := groupedKinds(b, groups); !slices.Equal(kinds, want) {
		t.Errorf("groups %q, want %q", kinds, want)
	}
	grouped := bind(t, d, &b.Program, b.weights, groups)
	grouped.run(t)
	same(t, b, alone, grouped, "one by one and grouped")
}

func groupedKinds(b *builder, groups [][]int) []string {
	var list []string
	for _, g := range groups {
		if len(g) == 1 {
			continue
		}
		kinds := ""
		for i, s := range g {
			if i > 0 {
				kinds += " "
			}
			kinds += b.Steps[s].Op.Kind()
		}
		list = append(list, kinds)
	}
	return list
}

func TestWorkersGiveEqualBits(t *testing.T) {
	t.Run("network", func(t *testing.T) { workersGiveEqualBits(t, network(t)) })
	t.Run("gradient of linear weights", func(t *testing.T) {
		b := &builder{tb: t}
		b.apply(op.LinearGradWeight{}, b.data(900, 330), b.data(900, 500))
		b.apply(op.LinearGradWeight{}, b.data(600, 128), b.data(600, 800)) // tasks differ in channels
		workersGiveEqualBits(t, b)
	})
	t.Run("operands that are prefetched", func(t *testing.T) {
		b := &builder{tb: t}
		x := b.data(8200, 520)
		b.apply(op.Linear{}, x, b.weight(100, 520))
		b.apply(op.LinearGradWeight{}, b.data(8200, 100), x)
		c := op.Conv2D{Stride: [2]int{1, 1}, Pad: [2]int{1, 1}}
		b.apply(op.Conv2DGradWeight{Conv2D: c, Weight: op.Shape{16, 64, 3, 3}}, b.data(2, 64, 190, 190),
			b.data(2, 16, 190, 190))
		workersGiveEqualBits(t, b)
	})
}

func workersGiveEqualBits(t *testing.T, b *builder) {
	one := bind(t, open(t, 1), &b.Program, b.weights, b.alone())
	one.run(t)
	for _, n := range []int{2, 3, 7} {
		d := open(t, n)
		many := bind(t, d, &b.Program, b.weights, b.grouped(d))
		for range 3 {
			many.run(t)
		}
		again := bind(t, d, &b.Program, b.weights, b.grouped(d))
		again.run(t)
		same(t, b, one, again, "one worker and several")
	}
}

// TestSteadyStateAllocatesNothing counts the allocations of all goroutines, which testing.AllocsPerRun does not.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	eachLevel(t, func(t *testing.T) { steady(t, open(t, 3)) })
	t.Run("bfloat16", func(t *testing.T) {
		d, err := New(Options{Threads: 3, Level: at.String(), BFloat16: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		steady(t, d)
	})
}

func steady(t *testing.T, d *Device) {
	b := network(t)
	k := bind(t, d, &b.Program, b.weights, b.grouped(d))
	m := expressions(t, 2, 33, 21)
	maps := bind(t, d, &m.Program, m.weights, m.grouped(d))
	var vectors [6]device.Vector
	for i := range vectors {
		v, err := d.NewVector(100_000)
		if err != nil {
			t.Fatal(err)
		}
		vectors[i] = v
	}
	var updates []device.Update
	for _, o := range []device.Optimizer{optim.SGD{Momentum: .9},
		optim.LAMB{Beta1: .9, Beta2: .999, Eps: 1e-6, ClipNorm: 1}} {
		updates = append(updates, device.Update{Optimizer: o, Grad: vectors[1],
			State:   vectors[2+len(updates):][:len(o.State())],
			NoDecay: []device.Span{{Len: 100}}, Tensors: []device.Span{{Len: 100}, {Off: 100, Len: 99_900}}})
	}
	step := func() {
		k.run(t)
		maps.run(t)
		w, g, m := vectors[0], vectors[1], vectors[2]
		norm, err1 := g.Norm()
		_, err2 := g.Finite()
		for i, w := range []device.Vector{w, vectors[5]} {
			u := &updates[i]
			u.Numbers = device.Numbers{Rate: .1, Scale: 1 / (1 + norm), Step: u.Numbers.Step + 1}
			if err := w.Update(*u); err != nil || err1 != nil || err2 != nil {
				t.Fatal(err, err1, err2)
			}
		}
		if err1, err2 := m.Lerp(.5, w), g.Fill(.5); err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
	}
	for range 3 {
		step()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	goroutines := runtime.NumGoroutine()
	const steps = 5
	least := uint64(math.MaxUint64) // the runtime itself allocates now and then, e.g. for waiting goroutines
	for range 20 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range steps {
			step()
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.Mallocs-before.Mallocs)
	}
	if least >= steps {
		t.Errorf("%d allocations in %d steps", least, steps)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
}
