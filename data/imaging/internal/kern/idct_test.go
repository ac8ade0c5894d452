package kern

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The integer transform stays within a level of the exact one, which ITU-T T.81 defines in A.3.3.
func TestIDCTAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var basis [8][8]float64
	for x := range 8 {
		for u := range 8 {
			c := 0.5
			if u == 0 {
				c = math.Sqrt2 / 4
			}
			basis[x][u] = c * math.Cos(float64(2*x+1)*float64(u)*math.Pi/16)
		}
	}
	for trial := range 2000 {
		var coef [64]int16
		var quant [64]int16
		for i := range coef {
			quant[i] = 1 + int16(rng.IntN(8))
			if rng.IntN(64) < trial%64 {
				coef[i] = int16(rng.IntN(41) - 20)
			}
		}
		const stride = 11
		got := make([]uint8, 8*stride)
		idct(got, stride, &coef, &quant)
		for y := range 8 {
			for x := range 8 {
				want := 128.0
				for v := range 8 {
					for u := range 8 {
						want += basis[y][v] * basis[x][u] * float64(int32(coef[8*v+u]*quant[8*v+u]))
					}
				}
				want = min(max(want, 0), 255)
				if d := math.Abs(float64(got[y*stride+x]) - want); d > 1 {
					t.Fatalf("trial %d: sample (%d, %d) is %d, exactly %g", trial, x, y, got[y*stride+x], want)
				}
			}
			for x := 8; x < stride; x++ {
				if got[y*stride+x] != 0 {
					t.Fatal("the transform writes beyond its block")
				}
			}
		}
	}
}
