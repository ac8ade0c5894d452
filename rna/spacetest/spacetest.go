// Package spacetest is the conformance suite of rna's spaces. Implementations that keep vectors outside host memory
// run it:
//
//	func TestSpace(t *testing.T) { spacetest.Run(t, func(dim int) (rna.Space, error) { … }) }
//
// It compares with the spaces of package rna, to the rounding that another order of summation makes.
package spacetest

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/rna"
)

// Run runs the suite on the spaces that open makes for vectors of dim elements.
func Run(t *testing.T, open func(dim int) (rna.Space, error)) {
	t.Helper()
	for _, dim := range []int{1, 7, 2048, 2049, 70_001} {
		s, err := open(dim)
		if err != nil {
			t.Fatal(err)
		}
		if s.Dim() != dim || s.Bits() != 32 && s.Bits() != 64 {
			t.Fatalf("space of %d elements of %d bits, asked for %d elements", s.Dim(), s.Bits(), dim)
		}
		reference, err := host(s)
		if err != nil {
			t.Fatal(err)
		}
		c := &checker{t: t, space: s, reference: reference, rng: rand.New(rand.NewPCG(uint64(dim), 1))}
		c.copies()
		c.nonFinite()
		c.products()
		c.combinations()
		c.window()
	}
}

// host returns the space in host memory with the same vectors.
func host(s rna.Space) (rna.Space, error) {
	if s.Bits() == 32 {
		return rna.NewHost32(s.Dim(), 0)
	}
	return rna.NewHost64(s.Dim(), 0)
}

type checker struct {
	t                *testing.T
	space, reference rna.Space
	rng              *rand.Rand
}

// random returns elements that have the space's width.
func (c *checker) random(size float64) rna.Slice64 {
	v := make(rna.Slice64, c.space.Dim())
	for i := range v {
		v[i] = size * c.rng.NormFloat64()
		if c.space.Bits() == 32 {
			v[i] = float64(float32(v[i]))
		}
	}
	return v
}

// store returns v as a vector of each space.
func (c *checker) store(v rna.Source) (own, reference rna.Vector) {
	c.t.Helper()
	vectors := make([]rna.Vector, 2)
	largest := make([]float64, 2)
	for i, s := range []rna.Space{c.space, c.reference} {
		var err error
		if vectors[i], err = s.New(); err != nil {
			c.t.Fatal(err)
		}
		if largest[i], err = s.Store(vectors[i], v); err != nil {
			c.t.Fatal(err)
		}
	}
	if largest[0] != largest[1] {
		c.t.Errorf("Store says the largest element is %v, want %v", largest[0], largest[1])
	}
	c.t.Cleanup(func() {
		if err := vectors[0].Close(); err != nil {
			c.t.Error(err)
		}
	})
	return vectors[0], vectors[1]
}

// hidden is a vector without memory to reach.
type hidden struct{ rna.Source64 }

// copies go in and come out unchanged, in any parts, -0 included.
func (c *checker) copies() {
	v := c.random(1)
	v[0] = math.Copysign(0, -1)
	d := len(v)
	for _, src := range []rna.Source{v, hidden{v}} {
		own, _ := c.store(src)
		if own.Len() != d {
			c.t.Fatalf("vector of %d elements, want %d", own.Len(), d)
		}
		for range 20 {
			off := c.rng.IntN(d)
			wide := make([]float64, c.rng.IntN(d-off+1))
			narrow := make([]float32, len(wide))
			if err := errors.Join(own.ReadAt64(wide, off), own.ReadAt(narrow, off)); err != nil {
				c.t.Fatal(err)
			}
			for i := range wide {
				if want := v[off+i]; math.Float64bits(wide[i]) != math.Float64bits(want) || narrow[i] != float32(want) {
					c.t.Fatalf("element %d is %v and %v, want %v", off+i, wide[i], narrow[i], want)
				}
			}
		}
		if own.ReadAt64(make([]float64, 2), d-1) == nil || own.ReadAt(make([]float32, 1), -1) == nil {
			c.t.Error("a read out of range went through")
		}
	}
	if _, err := c.space.Store(nil, make(rna.Slice64, d+1)); err == nil {
		c.t.Error("Store took a vector of another length")
	}
}

// nonFinite elements are found and named, with and without storing.
func (c *checker) nonFinite() {
	v := c.random(1)
	own, _ := c.store(v)
	for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		at := c.rng.IntN(len(v))
		bad := append(rna.Slice64(nil), v...)
		bad[at], bad[len(v)-1] = value, value
		for _, dst := range []rna.Vector{nil, own} {
			var refused *rna.NonFiniteError
			if _, err := c.space.Store(dst, bad); !errors.As(err, &refused) || refused.Offset != at {
				c.t.Errorf("Store of %v at element %d: %v", value, at, err)
			}
		}
	}
}

// products of pairs, of stored residuals and of scaled ones, the same at each call.
func (c *checker) products() {
	var own, reference []rna.Residual
	add := func(x, y rna.Source, exp int) {
		a, b := c.store(x)
		r, s := rna.Residual{X: a, Exp: exp}, rna.Residual{X: b, Exp: exp}
		if y != nil {
			r.Y, s.Y = c.store(y)
		}
		own, reference = append(own, r), append(reference, s)
	}
	add(c.random(1), c.random(1), 0)
	add(c.random(1), nil, 0)
	add(c.random(1e-3), c.random(1e-3), -9)
	for range 5 { // a chain
		last := len(own) - 1
		a, b := c.store(c.random(1))
		own = append(own, rna.Residual{X: a, Y: own[last].X})
		reference = append(reference, rna.Residual{X: b, Y: reference[last].X})
	}
	n := len(own)
	norms := make([]float64, n)
	for i, r := range reference {
		var square [1]float64
		if err := c.reference.GramRow(square[:], r, []rna.Residual{r}); err != nil {
			c.t.Fatal(err)
		}
		norms[i] = math.Sqrt(square[0])
		got, err := c.space.MaxAbs(own[i])
		want, err2 := c.reference.MaxAbs(r)
		if err := errors.Join(err, err2); err != nil || got != want {
			c.t.Errorf("largest element of residual %d is %v, %v, want %v", i, got, err, want)
		}
	}
	got, again, want := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range own {
		err := errors.Join(c.space.GramRow(got, own[i], own), c.space.GramRow(again, own[i], own),
			c.reference.GramRow(want, reference[i], reference))
		if err != nil {
			c.t.Fatal(err)
		}
		for j := range got {
			if math.Abs(got[j]-want[j]) > 1e-14*norms[i]*norms[j] {
				c.t.Errorf("product of residuals %d and %d is %v, want %v", i, j, got[j], want[j])
			}
			if got[j] != again[j] {
				c.t.Errorf("product of residuals %d and %d is %v, then %v", i, j, got[j], again[j])
			}
		}
	}
	if err := c.space.GramRow(got, own[0], own[1:]); err == nil {
		c.t.Error("GramRow took a row of another length")
	}
}

// combinations are rounded once, for any destination.
func (c *checker) combinations() {
	var own, reference []rna.Term
	d := c.space.Dim()
	size := make([]float64, d)
	for k := range 7 {
		v, coef := c.random(1), math.Pow(-3, float64(k))
		a, b := c.store(v)
		own, reference = append(own, rna.Term{Coef: coef, Vector: a}),
			append(reference, rna.Term{Coef: coef, Vector: b})
		for i := range v {
			size[i] += math.Abs(coef * v[i])
		}
	}
	unit := math.Ldexp(1, -52)
	for _, k := range []int{1, 2, 7} {
		for _, dst := range []sink{sink64(d), sink32(d)} {
			want := make(rna.Slice64, d)
			if err := errors.Join(c.space.Combine(dst.Sink, own[:k]),
				c.reference.Combine(want, reference[:k])); err != nil {
				c.t.Fatal(err)
			}
			for i := range want {
				// One rounding to the space's width, one to the destination's, and those of the sum.
				slack := 8*unit*size[i] + dst.unit*math.Abs(want[i])
				if c.space.Bits() == 32 {
					slack += math.Ldexp(1, -23) * math.Abs(want[i])
				}
				if got := dst.values(i); !(math.Abs(got-want[i]) <= slack) {
					c.t.Fatalf("element %d of a combination of %d is %v, want %v", i, k, got, want[i])
				}
			}
		}
	}
	if err := c.space.Combine(make(rna.Slice64, d+1), own); err == nil {
		c.t.Error("Combine took a destination of another length")
	}
}

// A sink is a destination, its elements, and their rounding.
type sink struct {
	rna.Sink
	values func(i int) float64
	unit   float64
}

func sink64(d int) sink {
	v := make(rna.Slice64, d)
	return sink{v, func(i int) float64 { return v[i] }, 0}
}

func sink32(d int) sink {
	v := make(rna.Slice32, d)
	return sink{v, func(i int) float64 { return float64(v[i]) }, math.Ldexp(1, -23)}
}

// window fills a window twice over and compares its results.
func (c *checker) window() {
	const n = 4
	var own, reference *rna.Window
	for w, s := range map[**rna.Window]rna.Space{&own: c.space, &reference: c.reference} {
		var err error
		if *w, err = rna.NewWindow(s, n); err != nil {
			c.t.Fatal(err)
		}
	}
	y := c.random(1)
	for range 2*n + 1 {
		if err := errors.Join(own.Push(y), reference.Push(y)); err != nil {
			c.t.Fatal(err)
		}
		for i := range y {
			y[i] = y[i]*(.9-.8*float64(i)/float64(len(y))) + .1
		}
	}
	for _, lambda := range []float64{1e-3, 0} {
		if c.space.Dim() < n && lambda == 0 {
			continue
		}
		opt := rna.Options{Lambda: rna.Set(lambda)}
		got, want := make(rna.Slice64, len(y)), make(rna.Slice64, len(y))
		a, err := own.Extrapolate(got, opt)
		b, err2 := reference.Extrapolate(want, opt)
		if err := errors.Join(err, err2, a.Err(), b.Err()); err != nil {
			c.t.Fatal(err)
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-5*max(1, b.NormC) {
				c.t.Fatalf("λ = %v: element %d of the extrapolated point is %v, want %v", lambda, i, got[i], want[i])
			}
		}
	}
	if err := own.Close(); err != nil {
		c.t.Error(err)
	}
}
