package extrapolate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/rna"
	"onlinerna/train/safetensors"
)

// openAll opens checkpoints until the test ends.
func openAll(t *testing.T, paths ...string) []*Checkpoint {
	t.Helper()
	var files []*Checkpoint
	for _, p := range paths {
		c, err := Open(p, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		files = append(files, c)
	}
	return files
}

// golden opens the checkpoints of testdata/gen.py.
func golden(t *testing.T, ext string) []*Checkpoint {
	t.Helper()
	var paths []string
	for epoch := 8; epoch < 12; epoch++ {
		paths = append(paths, filepath.Join("testdata", fmt.Sprintf("ckpt-%d%s", epoch, ext)))
	}
	return openAll(t, paths...)
}

// measured creates a series and its Gram matrix.
func measured(t *testing.T, files []*Checkpoint, opt Options) *Series {
	t.Helper()
	s, err := NewSeries(files, opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func solved(t *testing.T, s *Series, opt rna.Options) rna.Result {
	t.Helper()
	res, err := s.Solve(opt)
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func written(t *testing.T, s *Series, weights []float64, opt WriteOptions) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.safetensors")
	if err := s.Write(t.Context(), path, weights, opt); err != nil {
		t.Fatal(err)
	}
	return path
}

// values reads a floating-point tensor.
func values(t *testing.T, c *Checkpoint, name string) []float64 {
	t.Helper()
	x, ok := c.Lookup(name)
	if !ok {
		t.Fatalf("%s has no %s", c.Path, name)
	}
	v := make([]float64, x.Len())
	b, err := c.elements(make([]byte, x.Bytes()), x, 0, x.Len())
	if err == nil {
		err = safetensors.Decode(v, b, x.DType)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Compare with numpy's RNA in float64: coefficients, norms and the point, rounded once, from both formats.
func TestGolden(t *testing.T) {
	var want struct {
		Lambda   float64
		C, Norms []float64
	}
	b, err := os.ReadFile("testdata/golden.json")
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	point := openAll(t, "testdata/golden.safetensors")[0]
	for _, ext := range []string{".safetensors", ".pt"} {
		s := measured(t, golden(t, ext), Options{})
		res := solved(t, s, rna.Options{Lambda: rna.Set(want.Lambda)})
		for j := range want.C {
			if math.Abs(res.C[j]-want.C[j]) > 1e-9*res.NormC ||
				math.Abs(res.ResidualNorms[j]-want.Norms[j]) > 1e-12*want.Norms[j] {
				t.Errorf("%s: c %v and norms %v, want %v and %v", ext, res.C, res.ResidualNorms, want.C, want.Norms)
			}
		}
		out := openAll(t, written(t, s, s.Weights(res.C, 1), WriteOptions{Stats: CombineStats}))[0]
		for _, x := range out.Tensors {
			if x.Role == Copied {
				continue
			}
			unit := map[safetensors.DType]float64{"F64": 1e-11, "F32": 0x1p-23, "F16": 0x1p-10, "BF16": 0x1p-8}[x.DType]
			differ := 0
			golden := values(t, point, x.Name)
			for i, v := range values(t, out, x.Name) {
				if v != golden[i] {
					differ++
				}
				if math.Abs(v-golden[i]) > unit*math.Abs(golden[i])+1e-9 {
					t.Errorf("%s: element %d of %s is %v, want %v", ext, i, x.Name, v, golden[i])
				}
			}
			if (x.DType == safetensors.F32 || x.DType == safetensors.F16) && differ > 1+x.Len()/100 {
				t.Errorf("%s: %d of %d elements of %s are rounded differently", ext, differ, x.Len(), x.Name)
			}
		}
		counter, _ := out.Lookup("bn.num_batches_tracked")
		raw, err := out.elements(make([]byte, 8), counter, 0, 1)
		if err != nil || !bytes.Equal(raw, []byte{1100 & 255, 1100 >> 8, 0, 0, 0, 0, 0, 0}) {
			t.Errorf("%s: the counter is %v, want that of the last file (%v)", ext, raw, err)
		}
	}
}

// The output's bytes depend neither on the input format nor on the number of workers.
func TestSameBytes(t *testing.T) {
	var first []byte
	for _, ext := range []string{".safetensors", ".pt"} {
		for _, workers := range []int{1, 3, 16} {
			s := measured(t, golden(t, ext), Options{Workers: workers})
			res := solved(t, s, rna.Options{})
			for _, c := range s.files {
				c.Metadata = nil
			}
			b, err := os.ReadFile(written(t, s, s.Weights(res.C, 1), WriteOptions{}))
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = b
			}
			if !bytes.Equal(b, first) {
				t.Errorf("%s with %d workers: other bytes", ext, workers)
			}
		}
	}
}

// Sums over many spans and groups agree with a single sum.
func TestLargeTensors(t *testing.T) {
	dir := t.TempDir()
	n := 3*spanLen + 77
	var paths []string
	var flat [][]float64
	for k := range 3 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(math.Sin(float64(i*(k+2)))) / float32(k+1)
		}
		small := []float64{float64(k), 1}
		paths = append(paths, save(t, filepath.Join(dir, fmt.Sprintf("%d.safetensors", k)), nil, named{"a", v},
			named{"b", small}))
		wide := slices.Clone(small)
		for _, x := range v {
			wide = append(wide, float64(x))
		}
		flat = append(flat, wide)
	}
	s := measured(t, openAll(t, paths...), Options{})
	for i := range 2 {
		for j := range 2 {
			want := 0.0
			for e := range flat[0] {
				want += (flat[i+1][e] - flat[i][e]) * (flat[j+1][e] - flat[j][e])
			}
			if got := s.space.sum.gram[2*i+j]; math.Abs(got-want) > 1e-10*float64(n) {
				t.Errorf("(RᵀR)[%d,%d] = %v, want %v", i, j, got, want)
			}
		}
	}
	out := openAll(t, written(t, s, []float64{0.5, -1, 1.5}, WriteOptions{}))[0]
	for i, v := range values(t, out, "a") {
		want := float64(float32(0.5*flat[0][i+2] - flat[1][i+2] + 1.5*flat[2][i+2]))
		if v != want {
			t.Fatalf("element %d is %v, want %v", i, v, want)
		}
	}
}

type named struct {
	name string
	data any
}

// save writes a safetensors file of vectors.
func save(t *testing.T, path string, metadata map[string]string, tensors ...named) string {
	t.Helper()
	var list []safetensors.Tensor
	for _, x := range tensors {
		switch d := x.data.(type) {
		case []float32:
			list = append(list, safetensors.Tensor{Name: x.name, DType: safetensors.F32, Shape: []int{len(d)}})
		case []float64:
			list = append(list, safetensors.Tensor{Name: x.name, DType: safetensors.F64, Shape: []int{len(d)}})
		case []int64:
			list = append(list, safetensors.Tensor{Name: x.name, DType: safetensors.I64, Shape: []int{len(d)}})
		}
	}
	w, err := safetensors.Create(path, list, metadata)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, x := range tensors {
		if err := w.Write(x.name, x.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Coefficients agree with an in-memory window of package rna, for λ, τ, Anderson acceleration and pairs.
func TestAgreesWithWindow(t *testing.T) {
	files := golden(t, ".safetensors")
	for _, c := range []struct {
		name  string
		pairs []Pair
		opt   rna.Options
	}{
		{"default", nil, rna.Options{}},
		{"average", nil, rna.Options{Lambda: rna.Set(math.Inf(1))}},
		{"anderson", nil, rna.Options{Lambda: rna.Set(0)}},
		{"tau", nil, rna.Options{Tau: rna.Set(0.5)}},
		{"pairs", []Pair{{0, 1}, {2, 3}}, rna.Options{Lambda: rna.Set(1e-3)}},
		{"chains", []Pair{{0, 1}, {1, 2}, {0, 3}}, rna.Options{Lambda: rna.Set(1e-3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := measured(t, files, Options{Pairs: c.pairs})
			res := solved(t, s, c.opt)
			var flat []rna.Slice64
			for k := range files {
				var v rna.Slice64
				for _, sp := range s.space.spans {
					v = append(v, values(t, files[k], sp.column.Name)...)
				}
				flat = append(flat, v)
			}
			space, err := rna.NewHost64(len(flat[0]), 1)
			if err != nil {
				t.Fatal(err)
			}
			w, err := rna.NewWindow(space, len(s.Pairs()))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range s.Pairs() {
				if err := w.PushPair(flat[p.Y], flat[p.X]); err != nil {
					t.Fatal(err)
				}
			}
			want, err := w.Solve(c.opt)
			if err != nil {
				t.Fatal(err)
			}
			for j := range want.C {
				if math.Abs(res.C[j]-want.C[j]) > 1e-6*want.NormC {
					t.Errorf("c is %v, want %v", res.C, want.C)
				}
			}
			point := make(rna.Slice64, space.Dim())
			if err := w.Combine(point, want.C, 0.5); err != nil {
				t.Fatal(err)
			}
			var terms []rna.Term
			for k, a := range s.Weights(want.C, 0.5) {
				terms = append(terms, rna.Term{Coef: a, Vector: &vector{s.space, k}})
			}
			direct := make(rna.Slice32, space.Dim())
			if err := s.space.Combine(direct, terms); err != nil {
				t.Fatal(err)
			}
			sum := make([]float64, space.Dim())
			for k, a := range s.Weights(want.C, 0.5) {
				for i, v := range flat[k] {
					sum[i] += a * v
				}
			}
			for i := range sum {
				if math.Abs(sum[i]-point[i]) > 1e-10 || math.Abs(float64(direct[i])-point[i]) > 1e-6*(1+math.Abs(point[i])) {
					t.Fatalf("element %d by weights of files is %v, want %v", i, sum[i], point[i])
				}
			}
		})
	}
}

func TestStatistics(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for k := range 3 {
		paths = append(paths, save(t, filepath.Join(dir, fmt.Sprintf("%d.safetensors", k)),
			map[string]string{"step": fmt.Sprint(k), "own": "kept"},
			named{"w", []float32{float32(k), 2}}, named{"bn.running_mean", []float32{float32(k)}},
			named{"bn.running_var", []float32{float32(k + 1)}}, named{"n", []int64{int64(k)}}))
	}
	s := measured(t, openAll(t, paths...), Options{})
	weights := []float64{4, 0, -3} // variance 4·1 − 3·3
	fresh := openAll(t, save(t, filepath.Join(dir, "fresh.safetensors"), nil, named{"bn.running_mean", []float64{0.1}},
		named{"bn.running_var", []float64{0.2}}))[0]
	for _, c := range []struct {
		name       string
		opt        WriteOptions
		mean, vari float64
	}{
		{"last", WriteOptions{Metadata: map[string]string{"done": "yes"}}, 2, 3},
		{"combined", WriteOptions{Stats: CombineStats}, -6, 0},
		{"estimated", WriteOptions{From: fresh}, float64(float32(0.1)), float64(float32(0.2))},
	} {
		out := openAll(t, written(t, s, weights, c.opt))[0]
		if m, v, w := values(t, out, "bn.running_mean")[0], values(t, out, "bn.running_var")[0],
			values(t, out, "w"); m != c.mean || v != c.vari || w[0] != -6 || w[1] != 2 {
			t.Errorf("%s: mean %v, variance %v, weights %v", c.name, m, v, w)
		}
		if out.Metadata["own"] != "kept" || out.Metadata["step"] != "2" || out.Metadata["done"] != c.opt.Metadata["done"] {
			t.Errorf("%s: metadata %v", c.name, out.Metadata)
		}
	}
	if s.space.dim != 2 {
		t.Errorf("residuals of %d elements, want those of w", s.space.dim)
	}
}

func TestDifferences(t *testing.T) {
	dir := t.TempDir()
	a := save(t, filepath.Join(dir, "a.safetensors"), nil, named{"w", []float32{1}}, named{"x", []float32{1}},
		named{"gone", []float32{1}})
	b := save(t, filepath.Join(dir, "b.safetensors"), nil, named{"w", []float64{1}}, named{"x", []float32{1, 2}},
		named{"new", []float32{1}})
	_, err := NewSeries(openAll(t, a, b), Options{})
	var diff *DifferenceError
	if !errors.As(err, &diff) || len(diff.Lines) != 4 {
		t.Fatalf("error %v, want 4 differences", err)
	}
	for _, want := range []string{"w F32[1]", "F64[1]", "x F32[1]", "F32[2]", "lacks new", "gone F32[1], which"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
