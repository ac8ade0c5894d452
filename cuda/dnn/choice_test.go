//go:build gpu && cgo

package dnn

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// choiceCase is a choice among the algorithms or plans of a convolution.
type choiceCase struct {
	name     string
	shape    Shape
	o        Options
	number   int // of the stand-in's algorithm or engine
	measured bool
	files    int // with kept choices afterwards
}

// choices makes choices one after another. After each kind of damage to the cache's files it measures the third choice
// once more, which is kept again.
func choices(t *testing.T, pattern string, choose func(s Shape, o Options) (number int, measured bool),
	cases []choiceCase, damages []func(kept []byte) []byte) {
	t.Helper()
	files := func() []string {
		t.Helper()
		list, err := filepath.Glob(pattern)
		check(t, err)
		return list
	}
	for _, c := range cases {
		if number, measured := choose(c.shape, c.o); sim.Active() &&
			(number != c.number || measured != c.measured || len(files()) != c.files) {
			t.Errorf("%s: number %d, measured %v, files %q", c.name, number, measured, files())
		}
	}
	c := cases[2]
	for i, damage := range damages {
		if !sim.Active() {
			return
		}
		for _, f := range files() {
			b, err := os.ReadFile(f)
			check(t, err)
			check(t, os.WriteFile(f, damage(b), 0o644))
		}
		if number, measured := choose(c.shape, c.o); number != c.number || !measured {
			t.Errorf("damage %d: number %d, measured %v", i, number, measured)
		}
		if number, measured := choose(c.shape, c.o); number != c.number || measured {
			t.Errorf("damage %d, it is not written anew: number %d, measured %v", i, number, measured)
		}
	}
}

// written damages a file by replacing its content.
func written(text string) func([]byte) []byte { return func([]byte) []byte { return []byte(text) } }

// replaced damages a file in one place.
func replaced(old, by string) func([]byte) []byte {
	return func(b []byte) []byte { return []byte(strings.Replace(string(b), old, by, 1)) }
}

// The fastest algorithm is measured once, whatever the heuristics say, and kept in a file; a damaged file is rewritten.
func TestConvolutionChoice(t *testing.T) {
	needDNN(t)
	t.Setenv("RNA_SIM_CLOCK", "1")
	t.Setenv("RNA_SIM_GRAPH", "0")
	folder := t.TempDir()
	c := openWith(t, driver.Options{KernelCache: folder})
	d := newDNN(t, c)
	single := blur
	single.KH, single.KW, single.Pad = 1, 1, [2]int{}
	runs := func() uint64 { return sim.Calls("cudnnConvolutionForward") }
	// choose returns the algorithm and whether it was measured.
	choose := func(s Shape, o Options) (algo int, measured bool) {
		t.Helper()
		o.Workspace = max(o.Workspace, 1<<20)
		before := runs()
		v, err := d.NewConvolution(Forward, s, o)
		check(t, err)
		defer v.Close()
		m := alloc(t, c, max(v.Workspace(), 1))
		b := v.Operands()
		x, w, y := alloc(t, c, b[0]).All(), alloc(t, c, b[1]).All(), alloc(t, c, b[2]).All()
		// on zeros another algorithm would be the fastest
		check(t, errors.Join(c.Stream().Fill(x, 0), c.Stream().Fill(w, 0)))
		check(t, v.Settle(x, w, y, m.All()))
		check(t, v.Run(x, w, y, m.All()))
		return int(v.v.algo), runs()-before > 2
	}
	measure := Options{Measure: true}
	narrow := Options{Measure: true, Precision: number.BFloat16}
	choices(t, filepath.Join(folder, "*"), choose, []choiceCase{
		{"by heuristics", single, Options{}, 1, false, 0},
		{"the same bits in each run", single, Options{Measure: true, Deterministic: true}, 1, false, 0},
		{"measured", single, measure, 0, true, 1},
		{"kept", single, measure, 0, false, 1},
		{"of another shape", blur, measure, 1, true, 2},
		{"in other bits", blur, narrow, 1, true, 3},
		{"with other scratch", single, Options{Measure: true, Workspace: 1 << 21}, 0, true, 4},
		{"all kept", blur, narrow, 1, false, 4},
	}, []func([]byte) []byte{
		written(""), written("{"), written(strings.Repeat("x", 100)), written(`{"key":"other","algorithm":1,"math":3}`),
		written(`{"algorithm":7}`),
		replaced(`"algorithm":0`, `"algorithm":5`), // an algorithm that no longer exists
	})
}

// If none can be timed, the heuristics' first one is taken. Without a working algorithm, or on a lost GPU, it is an
// error.
func TestFaultOfConvolutionChoice(t *testing.T) {
	fault(t, "")
	t.Setenv("RNA_SIM_CLOCK", "1")
	t.Setenv("RNA_SIM_GRAPH", "0")
	for _, test := range []struct {
		plan string
		want error
	}{{"cudnnConvolutionForward@0=5000", ErrNoAlgorithm}, {"cuEventCreate@0=2", nil},
		{"cudnnConvolutionForward@1=719,later", driver.ErrLost}} {
		t.Run(test.plan, func(t *testing.T) {
			if test.want == driver.ErrLost {
				gputest.Alone(t, "", func(string) { settle(t, test.plan, test.want) })
			} else {
				settle(t, test.plan, test.want)
			}
		})
	}
}

// settle makes the stand-in fail while algorithms are measured.
func settle(t *testing.T, plan string, want error) {
	folder := t.TempDir()
	c, err := driver.Open(0, driver.Options{KernelCache: folder, ExactMemory: true})
	check(t, err)
	d, err := New(c.Stream())
	check(t, err)
	v, err := d.NewConvolution(Forward, blur, Options{Measure: true, Workspace: 1 << 20})
	check(t, err)
	m, err := c.Alloc(1 << 12)
	check(t, err)
	check(t, sim.Fault(plan))
	err = v.Settle(m.Span(0, 24), m.Span(256, 72), m.Span(512, 48), m.Span(1024, v.Workspace()))
	check(t, sim.Fault(""))
	if !errors.Is(err, want) || err == nil && v.v.algo != 1 {
		t.Errorf("%s: algorithm %d, %v", plan, v.v.algo, err)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
		t.Errorf("%s: files %v, %v", plan, files, err)
	}
	_ = errors.Join(m.Close(), v.Close(), d.Close(), c.Close()) // closing a lost GPU fails
}

// Algorithms need more scratch than the heuristics claim: the real sizes are planned.
func TestFaultOfScratch(t *testing.T) {
	fault(t, "")
	t.Setenv("RNA_SIM_WORKSPACE", "1")
	t.Setenv("RNA_SIM_CLOCK", "1")
	d := newDNN(t, openWith(t, driver.Options{KernelCache: t.TempDir()}))
	shape := blur
	shape.H, shape.W = 40, 40
	const limit = 10 << 10 // enough for all, according to the heuristics
	v, err := d.NewConvolution(Forward, shape, Options{Measure: true, Workspace: limit})
	check(t, err)
	defer v.Close()
	if v.Workspace() > limit {
		t.Errorf("%d bytes of scratch where %d are allowed", v.Workspace(), limit)
	}
	b := v.Operands()
	x, w, y, m := alloc(t, d.c, b[0]).All(), alloc(t, d.c, b[1]).All(), alloc(t, d.c, b[2]).All(),
		alloc(t, d.c, max(v.Workspace(), 1)).All()
	check(t, v.Settle(x, w, y, m))
	check(t, v.Run(x, w, y, m))
	check(t, d.c.Synchronize())
}

// A cuDNN for a later CUDA than the driver supports is refused with the remedy.
func TestFaultOfVersions(t *testing.T) {
	fault(t, "")
	t.Setenv("RNA_SIM_CUDART", "13000")
	_, err := New(openWith(t, driver.Options{}).Stream())
	for _, want := range []string{"for CUDA 13.0, and the driver supports CUDA 12.9", "nvidia-cudnn-cu12"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q", err, want)
		}
	}
}
