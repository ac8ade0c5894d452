package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/internal/guard"
	"onlinerna/internal/simd"
)

// eachStored runs f for the levels of the processor.
func eachStored(t *testing.T, f func(t *testing.T, b *BFloat16)) {
	for _, l := range simd.All() {
		t.Run(l.String(), func(t *testing.T) { f(t, Stored(l)) })
	}
	if simd.HasBFloat16() {
		t.Run("avx512bf16", func(t *testing.T) { f(t, Stored(simd.AVX512BF16)) })
	}
}

// eachShape runs f for rows of up to five of the widest vectors.
func eachShape(f func(rows, width int)) {
	for width := 1; width <= 5*16; width++ {
		for _, rows := range []int{1, 3} {
			f(rows, width)
		}
	}
}

// marked returns n elements, each equal to mark, at the end of memory.
func marked[T any](t *testing.T, n int, mark T) []T {
	x := guard.Slice[T](t, n)
	for i := range x {
		x[i] = mark
	}
	return x
}

// codes returns n stored numbers of all kinds at the end of readable memory.
func codes(t *testing.T, r *rand.Rand, n int) []uint16 {
	x := guard.Slice[uint16](t, n)
	for i, v := range patterns(t, r, n) {
		x[i] = Bits(v)
	}
	return x
}

// same reports the first element of got that differs from want in a bit.
func same(got, want []float32) error {
	for i, w := range want {
		if g := got[i]; math.Float32bits(g) != math.Float32bits(w) {
			return fmt.Errorf("element %d is %#08x, want %#08x", i, math.Float32bits(g), math.Float32bits(w))
		}
	}
	return nil
}

func TestStoredWiden(t *testing.T) {
	const mark = 0.375
	eachStored(t, func(t *testing.T, b *BFloat16) {
		all, got := make([]uint16, 1<<16), make([]float32, 1<<16)
		for i := range all {
			all[i] = uint16(i)
		}
		b.Widened(got, all)
		for i, x := range got {
			if u := math.Float32bits(x); u != uint32(i)<<16 {
				t.Fatalf("%#04x is widened to %#08x", i, u)
			}
		}
		r := rand.New(rand.NewPCG(5, 1))
		eachShape(func(rows, width int) {
			whole := (width + b.Lanes - 1) / b.Lanes * b.Lanes
			src := codes(t, r, rows*(width+1)-1)
			dst, want := marked[float32](t, rows*(whole+3)-3, mark), make([]float32, rows*(whole+3)-3)
			for i := range want {
				switch p, q := i/(whole+3), i%(whole+3); {
				case q < width:
					want[i] = Float32(src[p*(width+1)+q])
				case q >= whole:
					want[i] = mark
				}
			}
			b.Widen(&dst[0], &src[0], rows, width, 4*(whole+3), 2*(width+1))
			if err := same(dst, want); err != nil {
				t.Fatalf("%d × %d: %v", rows, width, err)
			}
		})
	})
}

func TestStoredNarrow(t *testing.T) {
	const mark = 0x1234
	eachStored(t, func(t *testing.T, b *BFloat16) {
		var src []float32 // numbers around all ties, at the ends of their rounding intervals
		for upper := range uint32(1 << 16) {
			for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
				src = append(src, math.Float32frombits(upper<<16|lower))
			}
		}
		got := make([]uint16, len(src))
		b.Narrowed(got, src)
		for i, x := range src {
			if want := Bits(x); got[i] != want {
				t.Fatalf("%#08x is rounded to %#04x, want %#04x", math.Float32bits(x), got[i], want)
			}
		}
		r := rand.New(rand.NewPCG(5, 2))
		eachShape(func(rows, width int) {
			src, dst := patterns(t, r, rows*(width+1)-1), marked[uint16](t, rows*(width+3)-3, mark)
			b.Narrow(&dst[0], &src[0], rows, width, 2*(width+3), 4*(width+1))
			for i, got := range dst {
				want := uint16(mark)
				if p, q := i/(width+3), i%(width+3); q < width {
					want = Bits(src[p*(width+1)+q])
				}
				if got != want {
					t.Fatalf("%d × %d: element %d is %#04x, want %#04x", rows, width, i, got, want)
				}
			}
		})
	})
}

// Slices of all lengths at the end of memory.
func TestStoredSlices(t *testing.T) {
	eachStored(t, func(t *testing.T, b *BFloat16) {
		r := rand.New(rand.NewPCG(5, 3))
		for n := range 5*16 + 1 {
			src := codes(t, r, n)
			wide, back := guard.Slice[float32](t, n), guard.Slice[uint16](t, n)
			b.Widened(wide, src)
			b.Narrowed(back, wide)
			for i, x := range src {
				if back[i] != x || math.Float32bits(wide[i]) != uint32(x)<<16 {
					t.Fatalf("element %d of %d, %#04x, is widened to %#08x and narrowed to %#04x", i, n, x, math.Float32bits(wide[i]),
						back[i])
				}
			}
		}
	})
}

// Words of stored numbers equal the words of the same numbers in float32.
func TestNarrowStored(t *testing.T) {
	const mark = 0.375
	eachNarrow(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(5, 4))
		eachShape(func(rows, width int) {
			stride := s.Vectors(s.Narrow.Words(width))*s.Lanes + 3
			src := codes(t, r, rows*(width+1)-1)
			wide := make([]float32, len(src))
			for i, x := range src {
				wide[i] = Float32(x)
			}
			dst, want := marked[float32](t, rows*stride-3, mark), marked[float32](t, rows*stride-3, mark)
			s.Narrow.Copy(&want[0], &wide[0], rows, width, 4*stride, 4*(width+1))
			s.Narrow.Stored(&dst[0], &src[0], rows, width, 4*stride, 2*(width+1))
			if err := same(dst, want); err != nil {
				t.Fatalf("%d × %d: %v", rows, width, err)
			}
		})
	})
}
