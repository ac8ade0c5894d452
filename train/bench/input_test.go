package bench

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/network"
	"onlinerna/train/profile"
)

// queue is a device like a GPU, with its own clock, limits and memory.
type queue struct {
	device.Device
	marks map[int]time.Time
	count int
	free  int64
	fails error
}

func (q *queue) Mark(i int) error {
	q.count++
	q.marks[i] = time.Now()
	return q.fails
}

func (q *queue) Between(i, j int) (time.Duration, error) { return q.marks[j].Sub(q.marks[i]), nil }

func (q *queue) Limits() (device.Limits, error) {
	return device.Limits{
		Products: []device.Limit{{Name: "bfloat16", Speed: 2e12, How: "products"}, {Name: "float32", Speed: 1e12,
			How: "products"}},
		Bandwidth: device.Limit{Name: "copy", Speed: 3e12, How: "copy of 1 byte"},
	}, nil
}

func (q *queue) Room() (free, spare int64, err error) { return q.free, q.free / 16, nil }

func (q *queue) Card() string { return "some card" }

func (q *queue) PeakMemory() (int64, error) { return 12345678, nil }
func (q *queue) CardState() (device.CardState, error) {
	return device.CardState{Clock: 1200, Slowed: []string{"power limit"}}, nil
}

func onQueue(t *testing.T) *queue {
	t.Helper()
	d, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return &queue{Device: d, marks: map[int]time.Time{}, free: 1 << 30}
}

// Steps with each input are measured, and the kinds of ops once.
func TestInputs(t *testing.T) {
	d, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := Run(t.Context(), d, Options{Model: "lenet", Batch: 8, Steps: 3, Warmup: 1, Data: "glyphs"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Input != Synthetic || !slices.Equal(r.Steps, r.Inputs[0].Steps) || r.KindSteps != 3 {
		t.Errorf("input %s, %d steps, kinds in %d", r.Input, len(r.Steps), r.KindSteps)
	}
	var names []string
	for _, i := range r.Inputs {
		names = append(names, i.Input)
		if len(i.Steps) != 3 || i.Images.Min <= 0 || i.Waited < 0 || i.Waited >= 1 {
			t.Errorf("%+v", i)
		}
	}
	if !slices.Equal(names, inputs) {
		t.Errorf("inputs %v", names)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\ninput ", "\nmemory ", "\nloader ", "conv2d_grad_weight"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
}

// Batches are full and continue from epoch to epoch; those in memory contain different images.
func TestFeed(t *testing.T) {
	o := Options{Data: "glyphs", Batch: 3000, Inputs: []string{InMemory, FromLoader}, Model: "lenet", Workers: 2}
	f, err := openFeed(o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	c := f.config(o)
	c.Size = 28
	if c.Classes != 10 || c.Channels != 1 || f.images() != 8000 {
		t.Errorf("%+v for %d images", c, f.images())
	}
	if err := f.prepare(o, &nn.Model{Config: c}); err != nil || f.noise != nil {
		t.Fatalf("%v, noise %v", err, f.noise)
	}
	next, stop, err := f.batches(t.Context(), FromLoader)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var epochs []int
	for range 5 {
		b, err := next()
		if err != nil || b.N != 3000 {
			t.Fatalf("%v, %v", b, err)
		}
		epochs = append(epochs, b.Epoch)
	}
	if !slices.Equal(epochs, []int{1, 1, 2, 2, 3}) {
		t.Errorf("epochs %v", epochs)
	}
	held, stop, err := f.batches(t.Context(), InMemory)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	first, _ := held()
	second, _ := held()
	again, _ := held()
	if slices.Equal(first.Index, second.Index) || again != first {
		t.Error("batches in memory are not two in turn")
	}
	o.Batch = 9000
	if err := f.prepare(o, &nn.Model{Config: c}); err == nil || !strings.Contains(err.Error(),
		"glyphs has 8000 images: they make no "+
			"batch of 9000") {
		t.Errorf("a batch larger than the set: %v", err)
	}
}

// A device with a clock times the kinds of ops in separate steps, and measures its own limits.
func TestClock(t *testing.T) {
	q := onQueue(t)
	r, err := Run(t.Context(), q, Options{Model: "lenet", Batch: 8, Steps: 7, Warmup: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Steps) != 7 || r.KindSteps != clockedSteps || r.Peak != 2000 || r.Triad != 3000 ||
		r.Precision != "bfloat16" || r.Card != "some card" || r.DeviceMemory != 12345678 ||
		r.CardState == nil || r.CardState.Clock != 1200 || r.CardState.SlowedShare != 1 {
		t.Errorf("%+v", r)
	}
	groups := 0
	for _, k := range r.Kinds {
		if k.Name != profile.Rest && k.Name != "sgd" {
			groups += k.Calls
		}
	}
	// one each before and after input and SGD; one per group, and one more
	if want := (clockedSteps + 1) * (2 + groups + 1 + 2); q.count != want {
		t.Errorf("%d marks for %d groups, want %d", q.count, groups, want)
	}
	for _, k := range append(r.Kinds, r.Products) {
		if want := max(k.OfPeak, k.OfTriad); k.Name != r.Products.Name && k.OfRoofline != want || k.GFLOP > 0 &&
			k.OfRoofline < k.OfPeak*(1-1e-9) {
			t.Errorf("%s reaches %g of the roofline, %g of the peak and %g of the bandwidth", k.Name, k.OfRoofline, k.OfPeak,
				k.OfTriad)
		}
	}
	if r.GFLOP <= 0 || r.Products.OfPeak <= 0 {
		t.Errorf("products %+v", r.Products)
	}
	var table, svg bytes.Buffer
	if err := errors.Join(r.WriteTable(&table), r.Plot(&svg, "svg")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"device cpu, some card, bfloat16", "memory of the device: 12.3 MB",
		"in 5 steps of their own", "of copy", "peak, bfloat16: 2000 GFLOP/s, products", "\nfloat32: 1000 GFLOP/s",
		"\ncopy: 3000 GB/s"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
	if !strings.Contains(svg.String(), "products in bfloat16") || !strings.Contains(svg.String(), "some card") {
		t.Error("the figure does not say what it is of")
	}
	q.fails = errors.New("card lost")
	if _, err := Run(t.Context(), q, Options{Model: "lenet", Batch: 8, Steps: 1}); !errors.Is(err, q.fails) ||
		!strings.HasPrefix(err.Error(), "bench: input synthetic: ") {
		t.Errorf("%v", err)
	}
}

func TestAutoBatch(t *testing.T) {
	q := onQueue(t)
	q.free = 8 << 20
	r, err := Run(t.Context(), q, Options{Model: "lenet", Batch: network.AutoBatch, Steps: 1, Warmup: 1})
	if err != nil || r.Batch < 16 || r.Batch%8 != 0 || !strings.Contains(r.Fit, "it takes") {
		t.Fatalf("%+v, %v", r, err)
	}
	var m *network.MemoryError
	if _, err := Run(t.Context(), q, Options{Model: "lenet", Batch: 100 * r.Batch, Steps: 1}); !errors.As(err, &m) ||
		m.Fits < 16 {
		t.Errorf("%v", err)
	}
}

func TestInputMistakes(t *testing.T) {
	d, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Inputs: []string{"disk"}}, `unknown input "disk": use synthetic, memory, loader`},
		{Options{Inputs: []string{InMemory}}, "input memory is of images"},
		{Options{Inputs: []string{Synthetic, Synthetic}}, "input synthetic twice"},
		{Options{Data: "/nowhere"}, "/nowhere"},
		{Options{Data: "glyphs", Batch: 9000}, "they make no batch of 9000"},
		{Options{Batch: network.AutoBatch, Eval: true}, "evaluation takes a number"},
	} {
		c.o.Model = "lenet"
		if _, err := Run(t.Context(), d, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Run(ctx, d, Options{Model: "lenet", Data: "glyphs", Inputs: []string{FromLoader}}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
