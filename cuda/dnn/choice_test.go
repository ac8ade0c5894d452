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
)

// choiceCase is a choice among the plans of a convolution.
type choiceCase struct {
	name     string
	shape    Shape
	o        Options
	number   int // of the stand-in's engine
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

// A plan that fails gives way to others. Without a plan that runs, or on a lost GPU, it is an error.
func TestFaultOfChoice(t *testing.T) {
	fault(t, "")
	t.Setenv("RNA_SIM_CLOCK", "1")
	for _, test := range []struct {
		plan string
		want error
	}{{"cudnnBackendExecute@0=5000", ErrNoPlan}, {"cudnnBackendExecute@1=5000", nil},
		{"cudnnBackendExecute@1=719,later", driver.ErrLost}} {
		t.Run(test.plan, func(t *testing.T) {
			if test.want == driver.ErrLost {
				gputest.Alone(t, "", func(string) { settle(t, test.plan, test.want) })
			} else {
				settle(t, test.plan, test.want)
			}
		})
	}
}

// settle makes the stand-in fail while plans are measured.
func settle(t *testing.T, plan string, want error) {
	folder := t.TempDir()
	c, err := driver.Open(0, driver.Options{KernelCache: folder, ExactMemory: true})
	check(t, err)
	d, err := New(c.Stream())
	check(t, err)
	v, err := convolution(d, Forward, blur, Options{Measure: true, Workspace: 1 << 20})
	check(t, err)
	m, err := c.Alloc(1 << 12)
	check(t, err)
	check(t, sim.Fault(plan))
	err = v.Settle([]driver.Span{m.Span(0, 24), m.Span(256, 72), m.Span(512, 48)}, m.Span(1024, v.Workspace()))
	check(t, sim.Fault(""))
	if !errors.Is(err, want) || err == nil && v.Engine().Number != 0 {
		t.Errorf("%s: %v", plan, err)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) > 0 == (want != nil) {
		t.Errorf("%s: files %v, %v", plan, files, err)
	}
	_ = errors.Join(m.Close(), v.Close(), d.Close(), c.Close()) // closing a lost GPU fails
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
