//go:build gpu && cgo

package cuda

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/internal/gputest"
	"onlinerna/cuda/lazy"
	"onlinerna/rna"
)

func openNet(t *testing.T) *Net {
	t.Helper()
	d, err := OpenNet(0, NetOptions{Context: Options{KernelCache: gputest.KernelCache, ExactMemory: true}, Deterministic: true})
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	return d.(*Net)
}

// Snapshots of vectors and combinations into them stay on the GPU.
func TestNetSpace(t *testing.T) {
	gputest.NeedDNN(t)
	d := openNet(t)
	const n = 1000
	v, err := d.NewVector(n)
	check(t, err)
	defer v.Free()
	space, err := d.NewSpace(n)
	check(t, err)
	w, err := rna.NewWindow(space, 3)
	check(t, err)
	defer func() { check(t, w.Close()) }()
	for i := range 4 {
		check(t, v.Fill(float64(i*i))) // not waited for: the space does
		check(t, w.Push(v))
	}
	if s, ok := v.(driver.Resident); !ok {
		t.Error("a vector is not in the GPU's memory")
	} else if _, ok := s.Float32Span(1, n); ok {
		t.Error("elements behind the end are there")
	}
	check(t, w.Average(v, 2)) // of 4 and 9
	check(t, v.AddScaled(1, v))
	norm, err := v.Norm()
	check(t, err)
	if want := 13 * math.Sqrt(n); math.Abs(norm-want) > 1e-9 {
		t.Errorf("norm %v, want %v", norm, want)
	}
}

func TestNetSpaceBytes(t *testing.T) {
	gputest.NeedDNN(t)
	d := openNet(t)
	one, two := d.SpaceBytes(1<<20, 10), d.SpaceBytes(1<<20, 11)
	if two-one < 4<<20 || one < 10*4<<20+DefaultReserve {
		t.Errorf("a space takes %d bytes, with one more vector %d", one, two)
	}
}

// A cuDNN that is too old is named with what to install, and RNA does without it.
func TestFaultOfOldDNN(t *testing.T) {
	gputest.Fault(t, "")
	gputest.NeedDNN(t)
	t.Setenv("RNA_SIM_CUDNN", "7")
	_, err := OpenNet(0, NetOptions{})
	for _, want := range []string{"cuDNN 7.6.5 is too old, needed is 8.1.0 or newer: " + lazy.CuDNN.File(), "pip install"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q", err, want)
		}
	}
	r := Look()
	var b bytes.Buffer
	check(t, r.Print(&b))
	for _, want := range []string{"cuDNN          7.6.5, cannot be used; RNA does without, nets need it", "cuDNN 7.6.5 is too old", "RNA can run on the GPU"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	if r.Net() >= 0 || !r.Usable() {
		t.Errorf("nets on GPU %d, RNA on one: %v", r.Net(), r.Usable())
	}
}
