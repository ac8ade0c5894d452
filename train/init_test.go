package train

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/network"
)

// TestFineTune starts from weights of other classes with frozen layers, which stay equal bit for bit, is interrupted
// and resumed.
func TestFineTune(t *testing.T) {
	dev := cpuDevice(t, 2)
	dir := t.TempDir()
	first := trained(t, tinyColour(filepath.Join(dir, "first"), pictures(t, 20, 6, 16)), dev)
	c := tinyColour(filepath.Join(dir, "fine"), pictures(t, 20, 6, 16))
	c.Init = filepath.Join(first.Resolved.Out, "final.safetensors")
	c.NumClasses = first.Resolved.NumClasses + 3
	c.Freeze, c.HeadRate, c.LayerDecay = []string{"conv[12].*", "bn[12].*"}, .05, .7
	run := trained(t, c, dev)
	if note := strings.Join(run.Resolved.Notes, "\n"); !strings.Contains(note, "the last layer, which starts fresh") {
		t.Errorf("notes %s", note)
	}
	before, after := tensors(t, first.Net), tensors(t, run.Net)
	for name, want := range before {
		layer, _, _ := strings.Cut(name, ".")
		frozen := slices.Contains([]string{"conv1", "bn1", "conv2", "bn2"}, layer) && !strings.HasSuffix(name, "tracked")
		if frozen != slices.Equal(after[name], want) {
			t.Errorf("%s: frozen %v", name, frozen)
		}
	}
	for _, bad := range []func(*Spec){
		func(c *Spec) { c.LayerDecay = 1.5 }, func(c *Spec) { c.HeadRate = -1 },
		func(c *Spec) { c.Freeze = []string{"layer9.*"} }, func(c *Spec) { c.Init = "nowhere.pt" },
	} {
		c := c
		c.Out = filepath.Join(dir, "bad")
		bad(&c)
		if r, err := New(c, Deps{Device: dev}); err == nil {
			r.Close()
			t.Errorf("no error for %v, %v, %v, %v", c.LayerDecay, c.HeadRate, c.Freeze, c.Init)
		}
	}
}

// TestFineTuneHead: the last layer has a higher default rate only if it must be learnt.
func TestFineTuneHead(t *testing.T) {
	dev := cpuDevice(t, 1)
	dir := t.TempDir()
	set := pictures(t, 40, 6, 16)
	first := trained(t, tinyColour(filepath.Join(dir, "first"), set), dev)
	from := func(change func(*Spec)) *Run {
		c := Spec{Data: set, Model: "conv6", Init: filepath.Join(first.Resolved.Out, "final.safetensors"), Epochs: 2}
		change(&c)
		return newRun(t, c, dev)
	}
	head := func(r *Run) float64 {
		f := r.Net.Factors(network.Rates{Head: 2})
		for _, g := range r.engine.update.Factors {
			if g.Off == f[len(f)-1].Off {
				return g.Rate
			}
		}
		return 1
	}
	for name, c := range map[string]struct {
		change func(*Spec)
		want   float64
	}{
		"the same classes": {func(*Spec) {}, 1},
		"a fresh head":     {func(c *Spec) { c.NumClasses = 5 }, 5},
		"other classes":    {func(c *Spec) { c.Classes = []string{"striped", "plain"} }, 5},
		"a rate":           {func(c *Spec) { c.NumClasses, c.Schedule.Rate = 5, 0.01 }, 1},
		"a head's rate":    {func(c *Spec) { c.HeadRate, c.Schedule.Rate = 0.02, 0.01 }, 2},
	} {
		r := from(c.change)
		if got := head(r); math.Abs(got-c.want) > 1e-6 || (r.Resolved.HeadRate == 0) != (c.want == 1) {
			t.Errorf("%s: the head's rate is %g of the others, want %g; head_lr %g", name, got, c.want, r.Resolved.HeadRate)
		}
	}
	var said []string
	r := from(func(c *Spec) { c.Batch = 32 })
	r.Log = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	if err := r.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	if want := "Warning: an epoch of 40 images has 2 steps: a batch of 4 makes 10"; !slices.Contains(said, want) {
		t.Errorf("said %q, not %q", said, want)
	}
	said = nil
	r = from(func(*Spec) {})
	r.Log = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	if err := r.Train(context.Background()); err != nil ||
		slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, "Warning") }) {
		t.Errorf("said %q, %v", said, err)
	}
}
