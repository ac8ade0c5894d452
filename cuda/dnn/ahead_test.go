//go:build gpu && cgo

package dnn

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// rectified is a convolution with a ReLU, whose kernels cuDNN compiles.
func rectified(n int) *Graph {
	s := Shape{N: n, C: 8, H: 4, W: 4, O: 8, KH: 1, KW: 1, Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	xd, wd, yd := s.Dims()
	g := &Graph{Name: "forward + relu"}
	x, w, y := g.Tensor(BFloat16, xd), g.Tensor(BFloat16, wd), g.Between(Float32, yd)
	g.Convolve(Forward, s, x, w, y)
	g.ReLU(y, g.Tensor(BFloat16, yd))
	return g
}

// Plans made without the card, in several threads, are taken in place of the heuristics' if graph, options, card and
// cuDNN are equal and the file is whole; plans that cuDNN refuses, or that do not run, give way to the heuristics'.
func TestAhead(t *testing.T) {
	needDNN(t)
	c := openWith(t, driver.Options{KernelCache: t.TempDir()})
	d := newDNN(t, c)
	properties, err := d.Properties()
	if err != nil {
		t.Skip(err)
	}
	made, err := Describe(properties)
	check(t, err)
	if a, b := made.Info(), d.Info(); a.Name != b.Name || a.Arch() != b.Arch() || a.Multiprocessors != b.Multiprocessors {
		t.Errorf("described as %v, want %v", a, b)
	}
	check(t, made.Close())
	folder := t.TempDir()
	o := Options{Precision: number.BFloat16, Workspace: 1 << 20, Measure: true, Ahead: []string{t.TempDir(), folder}}
	graphs := []*Graph{rectified(1), rectified(2), blur.Graph(Forward, number.BFloat16)}
	var done []*Graph
	check(t, MakeAhead(properties, graphs, o, 2, func(m Made) error {
		done = append(done, m.Graph)
		if m.Plans() < 2 {
			t.Errorf("%s: %d plans", m.Graph.Name, m.Plans())
		}
		_, err := m.Write(folder)
		return err
	}))
	if len(done) != len(graphs) {
		t.Errorf("%d graphs, want %d", len(done), len(graphs))
	}
	state := func(g *Graph, o Options) state {
		t.Helper()
		p, err := d.NewPlans(g, o)
		check(t, err)
		defer func() { check(t, p.Close()) }()
		return p.state
	}
	for _, later := range []bool{false, true} {
		o.Later = later
		for _, g := range graphs {
			if s := state(g, o); s != offered {
				t.Errorf("%s, later %v: state %d", g.Name, later, s)
			}
		}
	}
	for name, change := range map[string]func(*Options){
		"other scratch": func(o *Options) { o.Workspace++ }, "equal bits": func(o *Options) { o.Deterministic = true },
		"another folder": func(o *Options) { o.Ahead = o.Ahead[:1] },
	} {
		other := o
		change(&other)
		if s := state(graphs[2], other); s != listed {
			t.Errorf("%s: state %d", name, s)
		}
	}
	if sim.Active() {
		t.Setenv("RNA_SIM_ARCH", "100")
		if s := state(graphs[0], o); s != offered { // the handle is of the card that it was opened for
			t.Errorf("state %d", s)
		}
	}
	// The graph runs, and its chosen plan is kept.
	run := func(faults string) *Plans {
		p, err := d.NewPlans(graphs[1], o)
		check(t, err)
		t.Cleanup(func() { check(t, p.Close()) })
		var at []driver.Span
		for _, n := range graphs[1].Places() {
			at = append(at, alloc(t, c, n).All())
		}
		work := alloc(t, c, max(p.Workspace(), 1)).All()
		if faults != "" {
			check(t, sim.Fault(faults))
			defer func() { check(t, sim.Fault("")) }()
		}
		check(t, p.Settle(at, work))
		check(t, p.Run(at, work))
		return p
	}
	if sim.Active() { // none of the plans made ahead runs
		fails := "cudnnBackendExecute@1=5000;cudnnBackendExecute@2=5000;cudnnBackendExecute@3=5000"
		if p := run(fails); !slices.Equal(p.Configurations(), []int{2, 1}) {
			t.Errorf("configurations %v: the heuristics were not asked", p.Configurations())
		}
		check(t, os.RemoveAll(c.Options().KernelCache))
	}
	if p := run(""); len(p.Configurations()) > 0 {
		t.Error("the heuristics were asked")
	}
	if s := state(graphs[1], o); s != kept {
		t.Errorf("after the choice: state %d", s)
	}
	// Damaged files count as missing.
	files, err := filepath.Glob(filepath.Join(folder, "ahead-*"))
	if check(t, err); len(files) != 3 {
		t.Fatalf("files %q", files)
	}
	whole, err := os.ReadFile(files[0])
	check(t, err)
	for _, f := range files {
		for _, damaged := range []string{"", string(whole[:len(whole)/2]), strings.Repeat("x", 99)} {
			check(t, os.WriteFile(f, []byte(damaged), 0o644))
		}
	}
	for _, g := range []*Graph{graphs[0], graphs[2]} {
		if s := state(g, o); s != listed {
			t.Errorf("%s, damaged: state %d", g.Name, s)
		}
	}
}
