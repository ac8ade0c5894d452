package kern

import (
	"math/rand/v2"
	"slices"
	"testing"

	"onlinerna/internal/simd"
)

// packers runs f for the kernels that bring pixels into tiles, which need no AMX.
func packers(t *testing.T, f func(t *testing.T, k *Tiles)) {
	t.Run("plain", func(t *testing.T) { f(t, PlainTiles()) })
	t.Run("avx512", func(t *testing.T) {
		k := TilesFor(simd.AMX)
		if k == nil || simd.Best() != simd.AVX512 {
			t.Skip("needs AVX-512")
		}
		f(t, k)
	})
}

// somePixels are numbers of pixels, some of them negative.
func somePixels(r *rand.Rand, n, pixels int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(r.IntN(pixels+1)) - 1
	}
	list[r.IntN(n)] = int32(pixels - 1) // the last one ends memory
	return list
}

func TestTurn(t *testing.T) {
	packers(t, func(t *testing.T, k *Tiles) {
		r := rand.New(rand.NewPCG(3, 2))
		for _, c := range []struct{ blocks, channels, rows, gap int }{{1, 8, 8, 0}, {2, 40, 48, 3}, {3, 64, 64, 1}, {2, 16, 20, 0},
			{1, TileChannels, TileChannels, 0}} {
			const pixels = 50
			step := c.channels + c.gap
			src := codes(t, r, (pixels-1)*step+c.channels)
			list := somePixels(r, c.blocks*TileDepth, pixels)
			dst := marked[uint16](t, ((c.blocks-1)*c.rows+c.channels)*TileDepth, 7)
			k.Turn(&dst[0], &src[0], &list[0], c.blocks, c.channels, c.rows, 2*step)
			for i, got := range dst {
				row, p := i/TileDepth%c.rows, i/TileDepth/c.rows*TileDepth+i%TileDepth
				want := uint16(0)
				switch {
				case row >= c.channels:
					want = 7
				case list[p] >= 0:
					want = src[int(list[p])*step+row]
				}
				if got != want {
					t.Fatalf("%+v: element %d is %#x, want %#x", c, i, got, want)
				}
			}
		}
	})
}

func TestPairs(t *testing.T) {
	packers(t, func(t *testing.T, k *Tiles) {
		r := rand.New(rand.NewPCG(4, 2))
		const width = 2 * TileWidth
		for _, pairs := range []int{1, 2, 16, 37} {
			for _, columns := range []int{1, 7, 8, 16, 17, 31, 32, 33, 64, 90, TileChannels} {
				const pixels = 30
				step := columns + r.IntN(3)
				src := codes(t, r, (pixels-1)*step+columns)
				list := somePixels(r, 2*pairs, pixels)
				panel := pairs*width + 16
				panels := (columns + width - 1) / width
				dst := marked[uint32](t, panels*panel-16, 7)
				k.Pairs(&dst[0], &src[0], &list[0], pairs, columns, 2*step, 4*panel)
				element := func(p, j int) uint32 {
					if j >= columns || list[p] < 0 {
						return 0
					}
					return uint32(src[int(list[p])*step+j])
				}
				want := slices.Repeat([]uint32{7}, len(dst))
				for p := range pairs {
					for j := range panels * width {
						want[j/width*panel+p*width+PairOrder(j%width)] = element(2*p, j) | element(2*p+1, j)<<16
					}
				}
				for i, got := range dst {
					if got != want[i] {
						t.Fatalf("%d pairs of %d: word %d is %#x, want %#x", pairs, columns, i, got, want[i])
					}
				}
			}
		}
	})
}

// Order and Transpose write the columns of PairOrder, and nothing else.
func TestSumsOfPairs(t *testing.T) {
	if got := []int{PairOrder(0), PairOrder(5), PairOrder(8), PairOrder(31)}; !slices.Equal(got, []int{0, 17, 4, 31}) {
		t.Fatal(got)
	}
	const width = 2 * TileWidth
	packers(t, func(t *testing.T, k *Tiles) {
		for rows := 1; rows <= TileRows; rows++ {
			for columns := 1; columns <= 3*width; columns++ {
				const panel = TileRows*width + 3
				src := make([]float32, 3*panel)
				for i := range src {
					src[i] = float32(i)
				}
				check := func(name string, rows, columns int, sums func(dst *float32, stride int), place func(i, j int) int) {
					stride := columns + 1
					dst := marked[float32](t, rows*stride-1, -1)
					sums(&dst[0], 4*stride)
					for p, got := range dst {
						want := float32(-1)
						if i, j := p/stride, p%stride; j < columns {
							want = float32(place(i, j))
						}
						if got != want {
							t.Fatalf("%s, %d×%d: element %d is %v, want %v", name, rows, columns, p, got, want)
						}
					}
				}
				check("order", rows, columns, func(dst *float32, stride int) {
					k.Order(dst, &src[0], rows, columns, stride, 4*panel)
				}, func(i, j int) int { return j/width*panel + i*width + PairOrder(j%width) })
				if columns <= width {
					check("transpose", columns, rows, func(dst *float32, stride int) {
						k.Transpose(dst, &src[0], rows, columns, stride)
					}, func(j, i int) int { return i*width + PairOrder(j) })
				}
			}
		}
	})
}

func TestSquare(t *testing.T) {
	packers(t, func(t *testing.T, k *Tiles) {
		r := rand.New(rand.NewPCG(3, 5))
		const mark, from, to = 0.375, TileWidth + 3, TileRows + 5 // words from a row to the next
		src, dst := patterns(t, r, (TileRows-1)*from+TileWidth), marked[float32](t, (TileWidth-1)*to+TileRows, mark)
		k.Square(&dst[0], &src[0], 4*to, 4*from)
		want := slices.Repeat([]float32{mark}, len(dst))
		for i := range TileRows {
			for j := range TileWidth {
				want[j*to+i] = src[i*from+j]
			}
		}
		if err := same(dst, want); err != nil {
			t.Fatal(err)
		}
	})
}
