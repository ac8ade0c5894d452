package device

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"onlinerna/nn/op"
	"onlinerna/nn/op/update"
)

func hostMemory(t *testing.T, n int) *HostMemory {
	t.Helper()
	m, err := NewHostMemory(n)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestHostMemoryIsAligned(t *testing.T) {
	for _, n := range []int{1, 3, 63, 64, 65, 4096, 100001} {
		m := hostMemory(t, n)
		b, err := HostSlice[uint8](Region{m, 0, n})
		if err != nil {
			t.Fatal(err)
		}
		if at := uintptr(unsafe.Pointer(&b[0])); at%64 != 0 || m.Bytes() != n {
			t.Errorf("%d bytes of host memory: %d at %#x", n, m.Bytes(), at)
		}
	}
	for _, n := range []int{-1, math.MaxInt} {
		if _, err := NewHostMemory(n); err == nil {
			t.Errorf("host memory of %d bytes must be an error", n)
		}
	}
}

func TestHostSliceShares(t *testing.T) {
	m := hostMemory(t, 24)
	all, _ := HostSlice[float64](Region{m, 0, 24})
	part, err := HostSlice[float32](Region{m, 8, 8})
	if err != nil {
		t.Fatal(err)
	}
	part[1] = 1 // the upper half of a float64, where the host is little-endian
	if len(part) != 2 || all[1] == 0 || all[0] != 0 || all[2] != 0 {
		t.Errorf("after a write to the second float64 the memory is %v", all)
	}
}

// deviceMemory is memory that the host cannot see.
type deviceMemory struct{ Memory }

func TestHostSliceRefuses(t *testing.T) {
	m := hostMemory(t, 24)
	freed := hostMemory(t, 24)
	freed.Free()
	for _, c := range []struct {
		name string
		r    Region
		want string
	}{
		{"another memory", Region{deviceMemory{}, 0, 8}, "not of host memory"},
		{"no memory", Region{nil, 0, 8}, "not of host memory"},
		{"past the end", Region{m, 8, 24}, "outside 24 bytes"},
		{"far past the end", Region{m, math.MaxInt - 7, 16}, "outside 24 bytes"},
		{"before the start", Region{m, -8, 8}, "outside"},
		{"negative size", Region{m, 8, -8}, "outside"},
		{"freed", Region{freed, 0, 8}, "outside 0 bytes"},
		{"odd offset", Region{m, 4, 8}, "whole elements"},
		{"odd size", Region{m, 0, 12}, "whole elements"},
	} {
		if _, err := HostSlice[float64](c.r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func TestRowMajorConverts(t *testing.T) {
	x := []float64{0, math.Copysign(0, -1), 1. / 3, -1e300, 1e-300, math.Inf(1)}
	rounded := make([]float64, len(x))
	for i, a := range x {
		rounded[i] = float64(float32(a))
	}
	wide := op.Tensor{Shape: op.Shape{2, 3}, Data: x}
	for _, c := range []struct {
		stored op.DType
		want   []float64
	}{{op.Float32, rounded}, {op.Float64, x}} {
		n := len(x) * c.stored.Size()
		r := Region{hostMemory(t, n+16), 8, n}
		if err := UploadRowMajor(r, wide); err != nil {
			t.Fatal(err)
		}
		got := op.New(op.T(op.Float64, 2, 3))
		if err := DownloadRowMajor(got, r); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Data.([]float64), c.want) {
			t.Errorf("stored as %v: %v, want %v", c.stored, got.Data, c.want)
		}
	}
	r := Region{hostMemory(t, 64), 0, 40}
	if err := UploadRowMajor(r, wide); err == nil || !strings.Contains(err.Error(), "40 bytes") {
		t.Errorf("upload to 40 bytes: error %v", err)
	}
	short := op.Tensor{Shape: op.Shape{2, 3}, Data: x[:5]}
	if err := UploadRowMajor(Region{r.Memory, 0, 48}, short); err == nil {
		t.Error("upload of a tensor with too little data must be an error")
	}
	if err := ConvertTensor(op.New(op.T(op.Int32, 2, 3)), wide); err == nil {
		t.Error("floats must not be converted to integers")
	}
}

// still is an optimiser that changes nothing.
type still struct{}

func (still) Name() string          { return "still" }
func (still) State() []string       { return nil }
func (still) Passes() []update.Pass { return nil }
func (still) Check() error          { return nil }

func TestSpansOfUpdates(t *testing.T) {
	for _, c := range []struct {
		spans []Span
		ok    bool
	}{
		{nil, true},
		{[]Span{{0, 10}}, true},
		{[]Span{{0, 0}, {0, 3}, {3, 2}, {10, 0}}, true},
		{[]Span{{0, 11}}, false},
		{[]Span{{-1, 2}}, false},
		{[]Span{{2, -1}}, false},
		{[]Span{{0, 3}, {2, 2}}, false},
		{[]Span{{5, 1}, {0, 1}}, false},
		{[]Span{{1, math.MaxInt}}, false},
	} {
		u := Update{Optimizer: still{}, NoDecay: c.spans}
		if err := u.checkSpans(10); (err == nil) != c.ok {
			t.Errorf("%v of 10 elements: %v", c.spans, err)
		}
	}
}
