package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"onlinerna/internal/guard"
	"onlinerna/internal/simd"
)

var nan = float32(math.NaN())

// guarded returns n random elements between guard bands of NaN.
func guarded(r *rand.Rand, n int) []float32 {
	const band = 64
	x := make([]float32, n+2*band)
	for i := range x {
		x[i] = nan
	}
	for i := range n {
		x[band+i] = 2*r.Float32() - 1
	}
	return x[band : band+n]
}

// ending returns a function that makes n random elements at the end of readable memory.
func ending(tb testing.TB) func(r *rand.Rand, n int) []float32 {
	return func(r *rand.Rand, n int) []float32 { return guard.Copy(tb, guarded(r, n)) }
}

func eachSet(t *testing.T, f func(t *testing.T, s *Set)) {
	for _, l := range simd.All() {
		if s := For(l); s != nil {
			t.Run(l.String(), func(t *testing.T) { f(t, s) })
		}
	}
}

func TestKernels(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		for vectors := 1; vectors <= 2; vectors++ {
			for rows := 1; rows <= s.Rows; rows++ {
				for _, depth := range []int{1, 3, 4, 9, 18} {
					for _, taps := range []int{1, 3} {
						columns := vectors * s.Lanes
						for _, n := range []int{columns, columns - 1, columns - 2, columns - s.Lanes + 1} {
							c := check{set: s, vectors: vectors, rows: rows, depth: depth, taps: taps, n: n}
							kinds := []string{"products", "sums"}
							if vectors == 1 && depth%2 == 0 {
								kinds = append(kinds, "pairs")
							}
							for _, c.kind = range kinds {
								for _, c.from = range []string{"", "C", "other"} {
									for _, c.relu = range []int{0, 1} {
										if err := c.run(guarded); err != nil {
											t.Fatalf("%+v: %v", c, err)
										}
									}
								}
							}
						}
					}
				}
			}
		}
	})
}

// TestKernelEnds has operands at the end of readable memory, and TestKernelZeros results of −0.
func TestKernelEnds(t *testing.T)  { eachEnd(t, check{taps: 2, relu: 1}) }
func TestKernelZeros(t *testing.T) { eachEnd(t, check{taps: 1, relu: 1, zeros: true}) }

// eachEnd runs c for tiles of all kinds and sizes.
func eachEnd(t *testing.T, c check) {
	eachSet(t, func(t *testing.T, s *Set) {
		c := c
		c.set = s
		for c.vectors = 1; c.vectors <= 2; c.vectors++ {
			for c.rows = 1; c.rows <= s.Rows; c.rows++ {
				for _, c.depth = range []int{2, 5, 6} {
					for _, c.n = range []int{c.vectors * s.Lanes, c.vectors*s.Lanes - 2, c.vectors*s.Lanes - s.Lanes + 1} {
						kinds := []string{"products", "sums"}
						if c.vectors == 1 && c.depth%2 == 0 {
							kinds = append(kinds, "pairs")
						}
						for _, c.kind = range kinds {
							for _, c.from = range []string{"", "other"} {
								if err := c.run(ending(t)); err != nil {
									t.Fatalf("%+v: %v", c, err)
								}
							}
						}
					}
				}
			}
		}
	})
}

// check is a call of a kernel.
type check struct {
	set                           *Set
	vectors, rows, depth, taps, n int
	kind                          string
	from                          string // the source of the addend
	relu                          int
	zeros                         bool // products so small that they are −0, and the addend too
}

// run calls the kernel on operands from source.
func (c check) run(source func(r *rand.Rand, n int) []float32) error {
	r := rand.New(rand.NewPCG(1, uint64(c.rows)))
	columns := c.vectors * c.set.Lanes
	const gap = 5
	width := c.depth // of a row of A
	lines := c.rows
	sum := c.kind == "sums"
	if sum {
		width, lines = c.rows, c.depth
	}
	step := width + gap
	stepC := c.n + gap
	// The rows from Half on have a gap before them.
	jumpA, jumpC := Half*step+3, Half*stepC+2
	row := func(m, step, jump int) int {
		if m >= Half {
			return jump + (m-Half)*step
		}
		return m * step
	}
	size := lines*step + 3
	last := row(c.rows-1, step, jumpA) + c.depth
	if sum {
		last = (c.depth-1)*step + c.rows
	}
	a := source(r, (c.taps-1)*size+last)
	b := source(r, c.taps*c.depth*columns)
	dst := guarded(r, row(c.rows-1, stepC, jumpC)+c.n)
	init := source(r, columns)
	offs := make([]int, c.taps)
	for i := range offs {
		offs[i] = 4 * size * (c.taps - 1 - i)
	}
	at := func(t, m, k int) float32 {
		if sum {
			return a[offs[t]/4+k*step+m]
		}
		return a[offs[t]/4+row(m, step, jumpA)+k]
	}
	other := source(r, len(dst))
	if c.zeros {
		fill(a, 1e-30)
		fill(b, -1e-30)
		fill(init, float32(math.Copysign(0, -1)))
		fill(other, init[0])
	}
	var from []float32
	switch c.from {
	case "C":
		from = dst
	case "other":
		from = other
	}
	inside := make([]bool, len(dst))
	want := make([]float64, len(dst))
	for m := range c.rows {
		for j := range c.n {
			i := row(m, stepC, jumpC) + j
			inside[i] = true
			want[i] = float64(init[j])
			if from != nil {
				want[i] += float64(from[i])
			}
			for t := range c.taps {
				for k := range c.depth {
					want[i] += float64(at(t, m, k)) * float64(b[(t*c.depth+k)*columns+j])
				}
			}
		}
	}
	if c.relu != 0 {
		for i, v := range want {
			want[i] = max(v, 0)
		}
	}
	before := append([]float32(nil), dst...)
	kernel := c.set.Products[c.vectors][c.rows]
	if sum {
		kernel = c.set.Sums[c.vectors][c.rows]
	}
	args := &Args{
		A: &a[0], B: &b[0], C: &dst[0], Init: &init[0], Mask: Mask(c.n), Offs: &offs[0], Taps: c.taps, Depth: c.depth,
		StepA: 4 * step, JumpA: 4 * jumpA, StepC: 4 * stepC, JumpC: 4 * jumpC, ReLU: c.relu,
	}
	if from != nil {
		args.From = &from[0]
	}
	if c.kind == "pairs" {
		kernel = c.set.Pairs[c.rows]
		c.set.Interleave(&b[0], c.taps*c.depth/2)
		args.Depth /= 2
	}
	ahead := c.rows // lines to prefetch
	args.Ahead, args.AheadStep, args.AheadLines = unsafe.Pointer(&a[0]), 64, ahead
	kernel(args)
	if n, steps := ahead-args.AheadLines, args.Taps*args.Depth; n > steps || n < args.Taps*(args.Depth/4) {
		return fmt.Errorf("%d steps count %d lines", steps, n)
	}
	for i, x := range dst {
		if !inside[i] {
			if x != before[i] {
				return fmt.Errorf("wrote element %d", i)
			}
			continue
		}
		if d := math.Abs(float64(x) - want[i]); !(d < 1e-5) {
			return fmt.Errorf("element %d is %v, want %v", i, x, want[i])
		}
		if c.zeros && math.Float32bits(x) != 1<<31 {
			return fmt.Errorf("element %d is %v, want −0", i, x)
		}
	}
	return guards(dst)
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}

// guards reports damage to the guard band behind x.
func guards(x []float32) error {
	for i, v := range x[len(x) : len(x)+16] {
		if v == v {
			return fmt.Errorf("wrote %d elements behind the end", i+1)
		}
	}
	return nil
}

func TestCopy(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(2, 2))
		for width := 1; width < 3*s.Lanes; width++ {
			for _, rows := range []int{1, 3} {
				whole := s.Vectors(width) * s.Lanes
				src, dst := ending(t)(r, rows*(width+1)-1), guarded(r, (rows-1)*(whole+2)+whole)
				before := append([]float32(nil), dst...)
				s.Copy(&dst[0], &src[0], rows, width, 4*(whole+2), 4*(width+1))
				for i, x := range dst {
					want := before[i]
					if p, q := i/(whole+2), i%(whole+2); q < width {
						want = src[p*(width+1)+q]
					} else if q < whole {
						want = 0
					}
					if x != want {
						t.Fatalf("%d × %d: element %d is %v, want %v", rows, width, i, x, want)
					}
				}
				if err := guards(dst); err != nil {
					t.Fatalf("%d × %d: %v", rows, width, err)
				}
			}
		}
	})
}

func TestPack(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(2, 4))
		for _, p := range []struct {
			width, more int // of a panel; read and written behind it
			pack        func(dst, src *float32, rows, panels, panelStride, srcStride int)
		}{{2 * s.Lanes, 0, s.Pack}, {s.Rows, s.Lanes - s.Rows, s.PackRows}} {
			for _, rows := range []int{1, 3, 14} {
				for _, panels := range []int{1, 2, 5} {
					stride, panel := panels*p.width+p.more+3, rows*p.width+p.more
					src, dst := ending(t)(r, rows*stride-3), guarded(r, panels*panel)
					p.pack(&dst[0], &src[0], rows, panels, 4*panel, 4*stride)
					for i, x := range dst {
						j, row, column := i/panel, i%panel/p.width, i%panel%p.width
						if row == rows {
							continue // behind a panel
						}
						if want := src[row*stride+j*p.width+column]; x != want {
							t.Fatalf("%d rows, %d panels of %d: element %d is %v, want %v", rows, panels, p.width, i, x, want)
						}
					}
					if err := guards(dst); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
}

func TestTranspose(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(2, 5))
		for _, n := range []int{1, 4, 7, 8, 9, 13, 16} {
			for _, length := range []int{1, 7, 8, 9, 24, 129, 300} {
				stride, width := length+3, 8*((n+7)/8)
				src, dst := ending(t)(r, n*stride-3), guarded(r, length*width)
				s.Transpose(dst, width, src, stride, n, length)
				for i, x := range dst {
					want := float32(0)
					if j := i % width; j < n {
						want = src[j*stride+i/width]
					}
					if x != want {
						t.Fatalf("%d rows of %d: element %d is %v, want %v", n, length, i, x, want)
					}
				}
				if err := guards(dst); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func TestAdd(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(2, 3))
		for n := 1; n < 3*s.Lanes; n++ {
			src, dst := ending(t)(r, n), guarded(r, n)
			before := append([]float32(nil), dst...)
			s.Add(&dst[0], &src[0], n)
			for i, x := range dst {
				if x != before[i]+src[i] {
					t.Fatalf("%d: element %d is %v, want %v", n, i, x, before[i]+src[i])
				}
			}
			if err := guards(dst); err != nil {
				t.Fatalf("%d: %v", n, err)
			}
		}
	})
}
