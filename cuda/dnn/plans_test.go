//go:build gpu && cgo

package dnn

import (
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// Engines that are less exact than the precision are skipped, and so are those that cannot make a plan.
func TestEngines(t *testing.T) {
	needDNN(t)
	c := open(t)
	d := newDNN(t, c)
	for _, test := range []struct {
		kind   Kind
		o      Options
		engine int // of the stand-in: 3 has tensor cores, 4 is not deterministic, 5 has Winograd transforms
	}{
		{Forward, Options{Precision: number.Float32}, 1},
		{Forward, Options{Precision: number.TF32, Workspace: 1 << 20}, 3},
		{Forward, Options{Precision: number.BFloat16, Workspace: 1 << 20}, 3},
		{Forward, Options{Precision: number.Float16}, 1},
		{GradInput, Options{Precision: number.Float32}, 4},
		{GradInput, Options{Precision: number.Float32, Deterministic: true}, 1},
		{GradWeight, Options{Precision: number.BFloat16, Deterministic: true, Workspace: 1 << 20}, 3},
		{GradWeight, Options{Precision: number.Float32, Deterministic: true, Workspace: 1 << 20}, 1},
	} {
		v, err := convolution(d, test.kind, blur, test.o)
		check(t, err)
		if e := v.Engine(); sim.Active() && (e.Number != test.engine || test.o.Deterministic &&
			!e.Deterministic()) {
			t.Errorf("%v, %+v: %v, want engine %d", test.kind, test.o, e, test.engine)
		}
		if v.Workspace() > test.o.Workspace {
			t.Errorf("%v, %+v: a workspace of %d bytes", test.kind, test.o, v.Workspace())
		}
		check(t, v.Close())
	}
}

// settleOne describes a convolution, chooses a plan and runs it.
func settleOne(t *testing.T, c *driver.Context, d *Handle, s Shape, o Options) (*Plans, error) {
	t.Helper()
	o.Workspace = max(o.Workspace, 1<<20)
	v, err := convolution(d, Forward, s, o)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { check(t, v.Close()) })
	m := alloc(t, c, max(v.Workspace(), 1))
	b := v.Graph().Places()
	x, w, y := alloc(t, c, b[0]).All(), alloc(t, c, b[1]).All(), alloc(t, c, b[2]).All()
	if err := v.Settle([]driver.Span{x, w, y}, m.All()); err != nil {
		return v, err
	}
	return v, v.Run([]driver.Span{x, w, y}, m.All())
}

// The fastest plan is measured once and kept as text in a file; a damaged file is rewritten.
func TestPlanChoice(t *testing.T) {
	needDNN(t)
	if !sim.Active() {
		t.Skip("which plan is the fastest is known of the stand-in's")
	}
	t.Setenv("RNA_SIM_CLOCK", "1")
	folder := t.TempDir()
	c := openWith(t, driver.Options{KernelCache: folder})
	d := newDNN(t, c)
	single := blur
	single.KH, single.KW, single.Pad = 1, 1, [2]int{}
	choose := func(s Shape, o Options) (engine int, measured bool) {
		t.Helper()
		before := sim.Calls("cudnnBackendExecute")
		v, err := settleOne(t, c, d, s, o)
		check(t, err)
		return v.Engine().Number, sim.Calls("cudnnBackendExecute")-before > 2
	}
	measure := Options{Measure: true, Precision: number.BFloat16}
	choices(t, filepath.Join(folder, "plan-*"), choose, []choiceCase{
		{"by heuristics", single, Options{Precision: number.BFloat16}, 3, false, 0},
		{"the same bits in each run", single, Options{Precision: number.BFloat16, Measure: true, Deterministic: true},
			3, false, 0},
		{"measured", single, measure, 1, true, 1},
		{"kept", single, measure, 1, false, 1},
		{"of another shape", blur, measure, 3, true, 2},
		{"with other scratch", blur, Options{Measure: true, Precision: number.BFloat16, Workspace: 1 << 21}, 3,
			true, 3},
		{"all kept", single, measure, 1, false, 3},
	}, []func([]byte) []byte{
		written(""), written("{"), written(`{"key":"other","plan":"x"}`),
		replaced("stand-in", "["), // a plan that cuDNN refuses
	})
	check(t, sim.Fault("cudnnBackendExecute@1=5000"))
	engine, measured := choose(single, measure)
	check(t, sim.Fault(""))
	if engine != 1 || !measured {
		t.Errorf("a plan that does not run: engine %d, measured %v", engine, measured)
	}
}

// A failing plan gives way to the next; if none runs, or none can be made, it is an error.
func TestFaultOfPlans(t *testing.T) {
	fault(t, "")
	t.Setenv("RNA_SIM_CLOCK", "1")
	for _, deterministic := range []bool{false, true} {
		c := openWith(t, driver.Options{KernelCache: t.TempDir()})
		d := newDNN(t, c)
		o := Options{Measure: true, Deterministic: deterministic, Precision: number.BFloat16}
		for _, test := range []struct {
			plan   string
			engine int // -1: none
		}{{"cudnnBackendExecute@1=5000", 1}, {"cudnnBackendExecute@0=5000", -1},
			{"cudnnBackendCreateDescriptor@0=3000", -1}, {"cudnnBackendFinalize@0=4", -1}} {
			check(t, sim.Fault(test.plan))
			v, err := settleOne(t, c, d, blur, o)
			check(t, sim.Fault(""))
			if test.engine < 0 && !errors.Is(err, ErrNoPlan) || test.engine >= 0 && (err != nil ||
				v.Engine().Number != test.engine) {
				t.Errorf("%s: %v", test.plan, err)
			}
		}
	}
}

// Whichever call of the graph API fails, nothing leaks, and the result is a convolution or an error.
func TestFaultOfEachCallOfGraphs(t *testing.T) {
	fault(t, "")
	c := openWith(t, driver.Options{KernelCache: t.TempDir(), ExactMemory: true})
	d := newDNN(t, c)
	for _, name := range []string{"CreateDescriptor", "SetAttribute", "GetAttribute", "Finalize", "Execute",
		"DestroyDescriptor"} {
		for k := 1; k < 200; k += 7 {
			before := sim.Leaks()
			t.Run("", func(t *testing.T) {
				check(t, sim.Fault("cudnnBackend"+name+"@"+strconv.Itoa(k)+"=4000"))
				_, err := settleOne(t, c, d, blur, Options{Measure: true, Precision: number.BFloat16})
				check(t, sim.Fault(""))
				if err != nil && !strings.Contains(err.Error(), "cudnnBackend"+name) && !errors.Is(err, ErrNoPlan) {
					t.Errorf("cudnnBackend%s@%d: %v", name, k, err)
				}
			})
			if after := sim.Leaks(); after != before {
				t.Fatalf("cudnnBackend%s@%d: leaked: %s, before: %s", name, k, after, before)
			}
		}
	}
}

// A graph of a convolution with the sums of its result and of the squares: sums are added to the old content.
func TestSums(t *testing.T) {
	needDNN(t)
	c := open(t)
	d := newDNN(t, c)
	s := Shape{N: 1, C: 8, H: 2, W: 1, O: 8, KH: 1, KW: 1, Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	g := &Graph{Name: "sums"}
	xd, wd, yd := s.Dims()
	x, w, y := g.Tensor(BFloat16, xd), g.Tensor(BFloat16, wd), g.Tensor(BFloat16, yd)
	sums, squares := g.Tensor(Float32, Channels(8)), g.Tensor(Float32, Channels(8))
	product := g.Between(Float32, yd)
	g.Convolve(Forward, s, x, w, y)
	g.Sum(y, sums)
	g.Multiply(y, y, product)
	g.Sum(product, squares)
	if _, err := d.NewPlans(g, Options{Precision: number.BFloat16, Deterministic: true}); !errors.Is(err, ErrNoPlan) {
		t.Errorf("sums with equal bits in each run: %v", err)
	}
	p, err := d.NewPlans(g, Options{Precision: number.BFloat16, Workspace: 1 << 20})
	if errors.Is(err, ErrNoPlan) && !sim.Active() {
		t.Skip(err)
	}
	check(t, err)
	defer func() { check(t, p.Close()) }()
	pixels := make([]float32, 16)
	weights := make([]float32, 64)
	for i := range pixels {
		pixels[i] = float32(i)
	}
	for i := range 8 {
		weights[9*i] = 1 // the identity
	}
	at := []driver.Span{floats16(t, c, number.BFloat16, pixels).All(), floats16(t, c, number.BFloat16, weights).All(),
		alloc(t, c, 32).All(),
		gputest.Upload(t, c, make([]float32, 8)).All(), gputest.Upload(t, c, make([]float32, 8)).All()}
	work := alloc(t, c, max(p.Workspace(), 1))
	check(t, p.Run(at, work.All()))
	got, of := gputest.Download[float32](t, at[3]), gputest.Download[float32](t, at[4])
	for i := range 8 {
		a, b := float64(i), float64(i+8)
		if math.Abs(float64(got[i])-(a+b)) > 1e-4 || math.Abs(float64(of[i])-(a*a+b*b)) > 1e-3 {
			t.Errorf("channel %d: %v and %v", i, got[i], of[i])
		}
	}
	if err := p.Run(at[:4], work.All()); !errors.Is(err, errPlaces) {
		t.Errorf("too few tensors: %v", err)
	}
}

// Each plan tried on the card is reported with its time.
func TestTried(t *testing.T) {
	needDNN(t)
	c := openWith(t, driver.Options{KernelCache: t.TempDir()}) // kept choices are not tried again
	d := newDNN(t, c)
	var lines []string
	o := Options{Precision: number.BFloat16, Measure: true, Workspace: 1 << 20,
		Tried: func(t Tried) { lines = append(lines, t.String()) }}
	s := Shape{N: 1, C: 8, H: 4, W: 4, O: 8, KH: 1, KW: 1, Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	_, err := settleOne(t, c, d, s, o)
	check(t, err)
	for _, line := range lines {
		cells := strings.Split(line, "\t")
		if took, err := strconv.ParseFloat(cells[len(cells)-1], 64); len(cells) != 5 || cells[0] != "forward" ||
			err != nil || took <= 0 {
			t.Errorf("%q", line)
		}
	}
	if len(lines) < 2 {
		t.Errorf("plans tried: %q", lines)
	}
}

// On a full card the error says so, and no plan counts as failing: none is replaced permanently.
func TestFaultOfMemory(t *testing.T) {
	fault(t, "")
	t.Setenv("RNA_SIM_CLOCK", "1")
	for _, test := range []struct {
		name, faults  string
		deterministic bool
	}{
		{"plans", "cudnnBackendExecute@0=4004", false},
		{"a plan with equal bits", "cudnnBackendExecute@1=4004", true},
		{"memory of the host", "cudnnBackendExecute@0=4003", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := openWith(t, driver.Options{KernelCache: t.TempDir(), ExactMemory: true})
			d := newDNN(t, c)
			o := Options{Measure: true, Deterministic: test.deterministic, Precision: number.BFloat16,
				Workspace: 1 << 20}
			want, err := settleOne(t, c, d, blur, o)
			check(t, err)
			c = openWith(t, driver.Options{KernelCache: t.TempDir(), ExactMemory: true})
			v, err := convolution(newDNN(t, c), Forward, blur, o)
			check(t, err)
			defer func() { check(t, v.Close()) }()
			b := v.Graph().Places()
			x, w, y, m := alloc(t, c, b[0]).All(), alloc(t, c, b[1]).All(), alloc(t, c, b[2]).All(),
				alloc(t, c, max(v.Workspace(), 1)).All()
			check(t, sim.Fault(test.faults))
			err = v.Settle([]driver.Span{x, w, y}, m)
			check(t, sim.Fault(""))
			if !errors.Is(err, driver.ErrOutOfMemory) || errors.Is(err, ErrNoPlan) ||
				!strings.Contains(err.Error(), "ALLOC") {
				t.Fatalf("%v, want driver.ErrOutOfMemory", err)
			}
			check(t, v.Settle([]driver.Span{x, w, y}, m))
			check(t, v.Run([]driver.Span{x, w, y}, m))
			if got, want := v.Engine().Number, want.Engine().Number; got != want && test.deterministic {
				t.Errorf("number %d, without the fault it is %d", got, want)
			}
		})
	}
}

// During measurement a plan that lacks memory gives way to the next, and that choice is not kept: another run may have
// more.
func TestFaultOfMemoryMeasured(t *testing.T) {
	fault(t, "")
	t.Setenv("RNA_SIM_CLOCK", "1")
	folder := t.TempDir()
	c := openWith(t, driver.Options{KernelCache: folder, ExactMemory: true})
	for kept, plan := range []string{"cudnnBackendExecute@1=4004", ""} {
		check(t, sim.Fault(plan))
		_, err := settleOne(t, c, newDNN(t, c), blur, Options{Measure: true, Precision: number.BFloat16})
		check(t, sim.Fault(""))
		check(t, err)
		if files, err := filepath.Glob(filepath.Join(folder, "*-*.json")); err != nil || len(files) != kept {
			t.Errorf("fault %q: kept %q, %v", plan, files, err)
		}
	}
}

// On a full card a convolution fails, and once memory is freed it runs: the cache returns it to the driver.
func TestFaultOfFullCard(t *testing.T) {
	fault(t, "")
	for _, deterministic := range []bool{false, true} {
		c := openWith(t, driver.Options{KernelCache: t.TempDir()})
		v, err := convolution(newDNN(t, c), Forward, blur,
			Options{Measure: true, Deterministic: deterministic, Precision: number.BFloat16, Workspace: 1 << 20})
		check(t, err)
		b := v.Graph().Places()
		x, w, y, m := alloc(t, c, b[0]).All(), alloc(t, c, b[1]).All(), alloc(t, c, b[2]).All(),
			alloc(t, c, max(v.Workspace(), 1)).All()
		check(t, c.Trim())
		var held []*driver.Memory
		for size := int64(1 << 30); size >= 512; size /= 2 {
			more, err := c.Alloc(size)
			for ; err == nil; more, err = c.Alloc(size) {
				held = append(held, more)
			}
		}
		if err := v.Settle([]driver.Span{x, w, y}, m); !errors.Is(err, driver.ErrOutOfMemory) ||
			!strings.Contains(err.Error(), "are free") {
			t.Errorf("deterministic %v: %v, want driver.ErrOutOfMemory", deterministic, err)
		}
		for _, h := range held {
			check(t, h.Close())
		}
		check(t, v.Settle([]driver.Span{x, w, y}, m))
		check(t, errors.Join(v.Run([]driver.Span{x, w, y}, m), v.Close()))
	}
}
