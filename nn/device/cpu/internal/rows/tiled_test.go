package rows

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
)

// tiledKernels are those with which attention can multiply in tiles here, the definition first.
func tiledKernels() map[string]Kernels {
	k := map[string]Kernels{"definition": KernelsFor(simd.Go, kern.PlainTiles())}
	if t := kern.TilesByVectors(); t != nil {
		k["vectors"] = KernelsFor(simd.AVX512, t)
	}
	if simd.LacksAMX() == nil {
		k["amx"] = KernelsFor(simd.AMX, kern.TilesFor(simd.AMX))
	}
	return k
}

// opened returns a worker's multiplier with room for the factors, the memory of a packed factor, and a function that
// reports whether memory beside these is as it was.
func opened(t *testing.T, k Kernels, rows, depth, wide, packed int) (multiplier, []float32, func() bool) {
	t.Helper()
	var r work.Room
	room, part := k.tiledRoom(&r, 1, rows, depth, wide), r.Floats(packed)
	m, err := device.NewHostMemory(r.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Free() })
	region := device.Region{Memory: m, Bytes: r.Bytes}
	all, err := device.HostSlice[float32](region)
	if err != nil {
		t.Fatal(err)
	}
	nan := math.Float32bits(float32(math.NaN()))
	for i := range all {
		all[i] = math.Float32frombits(nan) // leftovers of other kernels must not matter
	}
	bound := &lower.Bound[work.Kernel]{Lowering: new(lower.Lowering[work.Kernel]), Workspace: region}
	s := work.NewStorage(bound, nil, simd.Go)
	ours := make([]bool, len(all))
	for _, p := range []work.Part{room.left[0], room.turned[0], room.room[0], part} {
		x := s.Scratch(p)
		for i := range x {
			ours[(uintptr(unsafe.Pointer(&x[i]))-uintptr(unsafe.Pointer(&all[0])))/4] = true
		}
	}
	return k.multiplier(s, room, 0), s.Scratch(part), func() bool {
		for i, v := range all {
			if !ours[i] && math.Float32bits(v) != nan {
				return false
			}
		}
		return true
	}
}

// Products in tiles are those of rounded factors, with the same bits in all ways, and write nothing else.
func TestTiledProducts(t *testing.T) {
	cases := []struct{ rows, depth, n, gap int }{
		{1, 1, 1, 0}, {17, 5, 3, 2}, {16, 32, 16, 0}, {33, 64, 32, 1}, {50, 33, 17, 4}, {47, 64, 65, 7}, {7, 197, 48, 0},
		{69, 96, 197, 128}, {kern.TileChannels + 20, 33, 17, 0},
	}
	if testing.Short() {
		cases = cases[:5]
	}
	for _, c := range cases {
		for _, outer := range []bool{false, true} {
			for _, transposed := range []bool{false, true} {
				for _, add := range []bool{false, true} {
					name := fmt.Sprintf("%d·%d·%d, outer %v, transposed %v, add %v", c.rows, c.depth, c.n, outer, transposed, add)
					var definition []float32
					kernels := tiledKernels()
					for _, way := range []string{"definition", "vectors", "amx"} {
						k, ok := kernels[way]
						if !ok {
							continue
						}
						r := rand.New(rand.NewPCG(uint64(c.rows), uint64(c.n)))
						random := func(rows, width int) ([]float32, int) {
							x := make([]float32, (rows-1)*(width+c.gap)+width)
							for i := range x {
								x[i] = float32(r.NormFloat64())
							}
							return x, width + c.gap
						}
						high, wide, turned := c.rows, c.depth, 0 // of a in memory
						if outer {
							high, wide, turned = c.depth, c.rows, c.rows
						}
						a, lda := random(high, wide)
						tall, broad := c.depth, c.n // of b in memory
						if transposed {
							tall, broad = c.n, c.depth
						}
						b, ldb := random(tall, broad)
						got, ldc := random(c.rows, c.n)
						want := slices.Clone(got)
						m, packed, clean := opened(t, k, high, wide, turned, k.packedSize(c.depth, c.n))
						pack, product := m.pack, m.product
						if transposed {
							pack = m.packTransposed
						}
						if outer {
							product = m.outer
						}
						product(got, ldc, a, lda, c.rows, pack(packed, b, ldb, c.depth, c.n), add)
						for i := range c.rows {
							for j := range c.n {
								sum, size := 0., 0.
								if add {
									sum = float64(want[i*ldc+j])
									size = math.Abs(sum)
								}
								for d := range c.depth {
									x, y := a[min(i*lda+d, len(a)-1)], b[min(d*ldb+j, len(b)-1)]
									if outer {
										x = a[d*lda+i]
									}
									if transposed {
										y = b[j*ldb+d]
									}
									p := float64(kern.Round(x)) * float64(kern.Round(y))
									sum, size = sum+p, size+math.Abs(p)
								}
								if e := math.Abs(float64(got[i*ldc+j]) - sum); !(e <= 1e-6*size) {
									t.Fatalf("%s, %s: element %d,%d is %v, want %v", name, way, i, j, got[i*ldc+j], sum)
								}
								want[i*ldc+j] = got[i*ldc+j]
							}
						}
						if !slices.Equal(got, want) || !clean() {
							t.Errorf("%s, %s: wrote between the rows, or beside its memory", name, way)
						}
						if definition == nil {
							definition = got
						} else if !slices.Equal(got, definition) {
							t.Errorf("%s: %s has other bits than the definition", name, way)
						}
					}
				}
			}
		}
	}
}

// Products allocate nothing: they run thousands of times a step.
func TestTiledProductsAllocateNothing(t *testing.T) {
	const rows, depth, n = 33, 64, 50 // plain Go allocates zeros behind the depth
	for way, k := range tiledKernels() {
		m, packed, _ := opened(t, k, depth, rows, rows, k.packedSize(depth, n))
		a, b, c := make([]float32, depth*rows), make([]float32, depth*n), make([]float32, rows*n)
		allocated := testing.AllocsPerRun(10, func() {
			m.outer(c, n, a, rows, rows, m.pack(packed, b, n, depth, n), true)
			m.product(c, n, a, rows, 8, m.packTransposed(packed, b, depth, rows, n), false)
		})
		if allocated > 0 {
			t.Errorf("%s: %v allocations", way, allocated)
		}
	}
}
