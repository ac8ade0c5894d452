package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// The matrices of F(4×4, 3×3) with the points 0, ±5/8, ±3/2 and ∞, from their definition.
func winogradMatrices() (source, result, weight [][]float64) {
	points := []float64{0, 5. / 8, -5. / 8, 3. / 2, -3. / 2}
	product := func(but int) (c []float64, at float64) { // ∏ (x − q), and its value at the point left out
		c, at = []float64{1}, 1
		for i, q := range points {
			if i == but {
				continue
			}
			next := make([]float64, len(c)+1)
			for j, v := range c {
				next[j+1] += v
				next[j] -= q * v
			}
			c = next
			if but >= 0 {
				at *= points[but] - q
			}
		}
		return append(c, make([]float64, Window-len(c))...), at
	}
	source, weight = make([][]float64, Window), make([][]float64, Window)
	result = make([][]float64, TileResults)
	for i := range result {
		result[i] = make([]float64, Window)
	}
	for i, p := range points {
		var at float64
		source[i], at = product(i)
		weight[i] = []float64{1 / at, p / at, p * p / at}
		for j := range result {
			result[j][i] = math.Pow(p, float64(j))
		}
	}
	source[Window-1], _ = product(-1)
	weight[Window-1] = []float64{0, 0, 1}
	result[TileResults-1][Window-1] = 1
	return source, result, weight
}

func transposed(m [][]float64) [][]float64 {
	t := make([][]float64, len(m[0]))
	for i := range t {
		for _, row := range m {
			t[i] = append(t[i], row[i])
		}
	}
	return t
}

// sandwich is m x mᵀ.
func sandwich(m, x [][]float64) [][]float64 {
	times := func(a, b [][]float64) [][]float64 {
		c := make([][]float64, len(a))
		for i := range a {
			c[i] = make([]float64, len(b[0]))
			for j := range c[i] {
				for k := range b {
					c[i][j] += a[i][k] * b[k][j]
				}
			}
		}
		return c
	}
	return times(times(m, x), transposed(m))
}

func TestWinogradSpread(t *testing.T) {
	source, result, weight := winogradMatrices()
	eachSet(t, func(t *testing.T, s *Set) {
		w := s.Winograd
		for _, k := range []struct {
			name string
			run  func(*Spread)
			m    [][]float64
		}{{"source", w.Source, source}, {"grad", w.Grad, transposed(result)}, {"weight", w.Weight, weight}} {
			for n := 1; n <= s.Lanes; n++ {
				for tiles := 1; tiles <= 3; tiles++ {
					if err := checkSpread(s, k.run, k.m, n, tiles, ending(t)); err != nil {
						t.Fatalf("%s, %d channels, %d tiles: %v", k.name, n, tiles, err)
					}
				}
			}
		}
	})
}

// operand makes n elements of a transform's input.
type operand = func(r *rand.Rand, n int) []float32

func checkSpread(s *Set, run func(*Spread), m [][]float64, n, tiles int, source operand) error {
	r := rand.New(rand.NewPCG(4, uint64(n)))
	in := len(m[0])
	columns := (tiles-1)*TileResults + in
	pixel := n + 3
	line := columns*pixel + 5
	const before = 1 // columns outside the image
	src := source(r, (in-1)*line+(columns-1)*pixel+n)
	scratch := guarded(r, columns*ColumnVectors*s.Lanes)
	for i := range before * ColumnVectors * s.Lanes {
		scratch[i] = 0
	}
	stepT, stepP := s.Lanes+16, tiles*(s.Lanes+16)+32
	dst := guarded(r, (Window*Window-1)*stepP+(tiles-1)*stepT+s.Lanes)
	a := &Spread{
		Columns: columns - before, StepC: 4 * pixel, Mask: Mask(n), To: &scratch[before*ColumnVectors*s.Lanes],
		Scratch: &scratch[0], Tiles: tiles, Dst: &dst[0], StepT: 4 * stepT, StepP: 4 * stepP,
	}
	for i := range in {
		a.Rows[i] = &src[i*line+before*pixel]
	}
	run(a)
	for tile := range tiles {
		for c := range s.Lanes {
			x := make([][]float64, in)
			for i := range x {
				x[i] = make([]float64, in)
				for j := range x[i] {
					if at := tile*TileResults + j; at >= before && c < n {
						x[i][j] = float64(src[i*line+at*pixel+c])
					}
				}
			}
			for i, row := range sandwich(m, x) {
				for j, want := range row {
					got := dst[(i*Window+j)*stepP+tile*stepT+c]
					if d := math.Abs(float64(got) - want); !(d < 1e-5) {
						return fmt.Errorf("value %d, %d of channel %d of tile %d is %v, want %v", i, j, c, tile, got, want)
					}
				}
			}
		}
	}
	if err := guards(dst); err != nil {
		return err
	}
	return guards(scratch)
}

func TestWinogradCollect(t *testing.T) {
	_, result, weight := winogradMatrices()
	eachSet(t, func(t *testing.T, s *Set) {
		for _, k := range []struct {
			name string
			run  [2]func(*Collect)
			m    [][]float64
		}{{"result", s.Winograd.Result, result}, {"weight", s.Winograd.WeightGrad, transposed(weight)}} {
			for n := 1; n <= s.Lanes; n++ {
				for _, size := range [][2]int{{1, 1}, {2, 3}, {4, 4}, {3, 5}, {4, 10}} {
					rows, columns := min(size[0], len(k.m)), size[1]
					for _, add := range []bool{false, true} {
						for _, clip := range []bool{false, true} {
							runs := []func(*Collect){k.run[1]}
							if n == s.Lanes {
								runs = k.run[:]
							}
							for _, run := range runs {
								if err := checkCollect(s, run, k.m, n, rows, columns, add, clip, ending(t)); err != nil {
									t.Fatalf("%s, %d channels, %d×%d, add %v, clip %v: %v", k.name, n, rows, columns, add, clip, err)
								}
							}
						}
					}
				}
			}
		}
	})
}

func checkCollect(s *Set, run func(*Collect), m [][]float64, n, rows, columns int, add, clip bool,
	source operand) error {
	r := rand.New(rand.NewPCG(5, uint64(n)))
	out := len(m)
	tiles := (columns + out - 1) / out
	stepT, stepP := s.Lanes+16, tiles*(s.Lanes+16)+32
	src := source(r, (Window*Window-1)*stepP+(tiles-1)*stepT+s.Lanes)
	pixel := n + 3
	line := columns*pixel + 5
	dst := guarded(r, (rows-1)*line+(columns-1)*pixel+n)
	before := append([]float32(nil), dst...)
	from, bias, scratch := source(r, len(dst)), source(r, s.Lanes), guarded(r, 24*s.Lanes)
	a := &Collect{
		Src: &src[0], StepT: 4 * stepT, StepP: 4 * stepP, Scratch: &scratch[0],
		Dst: &dst[0], StepRow: 4 * line, StepC: 4 * pixel, StepTile: 4 * out * pixel, Rows: rows, Columns: columns,
		Bias: &bias[0], Floor: &Lowest[0], Mask: Mask(n),
	}
	if add {
		a.From = &from[0]
	}
	if clip {
		a.Floor = &Zeros[0]
	}
	run(a)
	inside := make([]bool, len(dst))
	for tile := range tiles {
		for c := range n {
			x := make([][]float64, Window)
			for i := range x {
				for j := range Window {
					x[i] = append(x[i], float64(src[(i*Window+j)*stepP+tile*stepT+c]))
				}
			}
			for i, row := range sandwich(m, x) {
				for j, want := range row {
					if i >= rows || tile*out+j >= columns {
						continue
					}
					at := i*line + (tile*out+j)*pixel + c
					inside[at] = true
					want += float64(bias[c])
					if add {
						want += float64(from[at])
					}
					if clip {
						want = max(want, 0)
					}
					if d := math.Abs(float64(dst[at]) - want); !(d < 1e-4) {
						return fmt.Errorf("result %d, %d of channel %d of tile %d is %v, want %v", i, j, c, tile, dst[at], want)
					}
				}
			}
		}
	}
	for i, x := range dst {
		if !inside[i] && x != before[i] {
			return fmt.Errorf("wrote element %d", i)
		}
	}
	if err := guards(dst); err != nil {
		return err
	}
	return guards(scratch)
}

// TestWinogradCollectZeros has results of −0, which are not below a floor of 0.
func TestWinogradCollectZeros(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		for _, k := range []struct {
			name     string
			run      [2]func(*Collect)
			negative func(i, j int) bool // the values of a tile that are −0, so that some results are −0
		}{
			{"result", s.Winograd.Result, func(i, j int) bool { return true }},
			{"weight", s.Winograd.WeightGrad, func(i, j int) bool { return i >= 3 && j >= 3 }},
		} {
			for i, run := range k.run {
				src, zeros := make([]float32, Window*Window*s.Lanes), make([]float32, TileResults*TileResults*s.Lanes)
				negative := float32(math.Copysign(0, -1))
				for at := range src {
					if value := at / s.Lanes; k.negative(value/Window, value%Window) {
						src[at] = negative
					}
				}
				fill(zeros, negative)
				scratch := make([]float32, 24*s.Lanes)
				results := func(floor *float32) []float32 {
					dst := make([]float32, len(zeros))
					run(&Collect{
						Src: &src[0], StepP: 4 * s.Lanes, Scratch: &scratch[0], Dst: &dst[0], StepRow: 4 * TileResults * s.Lanes,
						StepC: 4 * s.Lanes, Rows: 3, Columns: 3, From: &zeros[0], Bias: &zeros[0], Floor: floor, Mask: Mask(s.Lanes),
					})
					return dst
				}
				kept, free := 0, results(&Lowest[0])
				for at, x := range results(&Zeros[0]) {
					if math.Float32bits(x) != math.Float32bits(free[at]) {
						t.Fatalf("%s %d: element %d is %v, without a floor %v", k.name, i, at, x, free[at])
					}
					if math.Signbit(float64(x)) {
						kept++
					}
				}
				if kept == 0 {
					t.Errorf("%s %d: no result is −0", k.name, i)
				}
			}
		}
	})
}
