package kern

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestFused compares Fused, and tileStep and dotStep for factors in bfloat16, with exact sums that are rounded once.
func TestFused(t *testing.T) {
	exact := func(x, y, z float32) float32 {
		a := func(x float32) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(float64(x)) }
		s := a(x)
		s.Mul(s, a(y)).Add(s, a(z))
		f, _ := s.Float32()
		return f
	}
	same := func(a, b float32) bool {
		return a == b && (a != 0 || math.Signbit(float64(a)) == math.Signbit(float64(b)))
	}
	x, y := float32(1+0x1p-23), float32(0x1p-24*(1-0x1p-23))
	if got, want := Fused(x, y, x), exact(x, y, x); !same(got, want) { // float64 rounds this sum to a tie of float32
		t.Errorf("%x·%x + %x is %x, want %x", x, y, x, got, want)
	}
	r := rand.New(rand.NewPCG(7, 7))
	draw := func(bits int, near float64) float32 { // a number of some bits, about as large as near
		m := 1 + float64(r.Uint64N(1<<(bits-1)))/math.Exp2(float64(bits-1))
		if r.IntN(2) == 0 {
			m = float64(2*r.IntN(2)-1) * (1 + math.Exp2(float64(-r.IntN(bits)))) // few bits set: sums that are ties
		}
		return float32(m * near * math.Exp2(float64(r.IntN(9)-4)))
	}
	for range 200000 {
		near := math.Exp2(float64(r.IntN(120) - 60))
		apart := near * near * math.Exp2(float64(r.IntN(120)-60))
		if x, y, z := draw(24, near), draw(24, near), draw(24, apart); !same(Fused(x, y, z), exact(x, y, z)) {
			t.Fatalf("%x·%x + %x is %x, want %x", x, y, z, Fused(x, y, z), exact(x, y, z))
		}
		x, y, z := draw(8, near), draw(8, near), draw(24, apart)
		want := exact(x, y, z)
		if math.Abs(float64(want)) < 0x1p-125 || math.Abs(float64(z)) < 0x1p-126 {
			continue // TestTileBits has these
		}
		if got := tileStep(z, float64(x), float64(y)); !same(got, want) {
			t.Fatalf("%x·%x + %x is %x, want %x", x, y, z, got, want)
		}
		if got := dotStep(z, x, y); !same(got, want) {
			t.Fatalf("%x·%x + %x is %x, want %x", x, y, z, got, want)
		}
	}
}
