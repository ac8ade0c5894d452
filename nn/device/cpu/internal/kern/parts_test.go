package kern

import (
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/internal/guard"
)

// The parts of a number sum to it, unless it is small.
func TestSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for range 100000 {
		x := math.Float32frombits(r.Uint32())
		p := Split(x)
		for i, v := range p {
			if math.Float32bits(v)&0xffff != 0 {
				t.Fatalf("part %d of %v is %v, no bfloat16", i, x, v)
			}
		}
		large := math.Abs(float64(x))
		sum := float64(p[0]) + float64(p[1]) + float64(p[2])
		rest := math.Abs(sum - float64(x))
		switch {
		case x != x || large > 3.3895e38:
			if !math.IsNaN(sum) && !math.IsInf(sum, 0) {
				t.Fatalf("the parts of %v sum to %v", x, sum)
			}
		case large >= 0x1p-103 && rest != 0, rest >= 0x1p-126:
			t.Fatalf("the parts of %v sum to %v", x, sum)
		}
	}
}

// The terms of three parts leave out less than 2^-23 of a product, those of two less than 2^-15.
func TestTerms(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for parts, limit := range map[int]float64{2: 0x1p-15, 3: 0x1p-23} {
		for range 10000 {
			x, y := float32(r.NormFloat64()), float32(r.NormFloat64())
			p, q, sum := Split(x), Split(y), 0.
			for _, term := range PlainTiles().InParts(parts).Terms() {
				sum += float64(p[term[0]]) * float64(q[term[1]])
			}
			if want := float64(x) * float64(y); math.Abs(sum-want) > limit*math.Abs(want) {
				t.Fatalf("%d parts: %v · %v is %v", parts, x, y, sum)
			}
		}
	}
}

// Rows are split as by the definition, whatever the numbers, and nothing else is read or written.
func TestTileSplit(t *testing.T) {
	packers(t, func(t *testing.T, k *Tiles) {
		r := rand.New(rand.NewPCG(3, 2))
		for parts := 2; parts <= MostParts; parts++ {
			for _, c := range []struct{ rows, width, gap int }{{1, 1, 0}, {3, 16, 0}, {2, 17, 3}, {5, 32, 1}, {4, 63, 0},
				{2, 200, 9}} {
				for kind := range 3 {
					step, ld := c.width+c.gap, (c.width+15)/16*16
					src := guard.Slice[float32](t, (c.rows-1)*step+c.width)
					for i := range src {
						switch src[i] = float32(r.NormFloat64()); kind {
						case 1:
							src[i] = math.Float32frombits(r.Uint32())
						case 2:
							src[i] *= 0x1p-125
						}
					}
					var list [2][]float32
					var bad [2]uint32
					for i, k := range []*Tiles{k, PlainTiles()} {
						list[i] = marked[float32](t, parts*c.rows*ld, 7)
						k.Split[parts](&list[i][0], &src[0], c.rows, c.width, 4*ld, 4*step, 4*c.rows*ld, &bad[i])
					}
					if n := differences(list[0], list[1]); n > 0 || (bad[0] != 0) != (bad[1] != 0) {
						t.Fatalf("%d parts, %+v, kind %d: %d elements differ, bad %v", parts, c, kind, n, bad)
					}
					infinite := false
					for i, x := range src {
						infinite = infinite || i%step < c.width && !Finite(Round(x))
					}
					if infinite != (bad[0] != 0) {
						t.Fatalf("%d parts, %+v, kind %d: not finite: %v, found %v", parts, c, kind, infinite, bad[0])
					}
				}
			}
		}
	})
}
