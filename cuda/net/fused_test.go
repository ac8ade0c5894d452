//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/internal/gputest"
	"onlinerna/cuda/number"
	"onlinerna/cuda/sim"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/network"
)

// small is a small residual net on a device of its own, both closed by the test's end.
func small(t *testing.T, o Options) (*Device, *network.Network) {
	t.Helper()
	return netOf(t, o, "resnet20")
}

// netOf is a net for small images.
func netOf(t *testing.T, o Options, model string) (*Device, *network.Network) {
	t.Helper()
	o.Context = driver.Options{KernelCache: gputest.KernelCache, ExactMemory: true}
	d, err := Open(0, o)
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	return d, netOn(t, d, model)
}

// netOn is a net for small images on a device.
func netOn(t *testing.T, d device.Device, model string) *network.Network {
	t.Helper()
	n, err := network.New(d, model, nn.Config{Classes: 4, Channels: 3, Size: 8, Mean: []float64{.5}, Std: []float64{.25}}, 1)
	check(t, err)
	t.Cleanup(func() { check(t, n.Close()) })
	return n
}

// lossGradient is the loss of a batch, its gradient and the statistics.
func lossGradient(t *testing.T, n *network.Network, batch int) ([][]float64, error) {
	t.Helper()
	loss, _, err := n.Gradient(batchOf(batch, 1), .1)
	if err != nil {
		return nil, err
	}
	all := [][]float64{{loss}, make([]float64, n.Grads.Len()), make([]float64, n.Stats.Len())}
	check(t, n.Grads.ReadAt64(all[1], 0))
	check(t, n.Stats.ReadAt64(all[2], 0))
	return all, nil
}

// asExact says that each part of got is no further from exact than that of other, within a unit in the last place of 16 bits.
func asExact(t *testing.T, what string, got, other, exact [][]float64) {
	t.Helper()
	for i, x := range got {
		if one, two := offBy(x, exact[i]), offBy(other[i], exact[i]); !(one <= 1.5*two+0x1p-8) || !(one < .3) {
			t.Errorf("%s, %s: off by %.2g, the other way by %.2g", what, parts[i], one, two)
		}
	}
}

// results are the gradient of a small residual net's loss, its statistics and the scores in evaluation.
func results(t *testing.T, o Options) (all [][]float64, graphs []string) {
	t.Helper()
	all, graphs, err := tryResults(t, o)
	check(t, err)
	return all, graphs
}

// tryResults are results, unless the gradient fails, as nothing else may.
func tryResults(t *testing.T, o Options) (all [][]float64, graphs []string, err error) {
	t.Helper()
	d, n := small(t, o)
	if all, err = lossGradient(t, n, 6); err != nil {
		return nil, nil, err
	}
	logits := make([]float32, 4*6)
	_, err = n.Evaluate(batchOf(6, 2), logits)
	check(t, err)
	all = append(all, nil)
	for _, l := range logits {
		all[3] = append(all[3], float64(l))
	}
	return all, d.fused(), nil
}

// fused are the names of the graphs of fusions that have plans.
func (d *Device) fused() (graphs []string) {
	for _, p := range d.graphs {
		if p != nil && p.Made() && !slices.Contains(graphs, p.Graph().Name) {
			graphs = append(graphs, p.Graph().Name)
		}
	}
	slices.Sort(graphs)
	return graphs
}

// parts are the names of results.
var parts = []string{"loss", "gradient", "statistics", "logits"}

// offBy is how far x is from exact, by the length of that.
func offBy(x, exact []float64) float64 {
	sum, size := 0., 0.
	for i, v := range exact {
		sum, size = sum+(x[i]-v)*(x[i]-v), size+v*v
	}
	return math.Sqrt(sum / size)
}

// Operations that run as one graph of cuDNN's give the results of those that run by themselves, no less exact.
func TestFusions(t *testing.T) {
	gputest.NeedDNN(t)
	exact, graphs := results(t, Options{Precision: number.Float32, Deterministic: true, Fuse: FuseAlways})
	if len(graphs) > 0 {
		t.Errorf("a deterministic device has %q", graphs)
	}
	for p, more := range map[number.Precision]string{number.BFloat16: "", number.Float16: ", norm + relu + forward + stats, norm + relu + weight gradient"} {
		separate, graphs := results(t, Options{Precision: p, Fuse: FuseNever})
		if len(graphs) > 0 {
			t.Errorf("%v: fusions %q where none were to be", p, graphs)
		}
		fused, graphs := results(t, Options{Precision: p, Fuse: FuseAlways})
		if want := "forward + scale + bias + add + relu, forward + scale + bias + relu, forward + sums, input gradient + add + relu' + sums, input gradient + norm's relu' + sums" + more; sim.Active() && strings.Join(graphs, ", ") != want {
			t.Errorf("%v: graphs %q, want %s", p, graphs, want)
		}
		asExact(t, fmt.Sprintf("fused in %v", p), fused, separate, exact)
	}
}

// bottlenecks is a net of residual blocks of three convolutions, as those of ResNet-50, but small.
const bottlenecks = "bottlenecks"

func init() {
	nn.Register(nn.Architecture{Name: bottlenecks, Size: 8, Channels: 3, Classes: 4, Build: func(b *nn.Builder, x *G.Node) *G.Node {
		norm := func(name string, x *G.Node, c nn.Conv) *G.Node {
			return b.BatchNorm(name+".norm", b.Conv(name, x, c), 1)
		}
		x = b.ReLU("relu", norm("conv", x, nn.Conv{Filters: 16, Kernel: 3, Pad: 1}))
		for i, stride := range []int{1, 1, 2, 1} {
			name := fmt.Sprint("block", i)
			y := b.ReLU(name+".relu1", norm(name+".conv1", x, nn.Conv{Filters: 8, Kernel: 1}))
			y = b.ReLU(name+".relu2", norm(name+".conv2", y, nn.Conv{Filters: 8, Kernel: 3, Pad: 1, Stride: stride}))
			y = norm(name+".conv3", y, nn.Conv{Filters: 32, Kernel: 1})
			if i%2 == 0 {
				x = norm(name+".shortcut", x, nn.Conv{Filters: 32, Kernel: 1, Stride: stride})
			}
			x = b.ReLU(name+".relu3", b.Add(name+".add", y, x))
		}
		return b.Linear("fc", b.GlobalAvgPool("pool", x), b.Config().Classes)
	}})
}

// In float16 what the convolution that a block begins with reads may be made by it.
func TestFusionOfBottlenecks(t *testing.T) {
	gputest.NeedDNN(t)
	gradient := func(o Options) ([][]float64, []string) {
		d, n := netOf(t, o, bottlenecks)
		all, err := lossGradient(t, n, 8)
		check(t, err)
		return all, d.fused()
	}
	reference, err := lossGradient(t, netOn(t, device.NewReference(op.Float32), bottlenecks), 8)
	check(t, err)
	exact, _ := gradient(Options{Precision: number.Float32, Deterministic: true})
	for i, x := range exact { // weights lie in another order there
		if off := offBy(slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(reference[i]))); !(off < 1e-4) {
			t.Errorf("%s: off by %.2g from the reference device's", parts[i], off)
		}
	}
	for p, more := range map[number.Precision]string{number.BFloat16: "", number.Float16: ", norm + add + relu + forward + stats, norm + norm + relu + forward + stats, norm + relu + forward + stats, norm + relu + weight gradient"} {
		separate, _ := gradient(Options{Precision: p, Fuse: FuseNever})
		fused, graphs := gradient(Options{Precision: p, Fuse: FuseAlways})
		if want := "forward + sums, input gradient + add + relu' + sums, input gradient + norm's relu' + sums" + more; sim.Active() && strings.Join(graphs, ", ") != want {
			t.Errorf("%v: graphs %q, want %s", p, graphs, want)
		}
		asExact(t, fmt.Sprintf("fused in %v", p), fused, separate, exact)
	}
	if !sim.Active() {
		return
	}
	t.Setenv("RNA_SIM_ARCH", "80") // Ampere, for which cuDNN has none behind an addition
	separate, _ := gradient(Options{Precision: number.Float16, Fuse: FuseNever})
	fused, graphs := gradient(Options{Precision: number.Float16, Fuse: FuseAlways})
	if want := "forward + sums, input gradient + add + relu' + sums, input gradient + norm's relu' + sums, norm + relu + forward + stats, norm + relu + weight gradient"; strings.Join(graphs, ", ") != want {
		t.Errorf("on Ampere: graphs %q, want %s", graphs, want)
	}
	asExact(t, "fused on Ampere", fused, separate, exact)
}

// A number that is none shows in the loss and in the scores, though fusions have ReLUs, and so does what is too large for float16.
func TestNaNOfFusions(t *testing.T) {
	gputest.NeedDNN(t)
	run := func(p number.Precision, model string, weights ...float64) (loss float64, logits []float32, graphs []string) {
		d, n := netOf(t, Options{Precision: p, Fuse: FuseAlways}, model)
		check(t, n.Params.WriteAt64(weights, 0))
		loss, _, err := n.Gradient(batchOf(8, 1), .1)
		check(t, err)
		logits = make([]float32, 4*8)
		_, err = n.Evaluate(batchOf(8, 2), logits)
		check(t, err)
		return loss, logits, d.fused()
	}
	for _, p := range []number.Precision{number.BFloat16, number.Float16} {
		for _, model := range []string{"resnet20", bottlenecks} {
			loss, logits, graphs := run(p, model, math.NaN())
			if !math.IsNaN(loss) || !slices.ContainsFunc(logits, func(x float32) bool { return x != x }) {
				t.Errorf("%v, %s: a weight of NaN gives a loss of %v and scores %v, with %q", p, model, loss, logits[:4], graphs)
			}
		}
	}
	if loss, _, graphs := run(number.Float16, bottlenecks, slices.Repeat([]float64{6e4}, 8)...); !math.IsNaN(loss) && !math.IsInf(loss, 0) {
		t.Errorf("weights of 60000 give a loss of %v, with %q", loss, graphs)
	}
}

// The factors of a normalisation as float16 has them: the bias alone where all of a channel is a value for which it has none, and else NaN.
func TestStoredFactors(t *testing.T) {
	gputest.NeedDNN(t)
	opened, err := openNet(Options{Precision: number.Float16})()
	check(t, err)
	d := opened.(*Device)
	t.Cleanup(func() { check(t, d.Close()) })
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, x := range []struct{ mean, variance, scale, bias, a, b float32 }{
		{1, 4, 2, 3, 1, 2}, {2, 1, -8, 0, -8, 16}, // as they are
		{1000, 0, 1, .5, 0, .5}, {-1000, 1e-4, 1, 2, 0, 2}, // all one value
		{1000, 1, 1000, 0, 1000, nan}, {0, 1e-6, 1000, 0, nan, 0}, {0, 1, 1, 1e5, 1, nan}, // too large
		{nan, 1, 1, 0, 1, nan}, {0, nan, 1, 0, nan, nan}, {inf, nan, 1, 0, nan, nan}, {0, 1, nan, 0, nan, nan}, {0, 1, 1, nan, 1, nan},
	} {
		m, err := d.c.Alloc(1 << 10)
		check(t, err)
		at := func(i int64, values ...float32) driver.Span {
			s := m.Span(i<<8, 8)
			check(t, d.stream.CopyIn(s.Span(0, int64(4*len(values))), driver.Bytes(values)))
			return s
		}
		b := &binding{d: d, narrow: true}
		first, second := b.storedFactors(1, at(0, x.mean, x.variance), at(1, x.scale), at(2, x.bias), m.Span(3<<8, 4), 0)
		check(t, b.err)
		check(t, d.c.Do(b.calls[0]))
		for _, s := range []struct {
			place driver.Span
			want  float32
		}{{first, x.a}, {second, x.b}} {
			var bits [1]uint16
			check(t, d.stream.CopyOut(driver.Bytes(bits[:]), s.place))
			check(t, d.stream.Synchronize())
			if got := number.Widen(number.Float16, bits[:])[0]; got != s.want && (got == got || s.want == s.want) {
				t.Errorf("%+v: factors have %v", x, got)
			}
		}
		check(t, m.Close())
	}
}

// Where plans of some fusions do not run, those of others go on: also of the two of which one leaves out what the other one does without.
func TestFaultOfFusedPlans(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	gradient := func(o Options) ([][]float64, error) {
		_, n := netOf(t, o, bottlenecks)
		return lossGradient(t, n, 8)
	}
	exact, err := gradient(Options{Precision: number.Float32, Deterministic: true})
	check(t, err)
	separate, err := gradient(Options{Precision: number.Float16, Fuse: FuseNever})
	check(t, err)
	tried := 0
	for from := 1; ; from += 7 {
		var plan []string
		for i := range 4 {
			plan = append(plan, fmt.Sprintf("cudnnBackendExecute@%d=5000", from+i))
		}
		check(t, sim.Fault(strings.Join(plan, ";")))
		got, err := gradient(Options{Precision: number.Float16, Fuse: FuseAlways})
		check(t, sim.Fault(""))
		if err != nil { // a plan fails in a step, where none can take its place
			break
		}
		asExact(t, fmt.Sprintf("without plans from %d on", from), got, separate, exact)
		tried++
	}
	if tried < 4 {
		t.Errorf("%d steps without some of the plans", tried)
	}
}

// Statistics are found again by programs that want nothing else: what the last convolution makes is then read by nobody but its sums.
func TestFusionOfStatistics(t *testing.T) {
	gputest.NeedDNN(t)
	stats := func(p number.Precision, fuse Fuse) []float64 {
		_, n := small(t, Options{Precision: p, Fuse: fuse})
		check(t, n.UpdateStats(batchOf(6, 1), 1))
		all := make([]float64, n.Stats.Len())
		check(t, n.Stats.ReadAt64(all, 0))
		return all
	}
	for _, p := range []number.Precision{number.BFloat16, number.Float16} {
		if off := offBy(stats(p, FuseAlways), stats(p, FuseNever)); !(off < .1) {
			t.Errorf("%v: off by %.2g", p, off)
		}
	}
}

// The choice between a fusion and separate kernels is timed once and kept; a fusion whose plans do not run gives way.
func TestFusionChoice(t *testing.T) {
	gputest.NeedDNN(t)
	if !sim.Active() {
		t.Skip("the faults are the stand-in's")
	}
	exact, _ := results(t, Options{Precision: number.Float32, Deterministic: true})
	for _, p := range []number.Precision{number.BFloat16, number.Float16} {
		separate, _ := results(t, Options{Precision: p, Fuse: FuseNever})
		for _, plan := range []string{"", "cudnnBackendExecute@0=5000", "cudnnBackendCreateDescriptor@0=3000"} {
			check(t, sim.Fault(plan))
			got, _ := results(t, Options{Precision: p})
			check(t, sim.Fault(""))
			asExact(t, fmt.Sprintf("%v with faults %q", p, plan), got, separate, exact)
		}
	}
	t.Setenv("RNA_CUDA_FUSE", "perhaps")
	if _, err := Open(0, Options{}); err == nil || !strings.Contains(err.Error(), "want always or never") {
		t.Errorf("RNA_CUDA_FUSE=perhaps: %v", err)
	}
}

// Which of a fusion and separate kernels is faster is not kept where there was too little memory for the best plan of either, or to ask for plans.
func TestFaultOfMemoryOfFusion(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	s := dnn.Shape{N: 1, C: 8, H: 4, W: 4, O: 8, KH: 1, KW: 1, Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	for _, test := range []struct {
		fused, alone string // faults
		kept         bool
	}{{"", "", true}, {"cudnnBackendExecute@1=4004", "", false}, {"", "cudnnBackendExecute@1=4004", false}} {
		d, err := Open(0, Options{Precision: number.BFloat16, Context: driver.Options{KernelCache: t.TempDir(), ExactMemory: true}})
		check(t, err)
		defer func() { check(t, d.Close()) }()
		g := &dnn.Graph{Name: "forward + relu"}
		xd, wd, yd := s.Dims()
		in, w, between, y := g.Tensor(d.elements(), xd), g.Tensor(d.elements(), wd), g.Between(dnn.Float32, yd), g.Tensor(d.elements(), yd)
		g.Convolve(dnn.Forward, s, in, w, between)
		g.ReLU(between, y)
		check(t, sim.Fault("cudnnBackendCreateDescriptor@1=4003"))
		if d.plansOf(g) != nil {
			t.Fatal("plans without memory")
		}
		check(t, sim.Fault(""))
		plans := d.plansOf(g)
		if plans == nil {
			t.Fatal("what had no memory once has no plans")
		}
		alone, err := d.convolution(dnn.Forward, op.Conv2D{}, op.T(op.Float32, s.N, s.C, s.H, s.W), op.T(op.Float32, s.O, s.C, 1, 1))
		check(t, err)
		places := alone.Operands()
		m, err := d.c.Alloc(4 << 20)
		check(t, err)
		at, work := []driver.Span{m.Span(0, places[0]), m.Span(1<<10, places[1]), m.Span(2<<10, places[2])}, m.Span(1<<20, 3<<20)
		check(t, sim.Fault(test.fused))
		check(t, plans.Settle(at, work))
		check(t, sim.Fault(test.alone))
		check(t, alone.Settle(at[0], at[1], at[2], work))
		check(t, sim.Fault(""))
		run := []func() error{func() error { return plans.Run(at, work) }}
		better, err := d.faster(g.Name, &ways{key: g.String(), short: plans.Short() || d.shortAlone(g), fused: run, separate: run})
		check(t, err)
		if again, ok := d.dnn.Kept(d.noteOf(g.String())); ok != test.kept || ok && (again == "fused") != better {
			t.Errorf("%+v: %q is kept, %v", test, again, ok)
		}
		d.opts.Workspace--
		if _, ok := d.dnn.Kept(d.noteOf(g.String())); ok {
			t.Error("what is kept counts with another limit of scratch, too")
		}
		broken := []func() error{func() error { return errors.New("broken") }}
		better, err = d.faster("broken", &ways{key: "broken", fused: broken, separate: run})
		check(t, err)
		if _, ok := d.dnn.Kept(d.noteOf("broken")); ok || better {
			t.Errorf("a fusion that fails: better %v, kept %v", better, ok)
		}
		check(t, m.Close())
	}
}

// What a net finds out is kept but where there was too little memory for a plan: also for one of a fusion that is part of the separate way.
func TestFaultOfMemoryOfNet(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	own, parts, notes := 0, 0, 0
	for from := 61; from < 130; from += 12 {
		d, n := netOf(t, Options{Precision: number.Float16, Workspace: DefaultWorkspace - rand.Int64N(1<<20)}, bottlenecks) // nothing is known with that
		check(t, sim.Fault(fmt.Sprintf("cudnnBackendExecute@%d=4004", from)))
		_, err := lossGradient(t, n, 8)
		check(t, sim.Fault(""))
		if !errors.Is(err, driver.ErrOutOfMemory) { // which the separate way may meet
			check(t, err)
		}
		for key, p := range d.graphs {
			if p == nil || !p.Made() {
				continue
			}
			short, part := p.Short() || d.shortAlone(p.Graph()), false
			for _, q := range d.graphs {
				part = part || q != nil && q != p && q.Graph().Name == "forward + sums" && q.Short() && p.Graph().Kind() == dnn.Forward && p.Shape() == q.Shape()
			}
			_, kept := d.dnn.Kept(d.noteOf(key))
			for taker := range d.graphs { // both are one choice
				_, both := d.dnn.Kept(d.noteOf(key + "; " + taker))
				kept = kept || both
			}
			switch {
			case kept && (short || part):
				t.Errorf("with fault %d the choice of %q is kept", from, p.Graph().Name)
			case kept:
				notes++
			case short:
				own++
			case part:
				parts++
			}
		}
		check(t, n.Close())
	}
	if notes == 0 || sim.Active() && (own == 0 || parts == 0) {
		t.Errorf("%d choices are kept, %d had too little memory, %d in parts", notes, own, parts)
	}
}

// A pair of which the second half was never bound does not count for what lies in its place later.
func TestPairs(t *testing.T) {
	gputest.NeedDNN(t)
	d, err := Open(0, Options{Precision: number.Float16, Fuse: FuseAlways})
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	var ran []string
	calls := func(name string) []func() error {
		return []func() error{func() error { ran = append(ran, name); return nil }}
	}
	m, err := d.c.Alloc(1)
	check(t, err)
	t.Cleanup(func() { check(t, m.Close()) })
	b, at, g := &binding{d: d, spans: []driver.Span{m.All()}}, 0, &dnn.Graph{}
	bind := func(leaver ways) {
		first := d.chosen(b, fusion{graph: g, leaves: &at}, leaver, nil)
		if leaver.key == "" { // the second half is not bound
			return
		}
		second := d.chosen(b, fusion{graph: g, takes: &at}, ways{fused: calls("fused taker"), separate: calls("taker")}, d.pairs[m.All()])
		check(t, errors.Join(b.err, call(first), call(second)))
	}
	for _, x := range []struct {
		leaver ways
		want   string
	}{
		{ways{key: "both", fused: calls("fused"), separate: calls("separate")}, "fused, fused taker"},
		{ways{fused: calls("fused"), separate: calls("separate")}, ""},
		{ways{key: "alone", separate: calls("separate")}, "separate, taker"},
	} {
		ran = nil
		bind(x.leaver)
		if got := strings.Join(ran, ", "); got != x.want {
			t.Errorf("%q ran, want %q", got, x.want)
		}
	}
}

// What timing changes is put back, also where it fails; without memory for a copy nothing is timed.
func TestPreserving(t *testing.T) {
	dev := opened(t, Options{Context: driver.Options{ExactMemory: true}})
	d := dev.(*Device)
	state, err := d.c.Alloc(8)
	check(t, err)
	defer func() { check(t, state.Close()) }()
	want := [2]float32{3, 5}
	check(t, d.stream.CopyIn(state.All(), driver.Bytes(want[:])))
	broken := errors.New("broken")
	for _, fails := range []error{nil, broken} {
		err := d.preserving([]driver.Span{state.All()}, func() error {
			other := [2]float32{7, 7}
			return errors.Join(d.stream.CopyIn(state.All(), driver.Bytes(other[:])), fails)
		})
		if !errors.Is(err, fails) {
			t.Errorf("%v, want %v", err, fails)
		}
		var got [2]float32
		check(t, d.stream.CopyOut(driver.Bytes(got[:]), state.All()))
		check(t, d.stream.Synchronize())
		if got != want {
			t.Errorf("left %v, want %v", got, want)
		}
	}
	free, _, err := d.Room()
	check(t, err)
	large, err := d.c.Alloc(free / 3 * 2)
	check(t, err)
	defer func() { check(t, large.Close()) }()
	if err := d.preserving([]driver.Span{large.All()}, func() error { return broken }); !errors.Is(err, errUnsaved) || errors.Is(err, broken) {
		t.Errorf("%v, want errUnsaved", err)
	}
}
