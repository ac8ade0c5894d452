package ptx

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// smallFloats lists the non-negative numbers of a 16-bit format in the order of their bits, by counting: each power of
// 2 has as many steps as the fraction has values, of twice the size; only the subnormal ones do not double it.
func smallFloats(fraction uint, step float64, infinite int) []float64 {
	list := make([]float64, infinite)
	for i := 1; i < infinite; i++ {
		if i > 2<<fraction && (i-1)%(1<<fraction) == 0 {
			step *= 2
		}
		list[i] = list[i-1] + step
	}
	return list
}

// All 16-bit numbers have the counted values and convert back; numbers between two of them are rounded to the nearest,
// at equal distance to the even one, or as the instruction says.
func TestConvert16(t *testing.T) {
	for kind, list := range map[string][]float64{"f16": smallFloats(10, 0x1p-24, 0x7c00),
		"bf16": smallFloats(7, 0x1p-133, 0x7f80)} {
		widen, infinite := functionOf(t, "cvt.f32."+kind), uint64(len(list))
		narrow := map[string]function{}
		for _, r := range []string{"rn", "rz"} {
			narrow[r] = functionOf(t, "cvt."+r+"."+kind+".f32")
		}
		for _, r := range []rounding{"rm", "rp"} {
			narrow[string(r)] = func(a, _, _ uint64) uint64 { return formats[kind].narrow(float64(f32(a)), r) }
		}
		convert := func(r string, x float64) uint64 { return narrow[r](uint64(math.Float32bits(float32(x))), 0, 0) }
		for i := range uint64(1 << 16) {
			magnitude, sign := i&0x7fff, 1.
			if i>>15 != 0 {
				sign = -1
			}
			got := f32(widen(i, 0, 0))
			switch {
			case magnitude > infinite:
				if widen(i, 0, 0) != 0x7fffffff || convert("rn", math.NaN()) != 0x7fff {
					t.Fatalf("%s %#x: %g", kind, i, got)
				}
				continue
			case magnitude == infinite:
				if !math.IsInf(float64(got), int(sign)) {
					t.Fatalf("%s %#x: %g", kind, i, got)
				}
			case float64(got) != sign*list[magnitude] || math.Signbit(float64(got)) != (sign < 0):
				t.Fatalf("%s %#x: %g, want %g", kind, i, got, sign*list[magnitude])
			}
			for r := range narrow {
				if back := convert(r, float64(got)); back != i {
					t.Fatalf("%s %#x comes back as %#x with %s", kind, i, back, r)
				}
			}
			if magnitude >= infinite {
				continue
			}
			// The distance to the next number away from zero; the largest number's step is that to the would-be next
			// one.
			step := 0.
			if magnitude+1 < infinite {
				step = list[magnitude+1] - list[magnitude]
			} else {
				step = list[magnitude] - list[magnitude-1]
			}
			for _, part := range []float64{.25, .5, .75} {
				x := sign * (list[magnitude] + part*step)
				if float64(float32(x)) != x {
					continue // out of float32's range, for the smallest bf16 numbers
				}
				near, far := i, i+1
				if magnitude+1 == infinite {
					far = i + 1 // infinite
				}
				want := map[string]uint64{"rz": near, "rm": near, "rp": far, "rn": near}
				if sign < 0 {
					want["rm"], want["rp"] = far, near
				}
				if part > .5 || part == .5 && near&1 != 0 {
					want["rn"] = far
				}
				for r, w := range want {
					if g := convert(r, x); g != w {
						t.Fatalf("%s: %g, of %#x and %#x, is %#x with %s, want %#x", kind, x, near, far, g, r, w)
					}
				}
			}
		}
	}
}

// The quick conversions equal the general ones.
func TestQuickConversions(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	for name, f := range quick {
		for i := range 20000 {
			x := random.Uint64()
			if i < len(corners32) {
				x = uint64(math.Float32bits(corners32[i]))
			}
			var want uint64
			switch name {
			case "f64.f32":
				x &= 1<<32 - 1
				want = formats["f64"].narrow(formats["f32"].widen(x), "rn")
			case "rn.f32.f64":
				want = formats["f32"].narrow(f64(x), "rn")
			case "rn.bf16.f32":
				x &= 1<<32 - 1
				want = formats["bf16"].narrow(formats["f32"].widen(x), "rn")
			case "rn.f32.s32":
				x &= 1<<32 - 1
				want = formats["f32"].fromInteger(x, integerOf("s32"), "rn")
			case "rn.f64.s32":
				x &= 1<<32 - 1
				want = formats["f64"].fromInteger(x, integerOf("s32"), "rn")
			}
			if g := f(x, 0, 0); g != want {
				t.Fatalf("cvt.%s %#x: %#x, want %#x", name, x, g, want)
			}
		}
	}
	// f32 of f64 around ties and near the subnormal numbers, infinity and 0: as Go converts.
	for range 100000 {
		x := math.Ldexp(float64(random.Uint32()>>random.IntN(8))*2+1, random.IntN(330)-200)
		if g, w := formats["f32"].narrow(x, "rn"), bits32(float32(x)); g != w {
			t.Fatalf("f32 of %g: %#x, want %#x", x, g, w)
		}
	}
}

// Numbers are clamped when they become integers, and NaN becomes 0; integers are rounded once when they become numbers,
// like math/big's.
func TestConvertIntegers(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	for _, kind := range []string{"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"} {
		width := 8 * uint(bytesOf[kind])
		lo, hi := big.NewInt(0), new(big.Int).Lsh(big.NewInt(1), width)
		if kind[0] == 's' {
			hi.Rsh(hi, 1)
			lo.Neg(hi)
		}
		hi.Sub(hi, big.NewInt(1))
		for _, r := range []string{"rni", "rzi", "rmi", "rpi"} {
			for _, from := range []string{"f32", "f64", "f16"} {
				if from == "f16" && width < 32 {
					continue
				}
				f := functionOf(t, "cvt."+r+"."+kind+"."+from)
				for i := range 500 {
					x := math.Ldexp(float64(random.Int32())*2+1, random.IntN(70)-36)
					if i < 40 {
						x = float64(i-20) / 2
					}
					bits := formats[from].narrow(x, "rn")
					x = formats[from].widen(bits)
					var want *big.Int
					if math.IsInf(x, 0) {
						want = map[bool]*big.Int{true: hi, false: lo}[x > 0]
					} else {
						floor, _ := new(big.Float).SetFloat64(math.Floor(x)).Int(nil)
						rest := x - math.Floor(x)
						up := r == "rpi" && rest > 0 || r == "rzi" && x < 0 && rest > 0 || r == "rni" &&
							(rest > .5 || rest == .5 && floor.Bit(0) == 1)
						if want = floor; up {
							want.Add(want, big.NewInt(1))
						}
						if want.Cmp(lo) < 0 {
							want = lo
						} else if want.Cmp(hi) > 0 {
							want = hi
						}
					}
					mask := ^uint64(0) >> (64 - width)
					w := want.Uint64() & mask
					if want.Sign() < 0 {
						w = uint64(want.Int64()) & mask
					}
					if g := f(bits, 0, 0); g != w {
						t.Fatalf("cvt.%s.%s.%s %g: %#x, want %#x", r, kind, from, x, g, w)
					}
				}
				if g := f(formats[from].nan(), 0, 0); g != 0 {
					t.Fatalf("cvt.%s.%s.%s NaN: %#x", r, kind, from, g)
				}
			}
		}
		if width < 16 {
			continue
		}
		for _, x := range integersOf(width, random) {
			b := new(big.Int).SetUint64(x)
			if kind[0] == 's' && x>>(width-1) != 0 {
				b.Sub(b, new(big.Int).Lsh(big.NewInt(1), width))
			}
			e := new(big.Float).SetInt(b)
			want32, _ := e.Float32()
			want64, _ := e.Float64()
			if g := functionOf(t, "cvt.rn.f32."+kind)(x, 0, 0); g != bits32(want32) {
				t.Fatalf("cvt.rn.f32.%s %d: %g, want %g", kind, b, f32(g), want32)
			}
			if g := functionOf(t, "cvt.rn.f64."+kind)(x, 0, 0); g != bits64(want64) {
				t.Fatalf("cvt.rn.f64.%s %d: %g, want %g", kind, b, f64(g), want64)
			}
			for _, to := range []string{"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"} {
				n := 8 * uint(bytesOf[to])
				mask := ^uint64(0) >> (64 - n)
				if g, w := functionOf(t, "cvt."+to+"."+kind)(x, 0, 0), uint64(b.Int64())&mask; g != w && b.IsInt64() {
					t.Fatalf("cvt.%s.%s %d: %#x, want %#x", to, kind, b, g, w)
				}
				least, most := big.NewInt(0), new(big.Int).SetUint64(mask)
				if to[0] == 's' {
					most.SetUint64(mask >> 1)
					least.Sub(least, most).Sub(least, big.NewInt(1))
				}
				held := new(big.Int).Set(b)
				if held.Cmp(least) < 0 {
					held = least
				} else if held.Cmp(most) > 0 {
					held = most
				}
				w := held.Uint64() & mask
				if held.Sign() < 0 {
					w = uint64(held.Int64()) & mask
				}
				if g := functionOf(t, "cvt.sat."+to+"."+kind)(x, 0, 0); g != w {
					t.Fatalf("cvt.sat.%s.%s %d: %#x, want %#x", to, kind, b, g, w)
				}
			}
		}
	}
	for x, want := range map[float32]float32{2.5: 2, -2.5: -2, 3.5: 4, .25: 0, -7: -7} {
		if g := functionOf(t, "cvt.rni.f32.f32")(uint64(math.Float32bits(x)), 0, 0); f32(g) != want {
			t.Errorf("cvt.rni.f32.f32 %g: %g", x, f32(g))
		}
	}
	for name, want := range map[string][2]uint64{
		"cvt.ftz.f64.f32": {0x80000001, 1 << 63}, "cvt.rn.ftz.f32.f64": {bits64(0x1p-140), 0},
		"cvt.sat.f32.f32": {bits32(7), bits32(1)},
		"cvt.rm.f32.f64":  {bits64(1 + 0x1p-40), bits32(1)},
		"cvt.rp.f32.f64":  {bits64(1 + 0x1p-40), bits32(0x1.000002p0)},
	} {
		if g := functionOf(t, name)(want[0], 0, 0); g != want[1] {
			t.Errorf("%s %#x: %#x, want %#x", name, want[0], g, want[1])
		}
	}
}
