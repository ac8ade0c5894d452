//go:build gpu && cgo

package space

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/rna"
)

// needSim skips a test that needs injected faults.
func needSim(t *testing.T) {
	t.Helper()
	gputest.Need(t)
	if !sim.Active() {
		t.Skip("faults need the stand-in, and this is a GPU")
	}
	t.Cleanup(func() { check(t, sim.Fault("")) })
}

// faulty runs f with its first call failing, then its second, and so on until f succeeds, and returns the number of
// calls. f must fail each time before that.
func faulty(t *testing.T, code string, f func() error) int {
	t.Helper()
	for k := 1; ; k++ {
		check(t, sim.Fault(fmt.Sprintf("*@%d=%s", k, code)))
		err := f()
		check(t, sim.Fault(""))
		if err == nil {
			// A call whose failure went unnoticed ends up here, too.
			return k - 1
		}
		if e := (*driver.Error)(nil); !errors.As(err, &e) {
			t.Fatalf("with call %d failing: %v", k, err)
		}
		if k > 2000 {
			t.Fatal("no end of it")
		}
	}
}

// Each failed driver call is an error of the operation, which succeeds when it is retried. Nothing leaks.
func TestFaultOfEachCallOfSpace(t *testing.T) {
	needSim(t)
	before := sim.Leaks()
	// Use a separate cache: code that fails to load from a cache is compiled again, and nothing fails.
	c := openWith(t, driver.Options{KernelCache: t.TempDir(), ExactMemory: true})
	vs := walk(5000, 3)
	o := Options{piece: 2500, span: 1000, Memory: 2500 * 4 * 5}
	var s *Space
	count := map[string]int{}
	count["NewSpace"] = faulty(t, "1", func() (err error) { s, err = New(c, 5000, o); return err })
	held := make([]rna.Vector, len(vs))
	for i, v := range vs {
		count["New"] += faulty(t, "1", func() (err error) { held[i], err = s.New(); return err })
		for _, src := range []rna.Source{v, hiddenVector{v}} {
			count["Store"] += faulty(t, "1", func() error { _, err := s.Store(held[i], src); return err })
		}
	}
	r := []rna.Residual{{X: held[1], Y: held[0]}, {X: held[2], Y: held[1]}}
	row, again := make([]float64, 2), make([]float64, 2)
	count["GramRow"] = faulty(t, "1", func() error { return s.GramRow(row, r[1], r) })
	check(t, s.GramRow(again, r[1], r))
	if row[0] != again[0] || row[1] != again[1] || math.IsNaN(row[0]) {
		t.Errorf("products %v after faults, then %v", row, again)
	}
	count["MaxAbs"] = faulty(t, "1", func() error { _, err := s.MaxAbs(r[0]); return err })
	out := make(rna.Slice32, 5000)
	count["Combine"] = faulty(t, "1", func() error {
		return s.Combine(out, []rna.Term{{Coef: 1, Vector: held[0]}, {Coef: 1, Vector: held[1]}})
	})
	for i, x := range out {
		if x != vs[0][i]+vs[1][i] {
			t.Fatalf("element %d is %v, want %v", i, x, vs[0][i]+vs[1][i])
		}
	}
	count["ReadAt"] = faulty(t, "1", func() error { return held[0].ReadAt(out, 0) })
	for op, least := range map[string]int{"NewSpace": 11, "New": 6, "Store": 18, "GramRow": 7, "MaxAbs": 6,
		"Combine": 5, "ReadAt": 2} {
		if count[op] < least {
			t.Errorf("%s was tried with %d calls failing, it makes at least %d", op, count[op], least)
		}
	}
	for _, v := range held {
		check(t, v.Close())
	}
	check(t, s.Close())
	check(t, c.Close())
	if left := sim.Leaks(); left != before {
		t.Errorf("not given back: %s, %s before", left, before)
	}
}

// hiddenVector hides the memory of a vector.
type hiddenVector struct{ rna.Source }

func TestFaultOutOfMemoryForSpace(t *testing.T) {
	needSim(t)
	c := openWith(t, driver.Options{KernelCache: gputest.KernelCache, ExactMemory: true})
	s := openSpace(t, c, 1000, Options{})
	check(t, sim.Fault("cuMemAlloc_v2@0=2"))
	v, err := s.New()
	check(t, err)
	if v.(*vector).pieces[0].host == nil {
		t.Error("the vector is in GPU memory, which there is none of")
	}
	check(t, sim.Fault("cuMemAlloc_v2@0=2;cuMemHostAlloc@0=2"))
	if _, err := s.New(); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("no memory at all: %v", err)
	}
	if _, err := New(c, 1000, Options{}); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("no memory for the space: %v", err)
	}
	check(t, sim.Fault(""))
	check(t, v.Close())
}

// NVRTC and kernels fail.
func TestFaultOfLibrariesForSpace(t *testing.T) {
	needSim(t)
	c := openWith(t, driver.Options{KernelCache: t.TempDir()})
	for _, plan := range []string{"nvrtcCompileProgram@1=6", "cuModuleGetFunction@1=500"} {
		check(t, sim.Fault(plan))
		if _, err := New(c, 10, Options{}); err == nil {
			t.Errorf("%s: the space opened", plan)
		}
	}
	check(t, sim.Fault(""))
	s := openSpace(t, c, 10, Options{})
	v := must(s.New())
	_, err := s.Store(v, make(rna.Slice32, 10))
	check(t, err)
	row := make([]float64, 1)
	r := rna.Residual{X: v}
	check(t, sim.Fault("cuLaunchKernel@1=701"))
	var e *driver.Error
	if err := s.GramRow(row, r, []rna.Residual{r}); !errors.As(err, &e) ||
		e.Name != "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" {
		t.Errorf("a product that failed: %v", err)
	}
	check(t, s.GramRow(row, r, []rna.Residual{r}))
	check(t, v.Close())
}

// After the device is lost, every call returns driver.ErrLost, and closing succeeds.
func TestFaultLosesSpace(t *testing.T) {
	needSim(t)
	for _, plan := range []string{"cuLaunchKernel@1=719,later", "cuLaunchKernel@1=700", "*@5=999,sticky"} {
		t.Run(plan, func(t *testing.T) { gputest.Alone(t, "", func(string) { loseSpace(t, plan) }) })
	}
}

func loseSpace(t *testing.T, plan string) {
	c, err := driver.Open(0, driver.Options{KernelCache: gputest.KernelCache})
	check(t, err)
	s, err := New(c, 100, Options{})
	check(t, err)
	v := must(s.New())
	check(t, sim.Fault(plan))
	_, err = s.Store(v, make(rna.Slice32, 100))
	for range 3 {
		if err == nil { // the fault comes later
			_, err = s.Store(v, make(rna.Slice32, 100))
		}
	}
	if !errors.Is(err, driver.ErrLost) {
		t.Errorf("%s: %v", plan, err)
	}
	if err := s.Combine(make(rna.Slice32, 100), []rna.Term{{Coef: 1, Vector: v}}); !errors.Is(err, driver.ErrLost) {
		t.Errorf("%s, then a combination: %v", plan, err)
	}
	if _, err := s.New(); !errors.Is(err, driver.ErrLost) {
		t.Errorf("%s, then a vector: %v", plan, err)
	}
	_ = errors.Join(v.Close(), s.Close(), c.Close()) // they may report the loss again
}
