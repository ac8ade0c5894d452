package convert

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"onlinerna/internal/simd"
)

var formats = map[string]Format{"float32": Float32, "float64": Float64, "float16": Float16, "bfloat16": BFloat16}

// vectors makes n stored vectors of d random elements with NaN behind them, and returns their values. They begin off
// bytes into their memory.
func vectors(n, d int, f Format, off int, seed uint64) (stored [][]byte, values [][]float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range n {
		src := make([]float64, d+40)
		for i := range src {
			src[i] = r.NormFloat64() * math.Ldexp(1, r.IntN(9)-4)
			if i >= d {
				src[i] = math.NaN()
			}
		}
		b := make([]byte, off+len(src)*f.Size())[off:]
		Round(b, src, f, false)
		wide := make([]float64, d)
		Widen(wide, b, f)
		stored, values = append(stored, b), append(values, wide)
	}
	return stored, values
}

// eachLevel runs f at all levels.
func eachLevel(t *testing.T, f func(t *testing.T, l simd.Level)) {
	for _, l := range simd.All() {
		t.Run(l.String(), func(t *testing.T) {
			before := active
			active = &sets[l]
			defer func() { active = before }()
			f(t, l)
		})
	}
}

// numbers returns the critical numbers for rounding: near every 16-bit number, between them, and the ends of all
// ranges.
func numbers() []float64 {
	var v []float64
	for _, f := range []narrow16{half, brain} {
		for h := uint16(0); h < f.infinity; h += 1 + h%7 {
			a, b := f.value(h), f.value(h+1)
			if h+1 == f.infinity {
				b = a + (a - f.value(h-1))
			}
			mid := a/2 + b/2
			v = append(v, a, -a, mid, -mid, math.Nextafter(mid, 0), math.Nextafter(mid, 1e300),
				math.Nextafter(a, 0), a+(b-a)*.7, -(a + (b-a)*.2))
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		v = append(v, math.Ldexp(r.NormFloat64(), r.IntN(320)-160))
	}
	return append(v, 0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(),
		math.MaxFloat64, math.SmallestNonzeroFloat64,
		65519.99, 65520, 0x1.fefffp127, 0x1.ffp127, -0x1.ffp127, 0x1p-126, 0x1.fffffp-127, 0x1p-149, 0x1p-150, 0x1p-1074,
		1e-310)
}

func (f narrow16) value(h uint16) float64 {
	if f == half {
		return float64(halfToFloat(h))
	}
	return float64(math.Float32frombits(uint32(h) << 16))
}

// Numbers are rounded once, alike at every level and element by element, and the index of an overflow is correct.
func TestRound(t *testing.T) {
	src := numbers()
	eachLevel(t, func(t *testing.T, l simd.Level) {
		for name, f := range formats {
			want := make([]byte, len(src)*f.Size())
			bad := roundOne(want, src, f)
			for _, off := range []int{0, 1, 16} {
				buf := make([]byte, off+len(want)+8)
				got := buf[off:][:len(want)]
				if at := RoundFinite(got, src, f); at != bad || !bytes.Equal(got, want) {
					t.Errorf("%s: overflow at %d, want %d, or bytes that differ", name, at, bad)
				}
			}
			var plain []float64
			for _, v := range src {
				var b [8]byte
				if roundOne(b[:], []float64{v}, f) < 0 {
					plain = append(plain, v)
				}
			}
			for _, n := range []int{0, 1, 16, 17, 100, len(plain)} {
				want, got := make([]byte, n*f.Size()), make([]byte, 64+n*f.Size())
				for uintptr(unsafe.Pointer(&got[0]))%64 != 0 {
					got = got[1:]
				}
				got = got[:len(want)]
				roundOne(want, plain[:n], f)
				if Round(got, plain[:n], f, true); !bytes.Equal(got, want) {
					t.Errorf("%s: bytes of %d elements past the caches differ", name, n)
				}
				clear(got)
				if at := RoundFinite(got, plain[:n], f); at != -1 || !bytes.Equal(got, want) {
					t.Errorf("%s: bytes of %d elements differ, or overflow at %d", name, n, at)
				}
			}
		}
	})
}

// Ties go to the even neighbour, and widening a 16-bit number and rounding it gives the same number.
func TestRound16(t *testing.T) {
	for _, f := range []narrow16{half, brain} {
		for h := uint16(0); h < f.infinity; h++ {
			v, next := f.value(h), f.value(h+1)
			if h+1 == f.infinity {
				next = v + (v - f.value(h-1))
			}
			for x, want := range map[float64]uint16{v: h, v/2 + next/2: h + h&1, math.Nextafter(v/2+next/2, 0): h,
				-v: h | 1<<15} {
				if got, finite := f.round(x); got != want && x != 0 || finite != (want&^(1<<15) < f.infinity) {
					t.Fatalf("%v, near %#04x, gives %#04x", x, h, got)
				}
			}
		}
	}
}

// All 16-bit numbers are widened alike.
func TestWiden(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	eachLevel(t, func(t *testing.T, l simd.Level) {
		for f, n := range map[Format]narrow16{Float16: half, BFloat16: brain} {
			got := make([]float64, len(all)-3)
			Widen(got, bytesOf(all), f)
			for i, g := range got {
				if want := n.value(uint16(i)); g != want && (g == g || want == want) || math.Signbit(g) != math.Signbit(want) {
					t.Fatalf("%#04x is widened to %v, want %v", i, g, want)
				}
			}
		}
	})
}

func TestLargest(t *testing.T) {
	eachLevel(t, func(t *testing.T, l simd.Level) {
		for _, f := range []Format{Float32, Float64} {
			for _, n := range []int{1, 15, 16, 33, 200} {
				for _, off := range []int{0, 1} {
					t.Run(fmt.Sprint(f, n, off), func(t *testing.T) { testLargest(t, f, n, off) })
				}
			}
		}
	})
}

func testLargest(t *testing.T, f Format, n, off int) {
	stored, values := vectors(1, n, f, off, 3)
	src := stored[0][:n*f.Size()]
	want := 0.
	for _, v := range values[0] {
		want = max(want, math.Abs(v))
	}
	memory := make([]byte, 64+len(src)+1)
	dst := memory
	for uintptr(unsafe.Pointer(&dst[0]))%64 != 0 {
		dst = dst[1:]
	}
	dst[len(src)] = 77
	for i, to := range [][]byte{nil, dst[:len(src)], dst[:len(src)]} {
		clear(to)
		if m, bad := Largest(to, src, f, i == 2); m != want || bad != -1 || to != nil && !bytes.Equal(to, src) ||
			dst[len(src)] != 77 {
			t.Fatalf("largest is %v, want %v, bad %d, copy %v", m, want, bad, bytes.Equal(to, src))
		}
	}
	for at := range n {
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			was := bytes.Clone(src)
			roundOne(src[at*f.Size():], []float64{v}, f)
			if _, bad := Largest(nil, src, f, false); bad != at {
				t.Fatalf("%v at %d is found at %d", v, at, bad)
			}
			copy(src, was)
		}
	}
}
