package ptx

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// functionOf is the function of an instruction, which must exist.
func functionOf(t *testing.T, name string) function {
	t.Helper()
	f, _, err := arithmetic(name, Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return f
}

// integersOf returns edge cases of a width and random numbers.
func integersOf(width uint, random *rand.Rand) []uint64 {
	mask := ^uint64(0) >> (64 - width)
	list := []uint64{0, 1, 2, 3, 7, mask, mask - 1, mask >> 1, mask>>1 + 1, mask>>1 + 2, 31, 32, 33, 63, 64, 65, 255}
	for range 40 {
		list = append(list, random.Uint64()>>random.IntN(64))
	}
	for i := range list {
		list[i] &= mask
	}
	return list
}

// Integer operations equal math/big's, modulo 2ⁿ.
func TestIntegers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, width := range []uint{16, 32, 64} {
		for _, sign := range []string{"u", "s"} {
			kind := fmt.Sprint(sign, width)
			number := func(x uint64) *big.Int {
				b := new(big.Int).SetUint64(x)
				if sign == "s" && x>>(width-1) != 0 {
					b.Sub(b, new(big.Int).Lsh(big.NewInt(1), width))
				}
				return b
			}
			modulo := func(b *big.Int, n uint) uint64 {
				return new(big.Int).And(b, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), n), big.NewInt(1))).Uint64()
			}
			less := func(yes bool) *big.Int { return new(big.Int).SetUint64(truth(yes)) }
			want := map[string]func(a, b, c *big.Int) *big.Int{
				"add":    func(a, b, _ *big.Int) *big.Int { return new(big.Int).Add(a, b) },
				"sub":    func(a, b, _ *big.Int) *big.Int { return new(big.Int).Sub(a, b) },
				"mul.lo": func(a, b, _ *big.Int) *big.Int { return new(big.Int).Mul(a, b) },
				"mad.lo": func(a, b, c *big.Int) *big.Int { return new(big.Int).Add(c, new(big.Int).Mul(a, b)) },
				"div":    func(a, b, _ *big.Int) *big.Int { return new(big.Int).Quo(a, b) },
				"rem":    func(a, b, _ *big.Int) *big.Int { return new(big.Int).Rem(a, b) },
				"min": func(a, b, _ *big.Int) *big.Int {
					if a.Cmp(b) < 0 {
						return a
					}
					return b
				},
				"max": func(a, b, _ *big.Int) *big.Int {
					if a.Cmp(b) > 0 {
						return a
					}
					return b
				},
				"setp.eq": func(a, b, _ *big.Int) *big.Int { return less(a.Cmp(b) == 0) },
				"setp.ne": func(a, b, _ *big.Int) *big.Int { return less(a.Cmp(b) != 0) },
				"setp.lt": func(a, b, _ *big.Int) *big.Int { return less(a.Cmp(b) < 0) },
				"setp.le": func(a, b, _ *big.Int) *big.Int { return less(a.Cmp(b) <= 0) },
				"setp.gt": func(a, b, _ *big.Int) *big.Int { return less(a.Cmp(b) > 0) },
				"setp.ge": func(a, b, _ *big.Int) *big.Int { return less(a.Cmp(b) >= 0) },
			}
			if sign == "s" {
				want["neg"] = func(a, _, _ *big.Int) *big.Int { return new(big.Int).Neg(a) }
				want["abs"] = func(a, _, _ *big.Int) *big.Int { return new(big.Int).Abs(a) }
			}
			want["mul.hi"] = func(a, b, _ *big.Int) *big.Int { return new(big.Int).Rsh(new(big.Int).Mul(a, b), width) }
			double := map[string]func(a, b, c *big.Int) *big.Int{}
			if width < 64 {
				double["mul.wide"] = want["mul.lo"]
			}
			list := integersOf(width, random)
			for i, group := range []map[string]func(a, b, c *big.Int) *big.Int{want, double} {
				for name, f := range group {
					got := functionOf(t, name+"."+kind)
					for _, a := range list {
						for _, b := range list {
							if b == 0 && (name == "div" || name == "rem") {
								continue
							}
							c := list[random.IntN(len(list))]
							if g, w := got(a, b, c), modulo(f(number(a), number(b), number(c)), width<<i); g != w {
								t.Fatalf("%s.%s %#x, %#x, %#x: %#x, want %#x", name, kind, a, b, c, g, w)
							}
						}
					}
				}
			}
			if width < 64 { // the sum has twice the width
				got := functionOf(t, "mad.wide."+kind)
				for _, a := range list {
					c := random.Uint64() >> (64 - 2*width)
					p := new(big.Int).Mul(number(a), number(list[3]))
					if g, w := got(a, list[3], c), modulo(p.Add(p, new(big.Int).SetUint64(c)), 2*width); g != w {
						t.Fatalf("mad.wide.%s: %#x, want %#x", kind, g, w)
					}
				}
			}
			// Shifts and fields, bit by bit: above an unsigned number come zeros, above a signed one its sign.
			bit := func(x uint64, i uint) uint64 {
				if i >= width {
					if sign == "u" {
						return 0
					}
					i = width - 1
				}
				return x >> i & 1
			}
			shr, shl := functionOf(t, "shr."+kind), functionOf(t, fmt.Sprint("shl.b", width))
			for _, a := range list {
				for s := range uint64(130) {
					var right, left uint64
					for i := range width {
						right |= bit(a, i+uint(s)) << i
						if uint64(i) >= s {
							left |= a >> (uint64(i) - s) & 1 << i
						}
					}
					if g := shr(a, s, 0); g != right {
						t.Fatalf("shr.%s %#x by %d: %#x, want %#x", kind, a, s, g, right)
					}
					if g := shl(a, s, 0); g != left {
						t.Fatalf("shl %#x by %d: %#x, want %#x", a, s, g, left)
					}
				}
			}
			if width == 16 {
				continue
			}
			bfe, bfi := functionOf(t, "bfe."+kind), func(a, b, from,
				n uint64) uint64 {
				return insert(from, n, uint64(width))(a, b, 0)
			}
			for _, a := range list[:12] {
				for from := range uint64(70) {
					for n := range uint64(70) {
						// As the PTX ISA defines them.
						last := min(from+n-1, uint64(width)-1)
						sign := uint64(0)
						if kind[0] == 's' && n > 0 {
							sign = a >> last & 1
						}
						var field, put uint64
						for i := range uint64(width) {
							x := sign
							if i < n && from+i < uint64(width) {
								x = a >> (from + i) & 1
							}
							field |= x << i
							if i >= from && i < from+n {
								put |= a >> (i - from) & 1 << i
							} else {
								put |= list[5] >> i & 1 << i
							}
						}
						if g := bfe(a, from, n); g != field {
							t.Fatalf("bfe.%s %#x, %d, %d: %#x, want %#x", kind, a, from, n, g, field)
						}
						if g := bfi(a, list[5], from, n); g != put {
							t.Fatalf("bfi %#x, %d, %d: %#x, want %#x", a, from, n, g, put)
						}
					}
				}
			}
		}
		for _, a := range integersOf(width, random) {
			set, first, reversed := 0, width, uint64(0)
			for i := range width {
				if a>>i&1 != 0 {
					set++
					first = width - 1 - i
					reversed |= 1 << (width - 1 - i)
				}
			}
			kind := fmt.Sprint(".b", width)
			if g := functionOf(t, "popc"+kind)(a, 0, 0); g != uint64(set) {
				t.Fatalf("popc %#x: %d, want %d", a, g, set)
			}
			if g := functionOf(t, "clz"+kind)(a, 0, 0); g != uint64(first) {
				t.Fatalf("clz %#x: %d, want %d", a, g, first)
			}
			if g := functionOf(t, "brev"+kind)(a, 0, 0); g != reversed {
				t.Fatalf("brev %#x: %#x, want %#x", a, g, reversed)
			}
			if g := functionOf(t, "not"+kind)(a, 0, 0); g != a^(^uint64(0)>>(64-width)) {
				t.Fatalf("not %#x: %#x", a, g)
			}
		}
	}
}

// lop3 and prmt by examples of the PTX ISA: lop3's table is computed from the operands 0xf0, 0xcc and 0xaa.
func TestLookupAndPermute(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	for range 100 {
		a, b, c := uint64(random.Uint32()), uint64(random.Uint32()), uint64(random.Uint32())
		for _, x := range []struct{ table, want uint64 }{
			{0xf0 & 0xcc & 0xaa, a & b & c}, {0xf0 | 0xcc | 0xaa, a | b | c}, {0xf0 ^ 0xcc ^ 0xaa, a ^ b ^ c},
			{0xf0 & 0xcc, a & b},
			{0xf0 & (0xff ^ 0xaa), a &^ c}, {0, 0}, {0xff, 1<<32 - 1}, {0xf0&0xcc | 0x0f&0xaa, a&b | (a^(1<<32-1))&c},
		} {
			if g := lookup(x.table)(a, b, c); g != x.want {
				t.Fatalf("lop3 %#x: %#x, want %#x", x.table, g, x.want)
			}
		}
	}
	for _, x := range []struct{ selector, want uint64 }{
		{0x3210, 0x80112233}, {0x7654, 0x44f56677}, {0x0000, 0x33333333}, {0x4567, 0x7766f544}, {0xbe10, 0xffff2233},
		{0x8f10, 0x00002233},
	} {
		if g := permute(0x80112233, 0x44f56677, x.selector); g != x.want {
			t.Errorf("prmt %#x: %#x, want %#x", x.selector, g, x.want)
		}
	}
}

var corners32 = []float32{0, float32(math.Copysign(0, -1)), 1, -1, .5, 3, math.MaxFloat32, -math.MaxFloat32,
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32,
	0x1p-126, 0x1.fffffcp-127, 0x1.000002p0, 0x1.fffffep0, float32(math.Inf(1)), float32(math.Inf(-1)),
	float32(math.NaN()), 0x1p24, 0x1.8p23}

func floats32(random *rand.Rand, n int) []float32 {
	list := append([]float32(nil), corners32...)
	for range n {
		x := math.Float32frombits(random.Uint32())
		if random.IntN(2) == 0 { // close to each other, so that sums cancel
			x = float32(math.Ldexp(float64(random.Uint32()), random.IntN(40)-50))
		}
		list = append(list, x)
	}
	return list
}

// exact is an operation on finite numbers, with enough digits.
func exact(name string, a, b, c float64) *big.Float {
	of := func(x float64) *big.Float { return new(big.Float).SetPrec(4000).SetFloat64(x) }
	switch name {
	case "add":
		return of(0).Add(of(a), of(b))
	case "sub":
		return of(0).Sub(of(a), of(b))
	case "mul":
		return of(0).Mul(of(a), of(b))
	case "div":
		return of(0).SetPrec(400).Quo(of(a), of(b))
	case "rcp":
		return of(0).SetPrec(400).Quo(of(1), of(a))
	case "sqrt":
		return of(0).SetPrec(400).Sqrt(of(a))
	}
	p := of(0).Mul(of(a), of(b))
	return p.Add(p, of(c))
}

// Arithmetic in f32 and f64 equals math/big's, rounded once to nearest, also for subnormal numbers. Special operands
// follow Go.
func TestFloats(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	finite := func(list ...float64) bool {
		for _, x := range list {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return false
			}
		}
		return true
	}
	for _, name := range []string{"add", "sub", "mul", "div", "rcp", "sqrt", "fma"} {
		f, g := functionOf(t, name+".rn.f32"), functionOf(t, name+".rn.f64")
		list := floats32(random, 150)
		for _, a := range list {
			for _, b := range list {
				c := list[random.IntN(len(list))]
				if name == "fma" && random.IntN(3) == 0 {
					c = -a * b // cancels except for rounding
				}
				x, y, z := float64(a), float64(b), float64(c)
				got := f32(f(uint64(math.Float32bits(a)), uint64(math.Float32bits(b)), uint64(math.Float32bits(c))))
				special := !finite(x, y) || name == "fma" && !finite(z) || (name == "div" && y == 0) ||
					(name == "rcp" && x == 0) || name == "sqrt" && x < 0
				if special {
					want := map[string]float64{"add": x + y, "sub": x - y, "mul": x * y, "div": x / y, "rcp": 1 / x,
						"sqrt": math.Sqrt(x), "fma": x*y + z}[name]
					if float32(want) != got && (want == want || got == got) {
						t.Fatalf("%s.f32 %g %g %g: %g, want %g", name, a, b, c, got, want)
					}
					if bits := f(uint64(math.Float32bits(a)), uint64(math.Float32bits(b)),
						uint64(math.Float32bits(c))); got != got && bits != 0x7fffffff {
						t.Fatalf("%s.f32: NaN is %#x", name, bits)
					}
					continue
				}
				e := exact(name, x, y, z)
				if want, _ := e.Float32(); want != got {
					t.Fatalf("%s.f32 %g %g %g: %g, want %g", name, a, b, c, got, want)
				}
				if name == "fma" && got != 0 && !math.IsInf(float64(got), 0) {
					directed(t, a, b, c, e)
				}
				// The same digits spread over more bits, for f64.
				x, y, z = x*(1+0x1p-40), y*(1-0x1.8p-45), z*(1+0x1p-50)
				if !finite(x, y, z) {
					continue
				}
				e = exact(name, x, y, z)
				if want, _ := e.Float64(); want != f64(g(bits64(x), bits64(y), bits64(z))) {
					t.Fatalf("%s.f64 %g %g %g: %g, want %g", name, x, y, z, f64(g(bits64(x), bits64(y), bits64(z))),
						want)
				}
			}
		}
	}
}

// directed compares fma rounded down, up and to zero with the exact number.
func directed(t *testing.T, a, b, c float32, e *big.Float) {
	t.Helper()
	bits := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	of := func(x float32) *big.Float { return new(big.Float).SetFloat64(float64(x)) }
	down := f32(functionOf(t, "fma.rm.f32")(bits(a), bits(b), bits(c)))
	up := f32(functionOf(t, "fma.rp.f32")(bits(a), bits(b), bits(c)))
	zero := f32(functionOf(t, "fma.rz.f32")(bits(a), bits(b), bits(c)))
	if of(down).Cmp(e) > 0 || of(up).Cmp(e) < 0 || of(down).Cmp(e) < 0 &&
		math.Nextafter32(down, float32(math.Inf(1))) != up || of(down).Cmp(e) == 0 && up != down {
		t.Fatalf("fma %g %g %g is %g rounded down and %g rounded up, exactly %g", a, b, c, down, up, e)
	}
	if want := map[bool]float32{true: down, false: up}[e.Sign() > 0]; zero != want {
		t.Fatalf("fma %g %g %g is %g rounded to zero, want %g", a, b, c, zero, want)
	}
}

func TestMinMaxCompare(t *testing.T) {
	nan, negative := float32(math.NaN()), float32(math.Copysign(0, -1))
	bits := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	for _, x := range []struct{ a, b, least, most float32 }{
		{1, 2, 1, 2}, {2, 1, 1, 2}, {nan, 1, 1, 1}, {1, nan, 1, 1}, {0, negative, negative, 0},
		{negative, 0, negative, 0}, {-3, 1, -3, 1},
	} {
		if g := functionOf(t, "min.f32")(bits(x.a), bits(x.b), 0); g != bits(x.least) {
			t.Errorf("min %g %g: %g", x.a, x.b, f32(g))
		}
		if g := functionOf(t, "max.f32")(bits(x.a), bits(x.b), 0); g != bits(x.most) {
			t.Errorf("max %g %g: %g", x.a, x.b, f32(g))
		}
		if g := functionOf(t, "min.f64")(bits64(float64(x.a)), bits64(float64(x.b)), 0); f64(g) != float64(x.least) ||
			math.Signbit(f64(g)) != math.Signbit(float64(x.least)) {
			t.Errorf("min %g %g: %g", x.a, x.b, f64(g))
		}
	}
	if g := functionOf(t, "max.f32")(bits(nan), bits(nan), 0); g != 0x7fffffff {
		t.Errorf("max of NaN: %#x", g)
	}
	// For a < b, a = b, a > b and NaN, as in the PTX ISA's table.
	for name, want := range map[string]string{
		"eq": "0100", "ne": "1010", "lt": "1000", "le": "1100", "gt": "0010", "ge": "0110",
		"equ": "0101", "neu": "1011", "ltu": "1001", "leu": "1101", "gtu": "0011", "geu": "0111", "num": "1110",
		"nan": "0001",
	} {
		for i, b := range []float32{2, 1, 0, nan} {
			if g := functionOf(t, "setp."+name+".f32")(bits(1), bits(b), 0); fmt.Sprint(g) != want[i:i+1] {
				t.Errorf("setp.%s.f32 1, %g: %d", name, b, g)
			}
			if g := functionOf(t, "setp."+name+".f64")(bits64(1), bits64(float64(b)), 0); fmt.Sprint(g) != want[i:i+1] {
				t.Errorf("setp.%s.f64 1, %g: %d", name, b, g)
			}
		}
	}
}

// .ftz flushes subnormal operands and results to zero with their sign, .sat clamps to [0, 1]; approximations are
// exactly rounded or off by Beside.
func TestModifiers(t *testing.T) {
	tiny, normal := uint64(0x80000001), uint64(0x00800000)
	if g := functionOf(t, "add.ftz.f32")(tiny, tiny, 0); g != 1<<31 {
		t.Errorf("add.ftz of subnormal numbers: %#x", g)
	}
	if g := functionOf(t, "mul.ftz.f32")(normal, bits32(.5), 0); g != 0 {
		t.Errorf("mul.ftz with a subnormal result: %#x", g)
	}
	if g := functionOf(t, "mul.f32")(normal, bits32(.5), 0); g != normal>>1 {
		t.Errorf("mul with a subnormal result: %#x", g)
	}
	if g := functionOf(t, "setp.gt.ftz.f32")(1, 0, 0); g != 0 {
		t.Error("setp.gt.ftz sees a subnormal number")
	}
	for x, want := range map[float32]float32{-1: 0, .25: .25, 2: 1, float32(math.Inf(1)): 1} {
		if g := functionOf(t, "add.sat.f32")(bits32(x), 0, 0); g != bits32(want) {
			t.Errorf("add.sat %g: %g", x, f32(g))
		}
	}
	if g := functionOf(t, "add.sat.f32")(0x7fc00000, 0, 0); g != 0 {
		t.Errorf("add.sat NaN: %#x", g)
	}
	for name, f := range map[string]func(float64) float64{
		"ex2": math.Exp2, "lg2": math.Log2, "tanh": math.Tanh, "sqrt": math.Sqrt,
		"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
		"rcp":   func(x float64) float64 { return 1 / x },
	} {
		for _, x := range []float32{.3, 1.7, 5.25, 100.5} {
			want := math.Float32bits(float32(f(float64(x))))
			for _, n := range []int{-2, 0, 2} {
				fn, _, err := arithmetic(name+".approx.ftz.f32", Options{Beside: n})
				if err != nil {
					t.Fatal(err)
				}
				if g := fn(bits32(x), 0, 0); g != uint64(want+uint32(n)) {
					t.Errorf("%s %g, %d beside: %#x, want %#x", name, x, n, g, want)
				}
			}
		}
	}
	if g := functionOf(t, "rcp.approx.ftz.f64")(bits64(3), 0, 0); bits.TrailingZeros64(g) < 32 ||
		math.Abs(f64(g)*3-1) > 0x1p-19 {
		t.Errorf("rcp.approx.ftz.f64 3: %g", f64(g))
	}
	for _, name := range []string{"add.rn.s32", "add.sat.u32", "fma.ftz.s32", "frob.f32", "add.f32x2", "mul.f16",
		"cvt.f32.f64", "cvt.rn.f64.f32", "cvt.rzi.f32.u32", "cvt.u32.f32", "cvt.rn.f32.pred"} {
		if _, _, err := arithmetic(name, Options{}); err == nil {
			t.Errorf("%s is known", name)
		}
	}
}
