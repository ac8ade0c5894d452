package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"onlinerna/internal/simd"
)

// tileKernels runs f for the kernels that this machine has besides the definition.
func tileKernels(t *testing.T, f func(t *testing.T, k *Tiles)) {
	t.Run("amx", func(t *testing.T) {
		k := TilesFor(simd.AMX)
		if err := simd.LacksAMX(); err != nil || k == nil {
			t.Skip(err)
		}
		f(t, k)
	})
	t.Run("avx512", func(t *testing.T) {
		k := TilesByVectors()
		if k == nil {
			t.Skip("this processor or build has no AVX-512")
		}
		f(t, k)
	})
}

// Kernels have the bits of the definition for all extents of tiles, and write nothing else.
func TestTileProducts(t *testing.T) {
	tileKernels(t, func(t *testing.T, k *Tiles) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, c := range []struct{ rows, columns, pairs, depth int }{
			{16, 32, 1, 1}, {16, 32, 3, 5}, {14, 32, 2, 3}, {7, 17, 2, 4}, {1, 1, 1, 2}, {9, 16, 3, 2}, {16, 5, 2, 9}, {13, 31, 1, 1},
		} {
			tiles := 1
			if c.columns > TileWidth {
				tiles = 2
			}
			const stepA, stepC, guard = 80, 144, 64
			a := make([]uint16, 2*c.pairs*c.rows*stepA/2+c.depth*TileDepth+guard)
			b := make([]uint32, c.depth*TileWidth*tiles*TileWidth)
			for i := range a {
				a[i] = Bits(float32(r.NormFloat64()))
			}
			for i := range b {
				b[i] = uint32(Bits(float32(r.NormFloat64()))) | uint32(Bits(float32(r.NormFloat64())))<<16
			}
			for start := range 3 {
				results := make([]float32, 2*c.pairs*c.rows*stepC/4+guard)
				init := make([]float32, 2*TileWidth)
				for i := range results {
					results[i] = float32(r.NormFloat64())
				}
				for i := range init {
					init[i] = float32(r.NormFloat64())
				}
				args := &TileArgs{Config: Configure(c.rows, c.columns), A: &a[0], B: &b[0], Pairs: c.pairs, Depth: c.depth,
					StepA: stepA, StepC: stepC}
				if start == 1 {
					args.Init = &init[0]
				}
				if start == 2 {
					args.Add = 1
				}
				spans := make([][2]TileSpan, c.pairs)
				for i := range spans {
					for j := range 2 {
						n := r.IntN(len(spans)*2) * c.rows
						spans[i][j].A = n * stepA
						spans[i][j].C = (2*i + j) * c.rows * stepC
					}
				}
				steps := make([]TileStep, c.depth)
				for i := range steps {
					steps[i] = TileStep{2 * r.IntN(c.depth*TileDepth-TileDepth+1), 4 * r.IntN(c.depth) * TileWidth * tiles * TileWidth}
				}
				args.Spans, args.Steps = &spans[0], &steps[0]
				got, want := append([]float32(nil), results...), append([]float32(nil), results...)
				args.C = &got[0]
				k.Products[tiles](args)
				args.C = &want[0]
				PlainTiles().Products[tiles](args)
				for i := range got {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("%+v, start %d: element %d is %v, want %v", c, start, i, got[i], want[i])
					}
				}
			}
		}
	})
}

func BenchmarkTiles(b *testing.B) {
	if err := simd.LacksAMX(); err != nil {
		b.Skip(err)
	}
	k := TilesFor(simd.AMX)
	b.Run("peak", func(b *testing.B) {
		for range b.N {
			k.Peak(1000)
		}
		b.ReportMetric(float64(b.N)*4000*16*16*32/b.Elapsed().Seconds()/1e9, "GMAC/s")
	})
	for _, depth := range []int{2, 8, 32, 72} {
		const pairs = 8
		room := make([]byte, 1<<22)
		base := unsafe.Pointer(&room[-uintptr(unsafe.Pointer(&room[0]))&4095])
		spans := make([][2]TileSpan, pairs)
		for i := range spans {
			for j := range 2 {
				n := (2*i + j) * 16
				spans[i][j] = TileSpan{n * (64*depth + 64), n * 128}
			}
		}
		steps := make([]TileStep, depth)
		for i := range steps {
			steps[i] = TileStep{64 * i, 2048 * i}
		}
		args := &TileArgs{Config: Configure(16, 32), A: (*uint16)(base), B: (*uint32)(unsafe.Add(base, 1<<21)),
			C:     (*float32)(unsafe.Add(base, 3<<20)),
			Pairs: pairs, Depth: depth, StepA: 64*depth + 64, StepC: 128, Spans: &spans[0], Steps: &steps[0]}
		b.Run(fmt.Sprintf("depth %d", depth), func(b *testing.B) {
			for range b.N {
				k.Products[2](args)
			}
			b.ReportMetric(float64(b.N)*pairs*32*32*32*float64(depth)/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
	}
}
