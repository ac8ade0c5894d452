package extrapolate

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"onlinerna/internal/files"
	"onlinerna/train/safetensors"
)

// scaling is the scale of an eight-bit tensor, itself a tensor: numbers are elements times the scale of their block. A
// scale holds one number for the whole, one for each row, or one for each block of rows and columns, as those of
// DeepSeek, compressed-tensors and ModelOpt do.
type scaling struct {
	Tensor
	in    []Tensor // by file
	shape []int    // of the numbers
	block []int    // elements in each dimension that share a scale
	grid  []int    // blocks in each dimension
}

// scaleNames are the possible names of a tensor's scale.
func scaleNames(name string) []string {
	list := []string{name + "_scale_inv", name + "_scale", name + ".scale"}
	if base, ok := strings.CutSuffix(name, ".weight"); ok {
		list = append(list, base+".scale", base+".scale_weight")
	}
	return list
}

// packed are endings of quantised numbers that are not combined, and of their scales.
var packed = [][2]string{{"", "_scale"}, {"", "_scale_inv"}, {"qweight", "scales"}, {"_packed", "_scale"},
	{"_blocks", "_scales"}, {"", ".absmax"}, {"weight", "SCB"}}

// quantised finds integers that mean numbers, by the tensor with their scales.
func quantised(c *Checkpoint) (name, scale string) {
	for _, t := range c.Tensors {
		if t.DType.Number() {
			continue
		}
		for _, p := range packed {
			if base, ok := strings.CutSuffix(t.Name, p[0]); ok && base+p[1] != t.Name {
				if _, ok := c.Lookup(base + p[1]); ok {
					return t.Name, base + p[1]
				}
			}
		}
	}
	return "", ""
}

// activations are scales of activations, not of weights: they were measured, and are the last file's.
var activations = []string{"input_scale", "input_scale_inv", "output_scale", "q_scale", "k_scale", "v_scale"}

// pairScales gives eight-bit columns their scales.
func (s *Series) pairScales() error {
	by := map[string]int{}
	for i, c := range s.tensors {
		by[c.Name] = i
	}
	any := false
	for i := range s.tensors {
		c := &s.tensors[i]
		if c.DType != safetensors.F8E4M3 && c.DType != safetensors.F8E5M2 {
			continue
		}
		for _, name := range scaleNames(c.Name) {
			if k, ok := by[name]; ok {
				scale := &s.tensors[k]
				var err error
				if c.scale, err = newScaling(c, scale, blockSize(s.files[len(s.files)-1])); err != nil {
					return fmt.Errorf("%s: %w", s.files[len(s.files)-1].Path, err)
				}
				scale.Role, any = Scale, true
				break
			}
			for _, f := range s.files {
				if _, ok := f.Lookup(name); ok { // left out of a loose series, or not a number
					return fmt.Errorf("%s: %s has a scale, %s, which other files lack", f.Path, c.Name, name)
				}
			}
		}
	}
	for i := range s.tensors {
		c := &s.tensors[i]
		if parts := strings.Split(c.Name, "."); any && slices.Contains(activations, parts[len(parts)-1]) {
			c.Role = Copied
		}
	}
	return nil
}

// blockSize is the size of blocks in the model's configuration beside a checkpoint; nil if it has none.
func blockSize(c *Checkpoint) []int {
	dir := c.Path
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		dir = filepath.Dir(dir)
	}
	b, err := files.ReadFileAtMost(filepath.Join(dir, "config.json"), 1<<20)
	if err != nil {
		return nil
	}
	var config struct {
		Quantization struct {
			Block []int `json:"weight_block_size"`
		} `json:"quantization_config"`
	}
	if json.Unmarshal(b, &config) != nil {
		return nil
	}
	return config.Quantization.Block
}

// newScaling finds the blocks of a scale. Those of configured size are tried first, then DeepSeek's of 128.
func newScaling(c, scale *column, configured []int) (*scaling, error) {
	sc := &scaling{Tensor: scale.Tensor, in: scale.in, shape: c.Shape, grid: scale.Shape}
	if !scale.DType.Float() && scale.DType != e8m0 {
		return nil, fmt.Errorf("scale %s of %s: want floating-point numbers", scale.Name, scale.DType)
	}
	if len(sc.shape) == 0 {
		sc.shape = []int{1}
	}
	dims := len(sc.shape)
	switch {
	case scale.n == 1:
		sc.grid = slices.Repeat([]int{1}, dims)
	case len(sc.grid) == 1:
		sc.grid = append(slices.Clone(sc.grid), slices.Repeat([]int{1}, dims-1)...)
	}
	bad := fmt.Errorf("scale %s%v does not fit %s%v", scale.Name, scale.Shape, c.Name, c.Shape)
	if len(sc.grid) != dims {
		return nil, bad
	}
	for i, g := range sc.grid {
		n := sc.shape[i]
		sizes := []int{128}
		if k := i - dims + len(configured); k >= 0 && configured != nil {
			sizes = []int{configured[k], 128}
		}
		if g < 1 || g > max(n, 1) {
			return nil, bad
		}
		if n%g == 0 && (g == 1 || g == n || n/g&(n/g-1) == 0) {
			sizes = append(sizes, max(n/g, 1))
		}
		if g == 1 || g == n {
			sizes = []int{max(n/g, 1)}
		}
		at := slices.IndexFunc(sizes, func(b int) bool { return b > 0 && (n+b-1)/b == max(g, 1) || n == 0 })
		if at < 0 {
			return nil, fmt.Errorf("%w: neither blocks of 128 nor of a power of two, and no weight_block_size in config.json", bad)
		}
		sc.block = append(sc.block, sizes[at])
	}
	return sc, nil
}

// runs calls visit for elements at to at+n, counted from off, that share the scale k.
func (sc *scaling) runs(off, n int, visit func(at, n, k int)) {
	last := len(sc.shape) - 1
	width, block := sc.shape[last], sc.block[last]
	for at := 0; at < n; {
		k, unit := 0, sc.grid[last] // of the row's first block
		for i, row := last-1, (off+at)/width; i >= 0; i-- {
			k += row % sc.shape[i] / sc.block[i] * unit
			row, unit = row/sc.shape[i], unit*sc.grid[i]
		}
		for col := (off + at) % width; col < width && at < n; {
			own := min(block-col%block, width-col, n-at)
			visit(at, own, k+col/block)
			at, col = at+own, col+own
		}
	}
}

// within bounds the scales of elements off to off+n.
func (sc *scaling) within(off, n int) (from, to int) {
	inner, row := 1, 1
	for i := 1; i < len(sc.shape); i++ {
		inner, row = inner*sc.shape[i], row*sc.grid[i]
	}
	return off / inner / sc.block[0] * row, ((off+n-1)/inner/sc.block[0] + 1) * row
}

// e8m0 is the type of scales that are powers of two: 2^(code − 127), with 255 for NaN.
const e8m0 safetensors.DType = "F8_E8M0"

func decodeScales(dst []float64, b []byte, t safetensors.DType) error {
	if t != e8m0 {
		return safetensors.Decode(dst, b, t)
	}
	for i, c := range b {
		if dst[i] = math.Ldexp(1, int(c)-127); c == 255 {
			dst[i] = math.NaN()
		}
	}
	return nil
}

// encodeScale writes the smallest scale of a type that lets numbers up to most be written with elements up to largest,
// or a little less, which rounding makes up for; and returns it.
func encodeScale(b []byte, most, largest float64, t safetensors.DType) (float64, error) {
	want := most / largest
	if most == 0 {
		want = 1
	}
	if t == e8m0 {
		f, e := math.Frexp(want)
		if f == 0.5 {
			e--
		}
		b[0] = byte(min(max(e+127, 0), 254))
		return math.Ldexp(1, int(b[0])-127), nil
	}
	value := []float64{0}
	for up := 1.0; ; up *= 1 + 1.0/64 {
		bad, err := safetensors.Encode(b, []float64{want * up}, t)
		if err == nil {
			err = safetensors.Decode(value, b, t)
		}
		if err != nil || bad >= 0 {
			return 0, fmt.Errorf("a scale of %v, which %s cannot hold (%v)", want, t, err)
		}
		if value[0]*largest*(1+1.0/64) >= most && value[0] > 0 {
			return value[0], nil
		}
		if want*up == 0 {
			want = math.SmallestNonzeroFloat32
		}
	}
}

// scales reads the scales that a span needs in a file. The first has the number from.
func (r *reader) scales(sp span, file int) (list []float64, from int, err error) {
	sc := sp.column.scale
	from, to := sc.within(sp.off, sp.n)
	b := make([]byte, (to-from)*sc.DType.Size())
	if b, err = r.series.files[file].elements(b, sc.in[file], from, to-from); err != nil {
		return nil, 0, err
	}
	r.factors = slices.Grow(r.factors[:0], to-from)[:to-from]
	return r.factors, from, decodeScales(r.factors, b, sc.DType)
}

// unscale multiplies the values of a span by their scales.
func (r *reader) unscale(values []float64, sp span, file int) error {
	list, from, err := r.scales(sp, file)
	if err != nil {
		return err
	}
	sp.column.scale.runs(sp.off, sp.n, func(at, n, k int) {
		f := list[k-from]
		for i := range values[at : at+n] {
			values[at+i] *= f
		}
	})
	return nil
}

// rescale finds the scales of a combined tensor: the largest number of a block becomes the largest element. It combines
// all of the tensor, without writing it.
func (s *Series) rescale(ctx context.Context, c *column, rule Rule, opt WriteOptions, workers []*combiner) (*rescaled, error) {
	sc := c.scale
	most := make([]atomic.Uint32, sc.n) // as float32
	spans := s.cut(c)
	opt.Meter = nil
	err := forEach(ctx, len(spans), len(workers), func(worker, i int) error {
		w := s.combiner(workers, worker)
		values, err := w.numbers(spans[i], rule, opt)
		if err != nil {
			return err
		}
		bad := -1
		sc.runs(spans[i].off, spans[i].n, func(at, n, k int) {
			own := 0.0
			for i, v := range values[at : at+n] {
				if v = math.Abs(v); v > own {
					own = v
				} else if v != v && bad < 0 {
					bad = at + i
				}
			}
			bits := math.Float32bits(float32(own))
			for old := most[k].Load(); bits > old && !most[k].CompareAndSwap(old, bits); old = most[k].Load() {
			}
		})
		if bad >= 0 {
			return fmt.Errorf("element %d of tensor %q would be NaN: leave the file with it out", spans[i].off+bad, c.Name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	largest := map[safetensors.DType]float64{safetensors.F8E4M3: 448, safetensors.F8E5M2: 57344}[c.DType]
	r := &rescaled{bytes: make([]byte, sc.n*sc.DType.Size()), values: make([]float64, sc.n)}
	for k := range most {
		size := sc.DType.Size()
		r.values[k], err = encodeScale(r.bytes[k*size:(k+1)*size], float64(math.Float32frombits(most[k].Load())), largest, sc.DType)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", c.Name, err)
		}
	}
	return r, nil
}

// rescaled are the scales of a combined tensor.
type rescaled struct {
	bytes  []byte
	values []float64
}

// combineScaled passes the combination of an eight-bit tensor and its scales to a sink.
func (s *Series) combineScaled(ctx context.Context, to Sink, c *column, rule Rule, opt WriteOptions, workers []*combiner) error {
	spans := s.cut(c)
	var made *rescaled
	if from, ok := rule.copies(); ok && opt.Meter == nil {
		b := make([]byte, c.scale.n*c.scale.DType.Size())
		b, err := s.files[from].elements(b, c.scale.in[from], 0, c.scale.n)
		if err != nil {
			return err
		}
		if err := to.WriteAt(c.scale.Name, b, 0); err != nil {
			return err
		}
	} else {
		var err error
		if made, err = s.rescale(ctx, c, rule, opt, workers); err != nil {
			return err
		}
		if err := to.WriteAt(c.scale.Name, made.bytes, 0); err != nil {
			return err
		}
	}
	sums := make([][]float64, len(spans))
	err := forEach(ctx, len(spans), len(workers), func(worker, i int) error {
		w := s.combiner(workers, worker)
		b, err := w.scaled(spans[i], rule, made, opt)
		if err != nil {
			return err
		}
		if opt.Meter != nil {
			sums[i] = slices.Clone(w.measurer.sums)
		}
		return to.WriteAt(c.Name, b, int64(spans[i].off))
	})
	if err == nil && opt.Meter != nil {
		for _, v := range sums {
			opt.Meter.Add(len(s.files), v)
		}
	}
	return err
}

// scaled returns the elements of a span of the output: combined numbers over their scales, or a file's own.
func (c *combiner) scaled(sp span, rule Rule, by *rescaled, opt WriteOptions) ([]byte, error) {
	if by == nil {
		from, _ := rule.copies()
		return c.raw(sp, from)
	}
	values, err := c.numbers(sp, rule, opt)
	if err != nil {
		return nil, err
	}
	sp.column.scale.runs(sp.off, sp.n, func(at, n, k int) {
		f := by.values[k]
		for i := range values[at : at+n] {
			values[at+i] /= f
		}
	})
	c.out = slices.Grow(c.out[:0], sp.n)[:sp.n]
	return c.out, c.encode(sp, 0, values)
}
