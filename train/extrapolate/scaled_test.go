package extrapolate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// raw is a tensor for a file.
type raw struct {
	dtype  safetensors.DType
	shape  []int
	values []float64
}

// put writes a file of tensors. Values of F8_E8M0 are exponents.
func put(t *testing.T, path string, tensors map[string]raw) {
	t.Helper()
	var list []safetensors.Tensor
	for name, x := range tensors {
		list = append(list, safetensors.Tensor{Name: name, DType: x.dtype, Shape: x.shape})
	}
	w, err := safetensors.Create(path, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range tensors {
		b := make([]byte, len(x.values)*x.dtype.Size())
		if x.dtype == e8m0 || x.dtype == "U8" {
			for i, v := range x.values {
				b[i] = byte(v)
			}
		} else if _, err := safetensors.Encode(b, x.values, x.dtype); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteAt(name, b, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

// decoded are the numbers of a tensor.
func decoded(t *testing.T, f *statedict.File, name string) []float64 {
	t.Helper()
	x, ok := f.Lookup(name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	b, err := f.Bytes(nil, x)
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float64, x.Len())
	if err := decodeScales(v, b, x.DType); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestScaled combines eight-bit numbers with scales of all forms: the output's numbers are the combination of the
// inputs' numbers, to the nearest element by the scale of their block.
func TestScaled(t *testing.T) {
	for name, c := range map[string]struct {
		dtype, scale safetensors.DType
		shape, grid  []int
		at           func(index []int) int // the scale of an element
		config       string
		suffix       string
	}{
		"DeepSeek": {safetensors.F8E4M3, safetensors.F32, []int{300, 200}, []int{3, 2},
			func(i []int) int { return i[0]/128*2 + i[1]/128 }, "", "_scale_inv"},
		"blocks of config.json": {safetensors.F8E4M3, safetensors.F32, []int{100, 96}, []int{2, 3},
			func(i []int) int { return i[0]/64*3 + i[1]/32 }, `{"quantization_config":{"weight_block_size":[64,32]}}`, "_scale_inv"},
		"whole":        {safetensors.F8E4M3, safetensors.BF16, []int{70, 90}, nil, func([]int) int { return 0 }, "", "_scale"},
		"one of [1]":   {safetensors.F8E5M2, safetensors.F32, []int{70, 90}, []int{1}, func([]int) int { return 0 }, "", "_scale"},
		"rows":         {safetensors.F8E4M3, safetensors.F16, []int{70, 90}, []int{70, 1}, func(i []int) int { return i[0] }, "", "_scale"},
		"rows, vector": {safetensors.F8E5M2, safetensors.F32, []int{70, 90}, []int{70}, func(i []int) int { return i[0] }, "", ".scale"},
		"groups": {safetensors.F8E4M3, safetensors.BF16, []int{33, 96}, []int{33, 3},
			func(i []int) int { return i[0]*3 + i[1]/32 }, "", "_scale"},
		"powers of two": {safetensors.F8E4M3, e8m0, []int{40, 64}, []int{40, 2}, func(i []int) int { return i[0]*2 + i[1]/32 }, "", "_scale"},
		"experts": {safetensors.F8E4M3, safetensors.F32, []int{3, 130, 140}, []int{3, 2, 2},
			func(i []int) int { return i[0]*4 + i[1]/128*2 + i[2]/128 }, "", "_scale_inv"},
		"many spans": {safetensors.F8E4M3, safetensors.F32, []int{700, 513}, []int{6, 5},
			func(i []int) int { return i[0]/128*5 + i[1]/128 }, "", "_scale_inv"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.config != "" {
				if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(c.config), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			n, scales := product(c.shape), product(c.grid)
			index := func(e int) []int {
				i := make([]int, len(c.shape))
				for k := len(i) - 1; k >= 0; k-- {
					i[k], e = e%c.shape[k], e/c.shape[k]
				}
				return i
			}
			weights := []float64{0.75, -0.5, 1.25}
			want := make([]float64, n)
			var paths []string
			for f, w := range weights {
				x := raw{c.dtype, c.shape, make([]float64, n)}
				sc := raw{c.scale, c.grid, make([]float64, scales)}
				for k := range sc.values {
					sc.values[k] = 0.001 * float64(1+(k*7+f*3)%11)
					if c.scale == e8m0 {
						sc.values[k] = float64(120 + (k+f)%5)
					}
				}
				for e := range x.values {
					x.values[e] = 300 * math.Sin(float64(e*(f+1))+float64(f))
				}
				path := filepath.Join(dir, fmt.Sprintf("%d.safetensors", f))
				put(t, path, map[string]raw{"a.weight": x, "a.weight" + c.suffix: sc, "a.input_scale": {safetensors.F32, nil,
					[]float64{float64(f)}}, "b.weight": {safetensors.F32, []int{2}, []float64{1, 2}}})
				file, err := statedict.Open(path, "")
				if err != nil {
					t.Fatal(err)
				}
				v, s := decoded(t, file, "a.weight"), decoded(t, file, "a.weight"+c.suffix)
				for e := range want {
					want[e] += w * v[e] * s[c.at(index(e))]
				}
				file.Close()
				paths = append(paths, path)
			}
			s, err := NewSeries(openAll(t, paths...), Options{Workers: 3})
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(dir, "out.safetensors")
			meter := &Meter{}
			if err := s.Write(t.Context(), out, weights, WriteOptions{Meter: meter}); err != nil {
				t.Fatal(err)
			}
			if meter.Distances() == nil {
				t.Error("no distances")
			}
			f, err := statedict.Open(out, "")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got, by := decoded(t, f, "a.weight"), decoded(t, f, "a.weight"+c.suffix)
			most, largest := make([]float64, len(by)), map[safetensors.DType]float64{safetensors.F8E4M3: 448,
				safetensors.F8E5M2: 57344}[c.dtype]
			b, again := []byte{0}, []float64{0}
			for e, v := range want {
				k := c.at(index(e))
				most[k] = max(most[k], math.Abs(v))
				safetensors.Encode(b, []float64{v / by[k]}, c.dtype)
				safetensors.Decode(again, b, c.dtype)
				if math.Abs(again[0]-got[e]) > 1e-6*math.Abs(got[e]) {
					// a sum of another order may fall on the other side of a middle
					if math.Abs(v/by[k]-got[e]) > 0.07*math.Abs(got[e])+1e-3 {
						t.Fatalf("element %d is %v × %v, want %v", e, got[e], by[k], v)
					}
				}
			}
			for k, m := range most {
				up := by[k] * largest / m // a power of two up to 2, another scale up to its rounding
				if up < 1-1.0/64 || up > 1+1.0/32 && c.scale != e8m0 || up >= 2 {
					t.Errorf("scale %d is %v for numbers up to %v", k, by[k], m)
				}
			}
			if v := decoded(t, f, "a.input_scale"); v[0] != 2 {
				t.Errorf("input_scale %v: want the last file's", v)
			}
			// A file's own weight copies it bit by bit.
			if err := s.Write(t.Context(), out+".copy.safetensors", []float64{0, 1, 0}, WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			g, err := statedict.Open(out+".copy.safetensors", "")
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			was, err := statedict.Open(paths[1], "")
			if err != nil {
				t.Fatal(err)
			}
			defer was.Close()
			for _, name := range []string{"a.weight", "a.weight" + c.suffix} {
				if !slices.Equal(decoded(t, g, name), decoded(t, was, name)) {
					t.Errorf("%s is not the second file's", name)
				}
			}
		})
	}
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// TestScaleMistakes lists scales that are refused.
func TestScaleMistakes(t *testing.T) {
	eight := func(shape ...int) raw { return raw{safetensors.F8E4M3, shape, make([]float64, product(shape))} }
	single := func(shape ...int) raw { return raw{safetensors.F32, shape, make([]float64, product(shape))} }
	bytes := func(shape ...int) raw { return raw{"U8", shape, make([]float64, product(shape))} }
	for want, tensors := range map[string]map[string]raw{
		"weight_scale[3 2] does not fit w.weight[4 4]":   {"w.weight": eight(4, 4), "w.weight_scale": single(3, 2)},
		"weight_scale[2 2] does not fit w.weight[100 4]": {"w.weight": eight(100, 4), "w.weight_scale": single(2, 2)},
		"weight_scale[2 2 2] does not fit":               {"w.weight": eight(4, 4), "w.weight_scale": single(2, 2, 2)},
		"neither blocks of 128":                          {"w.weight": eight(100, 4), "w.weight_scale": single(2, 4)},
		"scale w.weight_scale of U8":                     {"w.weight": eight(4), "w.weight_scale": bytes(1)},
		"w.weight is quantised, with the scales w.weight_scale:": {"w.weight": bytes(4), "w.weight_scale": single(1),
			"v": single(1)},
		"e_blocks is quantised, with the scales e_scales:":       {"e_blocks": bytes(4), "e_scales": bytes(1), "v": single(1)},
		"w.qweight is quantised, with the scales w.scales:":      {"w.qweight": bytes(4), "w.scales": single(1), "v": single(1)},
		"w_packed is quantised, with the scales w_scale:":        {"w_packed": bytes(4), "w_scale": single(1), "v": single(1)},
		"w.weight is quantised, with the scales w.weight.absmax": {"w.weight": bytes(4), "w.weight.absmax": single(1), "v": single(1)},
	} {
		path := filepath.Join(t.TempDir(), "x.safetensors")
		put(t, path, tensors)
		if _, err := NewSeries(openAll(t, path), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	dir := t.TempDir()
	with, without, bad := filepath.Join(dir, "a.safetensors"), filepath.Join(dir, "b.safetensors"), filepath.Join(dir, "c.safetensors")
	put(t, with, map[string]raw{"w": eight(4), "w_scale": single(1)})
	put(t, without, map[string]raw{"w": eight(4)})
	nan := single(1)
	nan.values[0] = math.NaN()
	put(t, bad, map[string]raw{"w": eight(4), "w_scale": nan})
	if _, err := NewSeries(openAll(t, with, without), Options{Loose: true}); err == nil || !strings.Contains(err.Error(), "w has a scale, w_scale, which other files lack") {
		t.Error(err)
	}
	s, err := NewSeries(openAll(t, with, bad), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), filepath.Join(dir, "out.safetensors"), []float64{0.5, 0.5}, WriteOptions{}); err == nil ||
		!strings.Contains(err.Error(), `element 0 of tensor "w" would be NaN`) {
		t.Error(err)
	}
}
