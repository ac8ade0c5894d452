//go:build gpu && cgo

package space

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
	"onlinerna/rna"
	"onlinerna/rna/spacetest"
)

// openSpace opens a space and closes it at the test's end.
func openSpace(t testing.TB, c *driver.Context, dim int, o Options) *Space {
	t.Helper()
	s, err := New(c, dim, o)
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	return s
}

func TestSpace(t *testing.T) {
	for name, o := range map[string]Options{
		"whole":        {},
		"blocks":       {piece: 4096, span: 1024, stage: 3000},
		"pinned":       {Memory: 1, stage: 5000},
		"partly":       {Memory: 3*70_001*4 + 1, piece: 8192, span: 8192},
		"single piece": {span: 3000, piece: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			gputest.Need(t)
			// exact bounds of allocations
			c := openWith(t, driver.Options{KernelCache: gputest.KernelCache, ExactMemory: true})
			gputest.Ran(t, gputest.Spaces, number.Float32)
			spacetest.Run(t, func(dim int) (rna.Space, error) { return openSpace(t, c, dim, o), nil })
		})
	}
}

// walk returns n iterates of a linear fixed-point iteration.
func walk(dim, n int) []rna.Slice32 {
	rng := rand.New(rand.NewPCG(3, uint64(dim)))
	v, rate := make([]float64, dim), make([]float64, dim)
	for i := range v {
		v[i], rate[i] = rng.NormFloat64(), .99*rng.Float64()
	}
	out := make([]rna.Slice32, n)
	for k := range out {
		out[k] = make(rna.Slice32, dim)
		for i := range v {
			out[k][i] = float32(v[i] + .3)
			v[i] *= rate[i]
		}
	}
	return out
}

func window(t testing.TB, s rna.Space, n int) *rna.Window {
	t.Helper()
	w, err := rna.NewWindow(s, n)
	check(t, err)
	t.Cleanup(func() { check(t, w.Close()) })
	return w
}

// The Gram matrix of a window in GPU memory equals that in host memory, also with more residuals than are multiplied at
// a time, and wherever the vectors lie.
func TestSpaceGram(t *testing.T) {
	const dim, n = 40_000, columns + 3
	host, err := rna.NewHost32(dim, 0)
	check(t, err)
	want := window(t, host, n)
	vs := walk(dim, n+4)
	for _, v := range vs {
		check(t, want.Push(v))
	}
	largest := 0.0
	for _, g := range want.State().Gram {
		largest = max(largest, math.Abs(g))
	}
	var before []float64
	for _, o := range []Options{{}, {piece: 2 * spanLen, Memory: 1 << 20},
		{span: 4096, piece: 16384, Memory: 1 << 20}} {
		c := open(t)
		got := window(t, openSpace(t, c, dim, o), n)
		launches := sim.Calls("cuLaunchKernel")
		for _, v := range vs {
			check(t, got.Push(v))
		}
		if o == (Options{}) && sim.Active() { // launches for each vector: check for NaN, largest element, and products
			if k := sim.Calls("cuLaunchKernel") - launches; k > uint64(4*len(vs)) {
				t.Errorf("%d launches for %d vectors", k, len(vs))
			}
		}
		if before == nil {
			before = got.State().Gram
		} else if o.span == 0 && !slices.Equal(before, got.State().Gram) {
			t.Errorf("%+v: other bits than in one piece", o)
		}
		for i, g := range got.State().Gram {
			if w := want.State().Gram[i]; math.Abs(g-w) > 1e-12*largest {
				t.Fatalf("%+v: entry %d is %v, want %v", o, i, g, w)
			}
		}
	}
}

// Vectors lie in GPU memory if they fit after the context has returned the freed memory that it caches.
func TestSpaceTakesKeptMemory(t *testing.T) {
	gputest.Need(t)
	c := open(t)
	const dim = 1 << 20
	probe := openSpace(t, c, dim, Options{})
	free, _, err := c.MemInfo()
	check(t, err)
	m, err := c.Alloc(64 << 20)
	check(t, err)
	check(t, m.Close())
	if st, err := c.Stats(); err != nil || st.Cached < 64<<20 {
		t.Skipf("the context keeps %d bytes, %v", st.Cached, err)
	}
	probe.opts.Reserve = free - 5*dim // room for one vector if all cached memory is returned
	for _, want := range []bool{true, false} {
		v, err := probe.New()
		check(t, err)
		t.Cleanup(func() { check(t, v.Close()) })
		if got := v.(*vector).pieces[0].device != nil; got != want {
			t.Errorf("the vector lies in GPU memory: %v, want %v", got, want)
		}
	}
}

// onDevice is a vector in GPU memory like a training device's.
type onDevice struct {
	t testing.TB
	m *driver.Memory
}

func (v onDevice) Len() int { return int(v.m.Bytes() / 4) }

func (v onDevice) Float32Span(off, n int) (driver.Span, bool) {
	return v.m.Span(4*int64(off), 4*int64(n)), true
}

func (v onDevice) ReadAt(dst []float32, off int) error {
	if len(dst) > 1 {
		v.t.Errorf("%d elements were read over the host", len(dst))
	}
	copy(dst, gputest.Download[float32](v.t, v.m.Span(4*int64(off), 4*int64(len(dst)))))
	return nil
}

func (v onDevice) WriteAt([]float32, int) error {
	v.t.Error("elements were written over the host")
	return nil
}

// Copies between vectors in GPU memory do not use the host.
func TestSpaceDeviceMemory(t *testing.T) {
	const dim = 9000
	for _, o := range []Options{{}, {Memory: 4096 * 4, piece: 4096, span: 512}} {
		c := open(t)
		s := openSpace(t, c, dim, o)
		src := walk(dim, 1)[0]
		from, to := onDevice{t, gputest.Upload(t, c, src)}, onDevice{t, alloc(t, c, 4*dim)}
		check(t, c.Synchronize())
		v, err := s.New()
		check(t, err)
		most, err := s.Store(v, from)
		check(t, err)
		want := 0.0
		for _, x := range src {
			want = max(want, math.Abs(float64(x)))
		}
		if most != want {
			t.Errorf("largest element %v, want %v", most, want)
		}
		check(t, s.Combine(to, []rna.Term{{Coef: 2, Vector: v}}))
		for i, x := range gputest.Download[float32](t, to.m.All()) {
			if x != 2*src[i] {
				t.Fatalf("element %d is %v, want %v", i, x, 2*src[i])
			}
		}
		bad := append(rna.Slice32(nil), src...)
		bad[8000] = float32(math.Inf(-1))
		from.m = gputest.Upload(t, c, bad)
		check(t, c.Synchronize())
		var refused *rna.NonFiniteError
		if _, err := s.Store(nil, from); !errors.As(err, &refused) || refused.Offset != 8000 ||
			!math.IsInf(refused.Value, -1) {
			t.Errorf("infinite element 8000: %v", err)
		}
		check(t, v.Close())
	}
}

// A vector of the space is a source like any other.
func TestSpaceStoresItsOwn(t *testing.T) {
	c := open(t)
	s := openSpace(t, c, 5000, Options{piece: 2048, Memory: 10_000})
	src := walk(5000, 1)[0]
	from, to := must(s.New()), must(s.New())
	_, err := s.Store(from, src)
	check(t, err)
	_, err = s.Store(to, from)
	check(t, err)
	got := make([]float32, 5000)
	check(t, to.ReadAt(got, 0))
	for i, x := range got {
		if x != src[i] {
			t.Fatalf("element %d is %v, want %v", i, x, src[i])
		}
	}
	check(t, errors.Join(from.Close(), to.Close()))
}

// Vectors go to the host when GPU memory is exhausted: by the limit, by the reserve.
func TestSpaceSpill(t *testing.T) {
	c := open(t)
	free, _, err := c.MemInfo()
	check(t, err)
	for _, o := range []Options{{Memory: 40_000, piece: 2500}, {Reserve: free - 40_000, piece: 2500}} {
		s, err := New(c, 10_000, o)
		check(t, err)
		pinned := 0
		for range 2 {
			v, err := s.New()
			check(t, err)
			for _, p := range v.(*vector).pieces {
				if p.host != nil {
					pinned++
				}
			}
			defer func() { check(t, v.Close()) }()
		}
		if o.Memory != 0 && pinned != 4 || o.Reserve != 0 && pinned != 8 {
			t.Errorf("%+v: %d of 8 pieces lie in host memory", o, pinned)
		}
		check(t, s.Close())
	}
}

func TestSpaceRefuses(t *testing.T) {
	c := open(t)
	if _, err := New(c, 0, Options{}); err == nil {
		t.Error("a space of no elements")
	}
	if _, err := New(c, 1, Options{Memory: -1}); err == nil {
		t.Error("a negative limit")
	}
	s, other := openSpace(t, c, 5, Options{}), openSpace(t, c, 5, Options{})
	v, err := s.New()
	check(t, err)
	closed, err := s.New()
	check(t, err)
	check(t, closed.Close())
	host, err := rna.NewHost32(5, 1)
	check(t, err)
	foreign, err := host.New()
	check(t, err)
	for name, bad := range map[string]rna.Vector{"another space's": must(other.New()), "the host's": foreign,
		"a closed one": closed} {
		errs := map[string]error{
			"GramRow": s.GramRow(make([]float64, 1), rna.Residual{X: v}, []rna.Residual{{X: bad}}),
			"Combine": s.Combine(make(rna.Slice32, 5), []rna.Term{{Coef: 1, Vector: bad}}),
		}
		_, errs["Store"] = s.Store(bad, make(rna.Slice32, 5))
		_, errs["MaxAbs"] = s.MaxAbs(rna.Residual{X: v, Y: bad})
		for op, err := range errs {
			if err == nil {
				t.Errorf("%s took %s vector", op, name)
			}
		}
		if bad != closed {
			check(t, bad.Close())
		}
	}
	if _, err := s.MaxAbs(rna.Residual{}); err == nil {
		t.Error("a residual without a vector")
	}
	if err := closed.ReadAt(make([]float32, 1), 0); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("read of a closed vector: %v", err)
	}
	check(t, v.Close())
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Windows share a space.
func TestSpaceConcurrent(t *testing.T) {
	c := open(t)
	s := openSpace(t, c, 3000, Options{})
	vs := walk(3000, 6)
	grams := make([]string, 3)
	var wg sync.WaitGroup
	for i := range grams {
		w := window(t, s, 4)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for _, v := range vs {
				if err := w.Push(v); err != nil {
					t.Error(err)
				}
			}
			grams[i] = fmt.Sprint(w.State().Gram)
		}()
	}
	wg.Wait()
	if grams[0] != grams[1] || grams[1] != grams[2] {
		t.Errorf("windows that were pushed the same have %v", grams)
	}
}

// A space stores a point and combines into it, with the same results as through the host.
func TestPoint(t *testing.T) {
	const dim = 5000
	c := open(t)
	s := openSpace(t, c, dim, Options{})
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
