package kern

import (
	"math"
	"math/rand/v2"
	"testing"

	"onlinerna/internal/guard"
)

// tileCase is a product of dense matrices in tiles, each at the end of readable memory.
type tileCase struct {
	rows, columns, pairs, depth int
	a                           []uint16 // by row
	b                           []uint32 // by step and word
	c                           []float32
	args                        TileArgs
}

func newTileCase(t testing.TB, rows, columns, pairs, depth int) *tileCase {
	tiles := (columns + TileWidth - 1) / TileWidth
	stepC := 4 * columns
	x := &tileCase{rows: rows, columns: columns, pairs: pairs, depth: depth,
		a: guard.Slice[uint16](t, 2*pairs*rows*depth*TileDepth),
		// The last row of words ends where the columns do.
		b: guard.Slice[uint32](t, (depth*TileWidth-1)*tiles*TileWidth+columns),
		c: guard.Slice[float32](t, 2*pairs*rows*columns),
	}
	spans, steps := make([][2]TileSpan, pairs), make([]TileStep, depth)
	for i := range 2 * pairs {
		spans[i/2][i%2] = TileSpan{2 * i * rows * depth * TileDepth, i * rows * stepC}
	}
	for i := range steps {
		steps[i] = TileStep{2 * i * TileDepth, 4 * i * TileWidth * tiles * TileWidth}
	}
	x.args = TileArgs{Config: Configure(rows, columns), A: &x.a[0], B: &x.b[0], C: &x.c[0], Add: 1, Spans: &spans[0],
		Pairs: pairs, Steps: &steps[0], Depth: depth, StepA: 2 * depth * TileDepth, StepC: stepC}
	return x
}

// fill sets the operands to triples of f: of A, of B and of C.
func (x *tileCase) fill(f func() (a, b uint16, c float32)) {
	for i := range x.a {
		x.a[i], _, _ = f()
	}
	for i := range x.b {
		_, low, _ := f()
		_, high, _ := f()
		x.b[i] = uint32(low) | uint32(high)<<16
	}
	for i := range x.c {
		_, _, x.c[i] = f()
	}
}

// by returns C after the product by k; the case keeps its C.
func (x *tileCase) by(t testing.TB, k *Tiles) []float32 {
	args := x.args
	c := guard.Copy(t, x.c)
	args.C = &c[0]
	k.Products[(x.columns+TileWidth-1)/TileWidth](&args)
	return c
}

// differences counts the elements with different bits. All NaN are the same.
func differences(got, want []float32) (n int) {
	for i, w := range want {
		if math.Float32bits(got[i]) != math.Float32bits(w) && !(got[i] != got[i] && w != w) {
			n++
		}
	}
	return n
}

// tileKind makes random elements of A, B and C.
type tileKind struct {
	name string
	f    func() (a, b uint16, c float32)
}

// tileKinds are operands whose sums depend on the order, the roundings or the treatment of small numbers.
func tileKinds(r *rand.Rand) []tileKind {
	sign := func() int { return r.IntN(2) << 15 }
	normal := func(low, exponents int) func() (uint16, uint16, float32) {
		f := func() float32 { return float32(r.NormFloat64() * math.Exp2(float64(low+r.IntN(exponents)))) }
		half := func() uint16 { return uint16(math.Float32bits(f()) >> 16) }
		return func() (uint16, uint16, float32) { return half(), half(), f() * f() * 4 }
	}
	return []tileKind{
		{"around 1", normal(0, 1)}, {"2^±20", normal(-20, 41)}, {"products at 2^-126", normal(-66, 16)},
		{"denormal", normal(-130, 70)}, {"overflow", normal(59, 8)},
		{"least normal", func() (uint16, uint16, float32) {
			e := r.IntN(8) + 60
			return uint16(e<<7 | r.IntN(128) | sign()), uint16((127-e+r.IntN(6)-3)<<7&0x7fff | r.IntN(128) | sign()),
				math.Float32frombits(uint32(r.IntN(4))<<23 | r.Uint32()&0x807fffff)
		}},
		{"just below 2^-126", func() (uint16, uint16, float32) {
			one := func() uint16 {
				switch r.IntN(8) {
				case 0, 1:
					return uint16((127-63)<<7 | sign())
				case 2, 3:
					return uint16((127-76+r.IntN(3))<<7 | r.IntN(128) | sign())
				}
				return 0
			}
			return one(), one(), 0
		}},
		{"any bits", func() (uint16, uint16, float32) {
			a, b := uint16(r.Uint32()), uint16(r.Uint32())
			if r.IntN(40) != 0 {
				a, b = a&0xbfff, b&0xbfff
			}
			return a, b, math.Float32frombits(r.Uint32())
		}},
		{"sums that cancel", func() (uint16, uint16, float32) {
			return uint16(0x3f80 + r.IntN(2)*0x8000), uint16(0x3f80 + r.IntN(256)*0x80 - 128*0x80 + sign()),
				math.Float32frombits(uint32(0x3f800000+r.IntN(1<<23)) ^ uint32(r.IntN(2))<<31)
		}},
	}
}

// AMX, AVX-512 and plain Go give the same bits, whatever the operands.
func TestTileBits(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 6
	}
	tileKernels(t, func(t *testing.T, k *Tiles) {
		for _, kind := range tileKinds(rand.New(rand.NewPCG(5, 8))) {
			t.Run(kind.name, func(t *testing.T) {
				x := newTileCase(t, TileRows, 2*TileWidth, 1, 2)
				for range rounds {
					x.fill(kind.f)
					if n := differences(x.by(t, k), x.by(t, PlainTiles())); n > 0 {
						t.Fatalf("%d of %d elements differ", n, len(x.c))
					}
				}
			})
		}
	})
}

// A faulty definition differs from the kernels for some kind of operands, so these kinds show each such fault.
func TestTileKinds(t *testing.T) {
	rounds := 4000
	if testing.Short() {
		rounds = 250
	}
	flush := flushed
	step := func(sum float32, a, b uint16) float32 { return tileStep(sum, tileFactor(a), tileFactor(b)) }
	type fault struct {
		name string
		dot  func(c float32, a, b *[TileDepth]uint16) float32
	}
	sums := func(c float32, a, b *[TileDepth]uint16, step func(sum float32, a, b uint16) float32) float32 {
		var even, odd float32
		for k := 0; k < TileDepth; k += 2 {
			even, odd = step(even, a[k], b[k]), step(odd, a[k+1], b[k+1])
		}
		return flush(flush(c) + flush(even+odd))
	}
	faults := []fault{
		{"elements in order", func(c float32, a, b *[TileDepth]uint16) float32 {
			var sum float32
			for k := range a {
				sum = step(sum, a[k], b[k])
			}
			return flush(flush(c) + sum)
		}},
		{"sums begin with C", func(c float32, a, b *[TileDepth]uint16) float32 {
			even, odd := flush(c), float32(0)
			for k := 0; k < TileDepth; k += 2 {
				even, odd = step(even, a[k], b[k]), step(odd, a[k+1], b[k+1])
			}
			return flush(even + odd)
		}},
		{"products rounded", func(c float32, a, b *[TileDepth]uint16) float32 {
			return sums(c, a, b, func(sum float32, a, b uint16) float32 {
				return flush(sum + flush(flush(Float32(a))*flush(Float32(b))))
			})
		}},
		{"factors not flushed", func(c float32, a, b *[TileDepth]uint16) float32 {
			return sums(c, a, b, func(sum float32, a, b uint16) float32 { return flush(Fused(Float32(a), Float32(b), sum)) })
		}},
		{"sums not flushed", func(c float32, a, b *[TileDepth]uint16) float32 {
			return sums(c, a, b, func(sum float32, a, b uint16) float32 {
				return Fused(flush(Float32(a)), flush(Float32(b)), sum)
			})
		}},
		{"flushed after rounding to float32", func(c float32, a, b *[TileDepth]uint16) float32 {
			return sums(c, a, b, func(sum float32, a, b uint16) float32 {
				return flush(Fused(flush(Float32(a)), flush(Float32(b)), sum))
			})
		}},
		{"C not flushed", func(c float32, a, b *[TileDepth]uint16) float32 {
			return flush(c + sums(0, a, b, step))
		}},
	}
	r := rand.New(rand.NewPCG(5, 8))
	for _, f := range faults {
		found := 0
		for _, kind := range tileKinds(r) {
			for range rounds {
				var a, b [TileDepth]uint16
				var x, y [TileDepth]float64
				var c float32
				for k := range a {
					a[k], b[k], c = kind.f()
					x[k], y[k] = tileFactor(a[k]), tileFactor(b[k])
				}
				found += differences([]float32{f.dot(c, &a, &b)}, []float32{TileDot(c, &x, &y)})
			}
		}
		if found == 0 {
			t.Errorf("%s: no operands show it", f.name)
		}
		t.Logf("%s: %d sums differ", f.name, found)
	}
}

// The kernels agree for all extents of tiles, and read and write no further.
func TestTileExtents(t *testing.T) {
	tileKernels(t, func(t *testing.T, k *Tiles) {
		r := rand.New(rand.NewPCG(3, 5))
		f := tileKinds(r)[0].f
		for rows := 1; rows <= TileRows; rows++ {
			for columns := 1; columns <= 2*TileWidth; columns++ {
				if testing.Short() && rows*columns%11 != 0 {
					continue
				}
				pairs, depth := 1+r.IntN(2), 1+r.IntN(2)
				x := newTileCase(t, rows, columns, pairs, depth)
				x.fill(f)
				if n := differences(x.by(t, k), x.by(t, PlainTiles())); n > 0 {
					t.Fatalf("%d×%d, %d pairs, depth %d: %d of %d elements differ", rows, columns, pairs, depth, n, len(x.c))
				}
			}
		}
	})
}

// The spans of a pair may share rows of C: both begin with the old numbers.
func TestTileOverlap(t *testing.T) {
	tileKernels(t, func(t *testing.T, k *Tiles) {
		x := newTileCase(t, 9, 20, 1, 2)
		x.fill(tileKinds(rand.New(rand.NewPCG(2, 2)))[0].f)
		x.args.Spans[1] = x.args.Spans[0]
		for _, shift := range []int{0, 1, 4} {
			x.args.Spans[1].A = x.args.Spans[0].A + shift*x.args.StepA
			x.args.Spans[1].C = x.args.Spans[0].C + shift*x.args.StepC
			if n := differences(x.by(t, k), x.by(t, PlainTiles())); n > 0 {
				t.Errorf("shifted by %d rows, %d elements differ", shift, n)
			}
		}
	})
}

// The modes of floating point are the caller's again after a call, and small numbers are kept.
func TestTileModes(t *testing.T) {
	tileKernels(t, func(t *testing.T, k *Tiles) {
		x := newTileCase(t, TileRows, 2*TileWidth, 1, 1)
		small := []float32{0x1p-130, 0x1p-149}
		sum := math.Float32bits(0x1p-130 + 0x1p-149)
		for range 2 {
			if got := math.Float32bits(small[0] + small[1]); got != sum {
				t.Errorf("the sum of small numbers is %#x, want %#x", got, sum)
			}
			x.by(t, k)
		}
	})
}
