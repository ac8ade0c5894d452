//go:build gpu && cgo

package cuda

import (
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/sim"
	"onlinerna/rna"
)

// A space takes a point and combines into it, and what is read and written over the host is the same.
func TestPoint(t *testing.T) {
	const dim = 5000
	c := open(t)
	s := openSpace(t, c, dim, SpaceOptions{})
	p, err := c.NewPoint(dim)
	check(t, err)
	defer func() { check(t, p.Close()) }()
	src := walk(dim, 1)[0]
	check(t, p.WriteAt(src[:1000], 0))
	check(t, p.WriteAt(src[1000:], 1000))
	v, err := s.New()
	check(t, err)
	defer func() { check(t, v.Close()) }()
	copies := sim.Calls("cuMemcpyHtoDAsync_v2")
	_, err = s.Store(v, p)
	check(t, err)
	if sim.Calls("cuMemcpyHtoDAsync_v2") != copies {
		t.Error("the point went over the host")
	}
	check(t, s.Combine(p, []rna.Term{{Coef: 2, Vector: v}}))
	got := make([]float32, dim-10)
	check(t, p.ReadAt(got, 10))
	want := slices.Clone(src[10:])
	for i := range want {
		want[i] *= 2
	}
	if p.Len() != dim || !slices.Equal(got, want) {
		t.Errorf("%d elements: %v…, want %v…", p.Len(), got[:4], want[:4])
	}
	for _, err := range []error{p.ReadAt(got, 11), p.WriteAt(got, -1)} {
		if err == nil || !strings.Contains(err.Error(), "point of 5000") {
			t.Errorf("out of range: %v", err)
		}
	}
	if _, ok := p.Float32Span(1, dim); ok {
		t.Error("a span beyond the end")
	}
	if _, err := c.NewPoint(0); err == nil {
		t.Error("a point of 0 elements")
	}
}

func TestBandwidth(t *testing.T) {
	c := open(t)
	if v, err := c.Bandwidth(1 << 20); err != nil || v <= 0 {
		t.Errorf("%g bytes a second, %v", v, err)
	}
	if _, err := c.Bandwidth(1 << 50); err == nil || !strings.Contains(err.Error(), "measuring the bandwidth") {
		t.Errorf("more than the memory: %v", err)
	}
}
