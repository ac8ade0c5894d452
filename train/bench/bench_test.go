package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op"
)

func TestMain(m *testing.M) {
	triadElements, readElements = 1<<20, 1<<20
	os.Exit(m.Run())
}

func lenet(t *testing.T, eval bool) *Result {
	t.Helper()
	d, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := Run(t.Context(), d, Options{Model: "lenet", Batch: 8, Steps: 4, Warmup: 1, Eval: eval})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lenetMACs are the multiply-adds of LeNet's layers on an image, conv1 first.
var lenetMACs = []float64{28 * 28 * 6 * 25, 10 * 10 * 16 * 6 * 25, 400 * 120, 120 * 84, 84 * 10}

func TestRun(t *testing.T) {
	for _, eval := range []bool{false, true} {
		r := lenet(t, eval)
		forward := sum(lenetMACs)
		mode, gflop, convolutions := "training", 3*forward-lenetMACs[0], 5
		if eval {
			mode, gflop, convolutions = "evaluation", forward, 2
		}
		gflop *= 2 * 8 / 1e9
		if r.Mode != mode || r.Model != "lenet" || r.Batch != 8 || r.ImageSize != 28 || r.Channels != 1 ||
			r.Parameters != 61706 || r.Threads != 2 {
			t.Errorf("%+v", r)
		}
		if math.Abs(r.GFLOP-gflop) > 1e-12 {
			t.Errorf("%s: %.9f GFLOP, want %.9f", mode, r.GFLOP, gflop)
		}
		if len(r.Steps) != 4 || r.Warmup != 1 {
			t.Errorf("%d steps after %d", len(r.Steps), r.Warmup)
		}
		for _, s := range []Spread{r.Seconds, r.Images, r.GFLOPS} {
			if !(0 < s.Min && s.Min <= s.Q1 && s.Q1 <= s.Median && s.Median <= s.Q3 && s.Q3 <= s.Max) {
				t.Errorf("spread %+v", s)
			}
		}
		if math.Abs(r.Images.Max*r.Seconds.Min-8) > 1e-9 {
			t.Errorf("%g images/s at best, in %g s a step", r.Images.Max, r.Seconds.Min)
		}
		share, calls, sgd := 0.0, 0, false
		for i, k := range r.Kinds {
			share += k.Share
			if strings.Contains(k.Name, "conv2d") {
				calls += k.Calls
			}
			sgd = sgd || k.Name == "sgd"
			if i > 0 && k.Share > r.Kinds[i-1].Share {
				t.Errorf("%s, %g, comes after a share of %g", k.Name, k.Share, r.Kinds[i-1].Share)
			}
		}
		if math.Abs(share-1) > 1e-9 {
			t.Errorf("%s: shares add up to %.12f", mode, share)
		}
		if calls != convolutions || sgd == eval {
			t.Errorf("%s: %d convolutions, sgd %v", mode, calls, sgd)
		}
		if p := r.Products; p.GFLOP != r.GFLOP || p.Share <= 0 || p.Share >= 1 {
			t.Errorf("products: %+v", p)
		}
		if r.Triad <= 0 || r.Level != "go" && r.Peak <= 0 {
			t.Errorf("limits: %g GFLOP/s, %g GB/s", r.Peak, r.Triad)
		}
	}
}

// Frozen parameters keep their values, by an optimiser that would decay them, too, and cost no gradients.
func TestFreeze(t *testing.T) {
	d, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o, err := Options{Model: "lenet", Batch: 8, Optimizer: "adamw", Freeze: []string{"!fc3.*"}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	b, err := open(d, o, &feed{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	params := func() []float32 {
		x := make([]float32, b.net.Params.Len())
		if err := b.net.Params.ReadAt(x, 0); err != nil {
			t.Fatal(err)
		}
		return x
	}
	before := params()
	if _, err := b.measure(t.Context(), Synthetic, true); err != nil {
		t.Fatal(err)
	}
	for _, x := range b.net.Tensors() {
		for i, v := range params()[x.Off:][:x.Len] {
			if fixed := x.Off+x.Len <= 61706-850; fixed != (v == before[x.Off+i]) {
				t.Fatalf("element %d of the tensor at %d: %g, before %g", i, x.Off, v, before[x.Off+i])
			}
		}
	}
	r := &Result{Inputs: []InputSpeed{{}}}
	r.set(b, limits{})
	want := 2 * 8 / 1e9 * (sum(lenetMACs) + lenetMACs[4])
	if r.Frozen != 61706-850 || r.Parameters != 61706 || math.Abs(r.GFLOP-want) > 1e-12 ||
		r.work() != "training with adamw, 60856 parameters frozen" {
		t.Errorf("%d frozen, %.9f GFLOP, want %.9f; %s", r.Frozen, r.GFLOP, want, r.work())
	}
}

func TestOptimizers(t *testing.T) {
	d, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, streams := range map[string]int{"": 5, "adamw": 7, "lars": 7, "lamb": 11} {
		r, err := Run(t.Context(), d, Options{Model: "lenet", Batch: 4, Steps: 1, Warmup: 1, Optimizer: name})
		if err != nil {
			t.Fatal(err)
		}
		if name == "" {
			name = "sgd"
		}
		i := slices.IndexFunc(r.Kinds, func(k Kind) bool { return k.Name == name })
		if i < 0 || r.Optimizer != name {
			t.Fatalf("%s: optimizer %q, kinds %v", name, r.Optimizer, r.Kinds)
		}
		if got, want := r.Kinds[i].GB, 4e-9*float64(streams*r.Parameters); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s moves %g GB, want %g", name, got, want)
		}
	}
	if _, err := Run(t.Context(), d, Options{Model: "lenet", Optimizer: "adamx"}); err == nil ||
		!strings.Contains(err.Error(), "adamw") {
		t.Error(err)
	}
}

func TestWrite(t *testing.T) {
	r := lenet(t, false)
	var table, out, svg bytes.Buffer
	if err := errors.Join(r.WriteTable(&table), json.NewEncoder(&out).Encode(r), r.Plot(&svg, "svg")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"lenet, training, batch 8 of 28×28×1", "images/s", "quartiles", "conv2d_grad_weight",
		"sgd", "all products", "triad:"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &table)
		}
	}
	var again Result
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(&again); err != nil {
		t.Fatal(err)
	}
	if again.GFLOP != r.GFLOP || again.Seconds != r.Seconds || len(again.Kinds) != len(r.Kinds) ||
		again.Kinds[0] != r.Kinds[0] {
		t.Errorf("JSON has %+v", again)
	}
	if !strings.Contains(svg.String(), r.Kinds[0].Name) {
		t.Errorf("the figure lacks %q", r.Kinds[0].Name)
	}
	for d := xml.NewDecoder(&svg); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// idle is a CPU whose groups do nothing.
type idle struct{ *cpu.Device }

func (idle) Bind(*device.Group, *device.Plan, device.Args) (device.Kernel, error) {
	return func() error { return nil }, nil
}

// TestResNet50 counts the operations of ResNet-50 on an image: 4.09 billion multiply-adds forward, and three times as
// many in training, except for the unneeded gradient of the pixels.
func TestResNet50(t *testing.T) {
	d, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := Run(t.Context(), idle{d}, Options{Model: "resnet50", Batch: 1, Steps: 1, Warmup: 1})
	if err != nil {
		t.Fatal(err)
	}
	var convolutions int
	var forward, total float64
	for _, k := range r.Kinds {
		total += k.GFLOP
		if !strings.Contains(k.Name, "grad") {
			forward += k.GFLOP
		}
		if strings.Contains(k.Name, "conv2d") {
			convolutions += k.Calls
		}
	}
	const want, conv1 = 2 * 4.089184256, 2 * 112 * 112 * 64 * 3 * 49 / 1e9
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"forward", forward, want},
		{"kinds", total, 3*want - conv1},
		{"step", r.GFLOP, 3*want - conv1},
		{"products", r.Products.GFLOP, 3*want - conv1},
		{"convolutions", float64(convolutions), 3*53 - 1},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %.9f, want %.9f", c.name, c.got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	got := spread([]float64{5, 1, 2, 4})
	if want := (Spread{1, 1.75, 3, 4.25, 5}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := got.per(10), (Spread{2, 10 / 4.25, 10. / 3, 10 / 1.75, 10}); got != want {
		t.Errorf("10 each: %v, want %v", got, want)
	}
	if got, want := spread([]float64{7}), (Spread{7, 7, 7, 7, 7}); got != want {
		t.Errorf("one number: %v", got)
	}
}

func TestMistakes(t *testing.T) {
	d := device.NewReference(op.Float32)
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Model: "lenot"}, `did you mean "lenet"?`},
		{Options{Model: "lenet", Batch: -1}, "batch of -1 images"},
		{Options{Model: "lenet", Steps: -1}, "-1 steps"},
		{Options{Model: "lenet", Warmup: -2}, "-2 steps to warm up"},
		{Options{Model: "lenet", ImageSize: -3}, "image size -3"},
		{Options{Model: "lenet", Freeze: []string{"layer1*"}}, `freeze pattern "layer1*": no parameter has such a name`},
		{Options{Model: "lenet", Freeze: []string{"conv*"}, Eval: true}, "--freeze is of training"},
	} {
		if _, err := Run(t.Context(), d, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.o, err, c.want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Run(ctx, d, Options{Model: "lenet"}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
