//go:build gpu && cgo

package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/cuda/sim"
)

// The fastest algorithm is measured once, whatever the heuristics say, and kept in a file, which is made anew where it is damaged.
func TestConvolutionChoice(t *testing.T) {
	needDNN(t)
	t.Setenv("RNA_SIM_CLOCK", "1")
	folder := t.TempDir()
	c := openWith(t, Options{KernelCache: folder})
	d := newDNN(t, c)
	single := blur
	single.KH, single.KW, single.Pad = 1, 1, [2]int{}
	runs := func() uint64 { return sim.Calls("cudnnConvolutionForward") }
	// choose gives the algorithm, and whether it was measured.
	choose := func(s ConvolutionShape, o ConvolutionOptions) (algo int, measured bool) {
		t.Helper()
		o.Workspace = max(o.Workspace, 1<<20)
		before := runs()
		v, err := d.NewConvolution(ConvolutionForward, s, o)
		check(t, err)
		defer v.Close()
		m := alloc(t, c, max(v.Workspace(), 1))
		b := v.operands()
		check(t, v.Run(alloc(t, c, b[0]).All(), alloc(t, c, b[1]).All(), alloc(t, c, b[2]).All(), m.All()))
		return int(v.v.algo), runs()-before > 1
	}
	files := func() []string {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(folder, "*"))
		check(t, err)
		return list
	}
	measure := ConvolutionOptions{Measure: true}
	narrow := ConvolutionOptions{Measure: true, Precision: BFloat16}
	for _, test := range []struct {
		name     string
		shape    ConvolutionShape
		o        ConvolutionOptions
		algo     int // of the stand-in
		measured bool
		files    int
	}{
		{"by heuristics", single, ConvolutionOptions{}, 1, false, 0},
		{"the same bits in each run", single, ConvolutionOptions{Measure: true, Deterministic: true}, 1, false, 0},
		{"measured", single, measure, 0, true, 1},
		{"kept", single, measure, 0, false, 1},
		{"of another shape", blur, measure, 1, true, 2},
		{"in other bits", blur, narrow, 1, true, 3},
		{"with other scratch", single, ConvolutionOptions{Measure: true, Workspace: 1 << 21}, 0, true, 4},
		{"all kept", blur, narrow, 1, false, 4},
	} {
		algo, measured := choose(test.shape, test.o)
		if sim.Active() && (algo != test.algo || measured != test.measured) || sim.Active() && len(files()) != test.files {
			t.Errorf("%s: algorithm %d, measured %v, files %q", test.name, algo, measured, files())
		}
	}
	if !sim.Active() {
		return
	}
	for _, damage := range []string{"", "{", strings.Repeat("x", 100), `{"key":"other","algorithm":1,"math":3}`, `{"algorithm":7}`} {
		for _, f := range files() {
			check(t, os.WriteFile(f, []byte(damage), 0o644))
		}
		if algo, measured := choose(single, measure); algo != 0 || !measured {
			t.Errorf("behind a file of %q: algorithm %d, measured %v", damage, algo, measured)
		}
		if algo, measured := choose(single, measure); algo != 0 || measured {
			t.Errorf("it is not written anew: algorithm %d, measured %v", algo, measured)
		}
	}
	// An algorithm that is kept and no longer there.
	for _, f := range files() {
		b, err := os.ReadFile(f)
		check(t, err)
		check(t, os.WriteFile(f, []byte(strings.Replace(string(b), `"algorithm":0`, `"algorithm":5`, 1)), 0o644))
	}
	if algo, measured := choose(single, measure); algo != 0 || !measured {
		t.Errorf("an algorithm that is not there: %d, measured %v", algo, measured)
	}
}

// Where there is no room to measure, and where no algorithm runs, it is the first of the heuristics.
func TestFaultOfConvolutionChoice(t *testing.T) {
	fault(t, "")
	t.Setenv("RNA_SIM_CLOCK", "1")
	c := openWith(t, Options{KernelCache: t.TempDir(), ExactMemory: true})
	d := newDNN(t, c)
	single := blur
	single.KH, single.KW, single.Pad = 1, 1, [2]int{}
	for _, plan := range []string{"cuMemAlloc_v2@2=2", "cudnnConvolutionForward@0=5000"} {
		before := sim.Leaks()
		check(t, sim.Fault(plan))
		single.N++ // has no file
		v, err := d.NewConvolution(ConvolutionForward, single, ConvolutionOptions{Measure: true, Workspace: 1 << 20})
		check(t, err)
		check(t, sim.Fault(""))
		if v.v.algo != 1 {
			t.Errorf("%s: algorithm %d", plan, v.v.algo)
		}
		check(t, v.Close())
		if after := sim.Leaks(); after != before {
			t.Errorf("%s: leaked: %s", plan, after)
		}
	}
	check(t, sim.Fault("cudnnConvolutionForward@1=719,later"))
	single.N++
	if v, err := d.NewConvolution(ConvolutionForward, single, ConvolutionOptions{Measure: true, Workspace: 1 << 20}); err == nil {
		t.Error("a lost GPU is no error")
		check(t, v.Close())
	}
	check(t, sim.Fault(""))
}
