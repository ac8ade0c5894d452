package kern

import (
	"math"
	"math/bits"
	"unsafe"
)

// TileDot is c + a·b for TileDepth pairs of factors from [tileFactor], as TDPBF16PS computes it: the products of even
// elements and those of odd ones are summed by themselves, from 0, with one rounding of each multiply-add, to nearest,
// ties to even. Then both sums are added, and then c. Sums and c below 2^-126 are 0.
func TileDot(c float32, a, b *[TileDepth]float64) float32 {
	var even, odd float32
	for k := 0; k < TileDepth; k += 2 {
		even = tileStep(even, a[k], b[k])
		odd = tileStep(odd, a[k+1], b[k+1])
	}
	return flushed(flushed(c) + flushed(even+odd))
}

// tileFactor is a number in bfloat16, or 0 for one below 2^-126.
func tileFactor(x uint16) float64 { return float64(flushed(Float32(x))) }

// tileStep is sum + x·y, rounded once: see dotStep. It is small if it is so after rounding to 24 bits: float32() would
// round numbers just below 2^-126 up.
func tileStep(sum float32, x, y float64) float32 {
	s := x*y + float64(sum)
	if math.Abs(s) < 0x1p-126*(1-0x1p-25) {
		return float32(math.Copysign(0, s))
	}
	return float32(s)
}

// PlainTiles are the kernels in plain Go: the definition of the others.
func PlainTiles() *Tiles {
	t := &Tiles{
		Copy: copyPlain,
		Narrow: Narrow{Step: 2, Block: TileWidth, Copy: turned(copyPaired), Stored: turned(storedWith(2)),
			PairRows: func(dst, first, second *float32, rows, width, dstStride, srcStride int) {
				pairRowsPlain(dst, second, first, rows, width, dstStride, srcStride)
			}},
		Turn: turnPlain, Pairs: pairsPlain, Order: orderPlain, Transpose: transposePlain, Square: squarePlain,
		Add:   addPlain,
		Split: [MostParts + 1]SplitRows{2: splitPlain(2), 3: splitPlain(3)},
		peak:  func(*TileConfig, int) {},
	}
	for columns := 1; columns <= 2; columns++ {
		t.Products[columns] = func(a *TileArgs) { a.products(columns) }
	}
	return t
}

func (a *TileArgs) products(tiles int) {
	rows, columns := int(a.Config[48]), 0
	for i := range tiles {
		columns += int(a.Config[16+2*i]) / 4
	}
	var x [TileRows][TileDepth]float64
	var y [2 * TileWidth][TileDepth]float64
	for _, s := range unsafe.Slice(a.Spans, a.Pairs) {
		var sums [2][TileRows][2 * TileWidth]float32
		for i, span := range s {
			for m := range rows {
				for j := range columns {
					switch {
					case a.Add != 0:
						sums[i][m][j] = *at(a.C, span.C+m*a.StepC+4*j)
					case a.Init != nil:
						sums[i][m][j] = *at(a.Init, 4*j)
					}
				}
			}
			for _, step := range unsafe.Slice(a.Steps, a.Depth) {
				for m := range rows {
					for k, f := range unsafe.Slice(at(a.A, span.A+step.A+m*a.StepA), TileDepth) {
						x[m][k] = tileFactor(f)
					}
				}
				for k := range TileWidth {
					for j := range columns {
						word := *at(a.B, step.B+4*(k*tiles*TileWidth+j))
						y[j][2*k], y[j][2*k+1] = tileFactor(uint16(word)), tileFactor(uint16(word>>16))
					}
				}
				for m := range rows {
					for j := range columns {
						sums[i][m][j] = TileDot(sums[i][m][j], &x[m], &y[j])
					}
				}
			}
		}
		for i, span := range s {
			for m := range rows {
				copy(unsafe.Slice(at(a.C, span.C+m*a.StepC), columns), sums[i][m][:])
			}
		}
	}
}

// turned exchanges the halves of the words that a Copy makes.
func turned[T float32 | uint16](copyWords func(dst *float32, src *T, rows, width, dstStride, srcStride int)) func(
	dst *float32, src *T, rows, width, dstStride, srcStride int) {
	return func(dst *float32, src *T, rows, width, dstStride, srcStride int) {
		copyWords(dst, src, rows, width, dstStride, srcStride)
		for r := range rows {
			words := unsafe.Slice((*uint32)(unsafe.Pointer(at(dst, r*dstStride))), (width+1)/2)
			for i, w := range words {
				words[i] = bits.RotateLeft32(w, 16)
			}
		}
	}
}

func squarePlain(dst, src *float32, dstStride, srcStride int) {
	for i := range TileRows {
		for j := range TileWidth {
			*at(dst, j*dstStride+4*i) = *at(src, i*srcStride+4*j)
		}
	}
}
