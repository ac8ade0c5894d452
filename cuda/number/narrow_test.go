package number

import (
	"math"
	"testing"
)

func TestNarrow(t *testing.T) {
	for _, test := range []struct {
		p    Precision
		x    float32
		bits uint16
	}{
		{BFloat16, 1, 0x3f80}, {BFloat16, 1 + 0x1p-8, 0x3f80}, {BFloat16, 1 + 0x3p-8, 0x3f82},
		{BFloat16, -3e38, 0xff62},
		{BFloat16, math.MaxFloat32, 0x7f80}, {BFloat16, 1e-42, 0}, {BFloat16, float32(math.Inf(-1)), 0xff80},
		{Float16, 1, 0x3c00}, {Float16, 1 + 0x1p-11, 0x3c00}, {Float16, 1 + 0x3p-11, 0x3c02}, {Float16, 65504, 0x7bff},
		{Float16, 65519, 0x7bff},
		{Float16, 65520, 0x7c00}, {Float16, -0x1p-24, 0x8001}, {Float16, 0x1p-25, 0}, {Float16, 0x3p-26, 1},
		{Float16, 0x1p-14, 0x400},
	} {
		if got := Narrow(test.p, []float32{test.x})[0]; got != test.bits {
			t.Errorf("%v: %v is %#04x, want %#04x", test.p, test.x, got, test.bits)
		}
	}
	for _, p := range []Precision{BFloat16, Float16} {
		for u := range uint16(math.MaxUint16) {
			if f := Widen(p, []uint16{u}); f[0] == f[0] && Narrow(p, f)[0] != u {
				t.Fatalf("%v: %#04x is %v, and that %#04x", p, u, f[0], Narrow(p, f)[0])
			}
		}
		if f := Widen(p, Narrow(p, []float32{float32(math.NaN())})); f[0] == f[0] {
			t.Errorf("%v: NaN is %v", p, f[0])
		}
	}
}
