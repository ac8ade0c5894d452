package shard

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"onlinerna/rna"
	"onlinerna/rna/spacetest"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

func host(bits, dim int) (rna.Space, error) {
	if bits == 32 {
		return rna.NewHost32(dim, 1)
	}
	return rna.NewHost64(dim, 1)
}

// over makes a space over the ranks of a group.
func over(g *ranks.Group, bits, dim int) (rna.Space, error) {
	return New(g, dim, bits, func(dim int) (rna.Space, error) { return host(bits, dim) }, nil)
}

// Spaces over ranks pass the conformance suite, even if some ranks have empty parts.
func TestSpaces(t *testing.T) {
	for n, bits := range map[int]int{2: 32, 3: 64, 5: 32} {
		t.Run(fmt.Sprintf("%d ranks, %d bits", n, bits), func(t *testing.T) {
			rankstest.Run(t, n, time.Minute, func(g *ranks.Group) error {
				spacetest.Run(t, func(dim int) (rna.Space, error) { return over(g, bits, dim) })
				return nil
			})
		})
	}
}

// TestCoefficients compares coefficients over ranks with those of one process, for well and badly conditioned Gram
// matrices.
func TestCoefficients(t *testing.T) {
	const dim, n = 10_007, 8
	push := func(w *rna.Window) error {
		rng := rand.New(rand.NewPCG(1, 2))
		y := make(rna.Slice64, dim)
		for i := range y {
			y[i] = rng.NormFloat64()
		}
		for range n + 3 {
			if err := w.Push(y); err != nil {
				return err
			}
			for i := range y {
				y[i] *= 1 - math.Pow(float64(i+1)/dim, 3)
			}
		}
		return nil
	}
	for _, bits := range []int{32, 64} {
		for _, opt := range []rna.Options{{Lambda: rna.Set(1e-2)}, {Lambda: rna.Set(1e-9)}, {Lambda: rna.Set(0.)},
			{Tau: rna.Set(2.)}} {
			space, err := host(bits, dim)
			if err != nil {
				t.Fatal(err)
			}
			one, err := rna.NewWindow(space, n)
			if err == nil {
				err = push(one)
			}
			if err != nil {
				t.Fatal(err)
			}
			point := make(rna.Slice64, dim)
			want, err := one.Extrapolate(point, opt)
			if err != nil || want.Status != rna.OK {
				t.Fatal(want.Status, err)
			}
			for _, r := range []int{2, 3, 4} {
				rankstest.Run(t, r, time.Minute, func(g *ranks.Group) error {
					space, err := over(g, bits, dim)
					if err != nil {
						return err
					}
					w, err := rna.NewWindow(space, n)
					if err == nil {
						err = push(w)
					}
					if err != nil {
						return err
					}
					y := make(rna.Slice64, dim)
					got, err := w.Extrapolate(y, opt)
					if err != nil || got.Status != rna.OK {
						return fmt.Errorf("%v, %w", got.Status, err)
					}
					for i, c := range got.C {
						if math.Abs(c-want.C[i]) > 1e-12*want.NormC {
							return fmt.Errorf("%d bits, %+v: c[%d] = %g, want %g", bits, opt, i, c, want.C[i])
						}
					}
					for i := range y {
						if math.Abs(y[i]-point[i]) > 1e-6*want.NormC {
							return fmt.Errorf("element %d is %g, want %g", i, y[i], point[i])
						}
					}
					return nil
				})
			}
		}
	}
}

// An error of one rank reaches all, and the space stays usable.
func TestErrorsOfOneRank(t *testing.T) {
	const dim = 1000
	rankstest.Run(t, 3, time.Minute, func(g *ranks.Group) error {
		s, err := over(g, 32, dim)
		if err != nil {
			return err
		}
		v, err := s.New()
		if err != nil {
			return err
		}
		x := make(rna.Slice32, dim)
		x[700] = float32(math.Inf(-1)) // on the last rank
		_, err = s.Store(v, x)
		if bad := (*rna.NonFiniteError)(nil); !errors.As(err, &bad) || bad.Offset != 700 || !math.IsInf(bad.Value, -1) {
			return fmt.Errorf("a number that is not finite: %v", err)
		}
		x[700] = 1
		src := rna.Source(x)
		if g.Rank() == 1 {
			src = broken{x}
		}
		if _, err = s.Store(v, src); !ranks.Common(err) || !errors.As(err, new(*ranks.RankError)) {
			return fmt.Errorf("one rank cannot read: %v", err)
		}
		if m, err := s.Store(v, x); err != nil || m != 1 {
			return fmt.Errorf("after that: %g, %v", m, err)
		}
		dst := rna.Sink(make(rna.Slice32, dim))
		if g.Rank() == 2 {
			dst = full{dst}
		}
		if err := s.Combine(dst, []rna.Term{{Coef: 1, Vector: v}}); !ranks.Common(err) {
			return fmt.Errorf("one rank cannot write: %v", err)
		}
		return nil
	})
	err := errors.Join(rankstest.Errors(t, 2, time.Minute, func(g *ranks.Group) error {
		_, err := New(g, 10, 32, func(dim int) (rna.Space, error) {
			if g.Rank() == 1 {
				return nil, errors.New("no memory")
			}
			return host(32, dim)
		}, nil)
		if !ranks.Common(err) {
			return fmt.Errorf("one rank has no memory: %v", err)
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

type broken struct{ rna.Slice32 }

func (broken) ReadAt([]float32, int) error       { return errors.New("cannot read") }
func (broken) Float32s(off, n int) []float32     { return nil }
func (broken) ReadAt64(_ []float64, _ int) error { return errors.New("cannot read") }

type full struct{ rna.Sink }

func (full) WriteAt([]float32, int) error { return errors.New("cannot write") }
