package kern

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"onlinerna/internal/simd"
)

// each runs a test of the kernels of each level against plain Go's.
func each(t *testing.T, test func(t *testing.T, set *Set, rng *rand.Rand)) {
	for _, l := range simd.All()[1:] {
		t.Run(l.String(), func(t *testing.T) { test(t, sets[l], rand.New(rand.NewPCG(1, 2))) })
	}
}

func noise(rng *rand.Rand, n int) []uint8 {
	b := make([]uint8, n)
	for i := range b {
		b[i] = uint8(rng.Uint32())
		if rng.IntN(8) == 0 {
			b[i] = uint8(-rng.IntN(2))
		}
	}
	return b
}

const guard = 0xa5

// guarded is n bytes followed by guards.
func guarded(n int) []uint8 {
	b := bytes.Repeat([]uint8{guard}, n+64)
	return b[:n]
}

func intact(t *testing.T, what string, b []uint8) {
	t.Helper()
	for i, v := range b[:len(b)+64][len(b):] {
		if v != guard {
			t.Fatalf("%s: byte %d behind the output is written", what, i)
		}
	}
}

func TestIDCT(t *testing.T) {
	each(t, func(t *testing.T, set *Set, rng *rand.Rand) {
		const stride = 19
		for trial := range 20000 {
			var coef, quant [64]int16
			for i := range coef {
				quant[i] = int16(1 + rng.IntN(30))
				if rng.IntN(64) < trial%65 {
					coef[i] = int16(rng.IntN(101) - 50)
				}
				switch trial % 10 { // values that occur in no image must agree too
				case 0:
					coef[i], quant[i] = int16(rng.Uint32()), int16(rng.Uint32())
				case 1:
					if i%8 != 0 {
						coef[i] = 0
					} else {
						coef[i], quant[i] = int16(rng.Uint32()), int16(rng.Uint32())
					}
				}
			}
			got, want := guarded(8*stride), guarded(8*stride)
			set.IDCT(got, stride, &coef, &quant)
			idct(want, stride, &coef, &quant)
			if !bytes.Equal(got, want) {
				t.Fatalf("trial %d: got\n%v, want\n%v of %v", trial, got, want, coef)
			}
			got, want = guarded(4*stride), guarded(4*stride)
			set.IDCT4(got, stride, &coef, &quant)
			idct4(want, stride, &coef, &quant)
			if !bytes.Equal(got, want) {
				t.Fatalf("trial %d, half the size: got\n%v, want\n%v of %v", trial, got, want, coef)
			}
		}
	})
}

func TestUpsample(t *testing.T) {
	each(t, func(t *testing.T, set *Set, rng *rand.Rand) {
		for width := 3; width < 90; width++ {
			near, far := noise(rng, width), noise(rng, width)
			for range 10 {
				first := rng.IntN(width)
				last := first + 1 + rng.IntN(width-first)
				what := fmt.Sprintf("[%d, %d) of %d", first, last, width)
				got, want := guarded(2*(last-first)), guarded(2*(last-first))
				set.UpsampleH2V1(got, near, first, last)
				upsampleH2V1(want, near, first, last)
				if intact(t, what, got); !bytes.Equal(got, want) {
					t.Fatalf("across, %s: got %v, want %v", what, got, want)
				}
				set.UpsampleH2V2(got, near, far, first, last)
				upsampleH2V2(want, near, far, first, last)
				if intact(t, what, got); !bytes.Equal(got, want) {
					t.Fatalf("both ways, %s: got %v, want %v", what, got, want)
				}
			}
		}
	})
}

// All colours.
func TestYCbCrToRGB(t *testing.T) {
	each(t, func(t *testing.T, set *Set, rng *rand.Rand) {
		luma, cb, cr := make([]uint8, 256), make([]uint8, 256), make([]uint8, 256)
		for y := range luma {
			luma[y] = uint8(y)
		}
		got, want := guarded(3*256), guarded(3*256)
		for c := range 1 << 16 {
			for i := range cb {
				cb[i], cr[i] = uint8(c), uint8(c>>8)
			}
			set.YCbCrToRGB(got, luma, cb, cr)
			ycbcrToRGB(want, luma, cb, cr)
			if !bytes.Equal(got, want) {
				t.Fatalf("cb %d, cr %d: got %v, want %v", uint8(c), c>>8, got, want)
			}
		}
		for n := range 80 {
			luma, cb, cr := noise(rng, n), noise(rng, n), noise(rng, n)
			got, want := guarded(3*n), guarded(3*n)
			set.YCbCrToRGB(got, luma, cb, cr)
			ycbcrToRGB(want, luma, cb, cr)
			if intact(t, fmt.Sprint(n), got); !bytes.Equal(got, want) {
				t.Fatalf("%d pixels: got %v, want %v", n, got, want)
			}
		}
	})
}

// randomFilter has n outputs of at most most taps of `in` samples, whose sum is about 1.
func randomFilter(rng *rand.Rand, in, n, most int) *Filter {
	f := &Filter{In: in, Size: most, Start: make([]int, n), Count: make([]int, n), Coef: make([]int32, n*most)}
	for i := range n {
		f.Count[i] = 1 + rng.IntN(min(most, in))
		f.Start[i] = rng.IntN(in - f.Count[i] + 1)
		left := int32(1<<Precision + f.Count[i])
		for k := range f.Count[i] {
			c := rng.Int32N(left + 1)
			if k == f.Count[i]-1 {
				c = left
			}
			f.Coef[i*most+k] = c
			left -= c
		}
	}
	f.Prepare()
	return f
}

func TestAcross(t *testing.T) {
	each(t, func(t *testing.T, set *Set, rng *rand.Rand) {
		for trial := range 2000 {
			in, n := 1+rng.IntN(50), 1+rng.IntN(40)
			f := randomFilter(rng, in, n, 1+rng.IntN(12))
			row := noise(rng, 3*in+Slack)
			got, want := guarded(3*n+Slack), guarded(3*n+Slack)
			set.Across(got, row, f)
			across(want, row[:3*in], f)
			if intact(t, "across", got); !bytes.Equal(got[:3*n], want[:3*n]) {
				t.Fatalf("trial %d, %d to %d: got %v, want %v", trial, in, n, got[:3*n], want[:3*n])
			}
		}
	})
}

func TestDown(t *testing.T) {
	each(t, func(t *testing.T, set *Set, rng *rand.Rand) {
		for trial := range 2000 {
			n, rows := 1+rng.IntN(200), 1+rng.IntN(9)
			f := randomFilter(rng, rows, 1, rows)
			var taps Taps
			taps.Set(f.Coef[:f.Count[0]])
			in := noise(rng, (rows+1)*n+Slack)
			got, want := guarded(n), guarded(n)
			set.Down(got, in, &taps)
			down(want, in[:rows*n], &taps)
			if intact(t, "down", got); !bytes.Equal(got, want) {
				t.Fatalf("trial %d, %d rows of %d: got %v, want %v", trial, rows, n, got, want)
			}
		}
	})
}

func BenchmarkKernels(b *testing.B) {
	for _, l := range simd.All() {
		set, rng := sets[l], rand.New(rand.NewPCG(1, 2))
		var coef, quant [64]int16
		for i := range coef {
			coef[i], quant[i] = int16(rng.IntN(50)), 1
		}
		dst, a, c := make([]uint8, 3000), noise(rng, 1000), noise(rng, 1000)
		b.Run("IDCT/"+l.String(), func(b *testing.B) {
			for b.Loop() {
				set.IDCT(dst, 8, &coef, &quant)
			}
		})
		b.Run("UpsampleH2V2/"+l.String(), func(b *testing.B) {
			for b.Loop() {
				set.UpsampleH2V2(dst, a, c, 0, 250)
			}
		})
		b.Run("YCbCrToRGB/"+l.String(), func(b *testing.B) {
			for b.Loop() {
				set.YCbCrToRGB(dst, a[:500], c, c)
			}
		})
		f := &Filter{In: 300, Size: 4, Start: make([]int, 224), Count: make([]int, 224), Coef: make([]int32, 4*224)}
		for i := range f.Start {
			f.Start[i], f.Count[i] = i, 4
		}
		f.Prepare()
		b.Run("Across/"+l.String(), func(b *testing.B) {
			for b.Loop() {
				set.Across(dst, a, f)
			}
		})
		var taps Taps
		taps.Set(f.Coef[:4])
		rows := noise(rng, 672*5+Slack)
		b.Run("Down/"+l.String(), func(b *testing.B) {
			for b.Loop() {
				set.Down(dst[:672], rows, &taps)
			}
		})
	}
}
