package kern

import (
	"math/rand/v2"
	"testing"

	"onlinerna/internal/guard"
)

// TestEnds uses operands that end at unreadable memory.
func TestEnds(t *testing.T) {
	each(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(11, 12))
		lent := func(n int) *float64 { return &guard.Copy(t, random(rng, n))[0] }
		for _, c := range shapes {
			for n := 1; n <= Most; n++ {
				width, pitch := Padded(c.d), c.rows+3
				x, side := (c.rows-1)*c.stride+c.d, (n-1)*pitch+c.rows
				s.Dots[n-1](lent(side), lent(x), lent(n*width), c.d, c.stride, c.rows, width, pitch)
				s.AddRows[n-1](lent(n*width), lent(x), lent(side), c.d, c.stride, c.rows, width, pitch, c.rows*c.stride)
			}
		}
		for d := 1; d < 40; d++ {
			v := func() *float64 { return lent(d) }
			s.Dot(v(), v(), d)
			s.Combine2(v(), v(), 1, 2, d)
			s.Combine3(v(), v(), v(), 1, 2, 3, d)
			s.SAGAStep(v(), v(), v(), 1, 2, 3, 4, d)
			s.Mix(v(), v(), v(), v(), 1, 2, 3, d)
			s.KatyushaStep(v(), v(), v(), v(), v(), 1, 2, 3, 4, 5, d)
			s.Logistic(v(), v(), v(), 1, 2, d)
			s.Squares(v(), v(), v(), 1, 2, d)
			s.LogisticSlopes(v(), v(), v(), v(), 1, 2, d)
			s.SquaresSlopes(v(), v(), v(), v(), 1, 2, d)
		}
	})
}
