package extrapolate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/rna"
)

// c does not depend on the scale of float64 files, from 1e-300 to 1e300, even if one residual differs greatly from the
// others.
func TestScales(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	const d, n = 40, 5
	vs := make([][]float64, n+1)
	for k := range vs {
		vs[k] = make([]float64, d)
		for i := range d {
			vs[k][i] = rng.NormFloat64() * math.Pow(0.1+0.8*float64(i)/d, float64(k))
		}
	}
	for _, lambda := range []float64{0, 1e-9, 1e-3} {
		var want []float64
		for _, exp := range []int{0, -996, -700, -525, -538, -300, 300, 520, 996} {
			var paths []string
			dir := t.TempDir()
			for k, v := range vs {
				u := make([]float64, d)
				for i := range u {
					u[i] = math.Ldexp(v[i], exp)
				}
				paths = append(paths, save(t, filepath.Join(dir, fmt.Sprintf("%d.safetensors", k)), nil, named{"w", u}))
			}
			res := solved(t, measured(t, openAll(t, paths...), Options{}), rna.Options{Lambda: rna.Set(lambda)})
			if want == nil {
				want = res.C
			}
			for j, c := range res.C {
				if !(math.Abs(c-want[j]) <= 1e-13*math.Abs(want[j])) {
					t.Errorf("λ = %g, 2^%d: c is %v, want %v", lambda, exp, res.C, want)
					break
				}
			}
		}
	}
	dir := t.TempDir()
	huge := math.MaxFloat64
	a := save(t, filepath.Join(dir, "a.safetensors"), nil, named{"w", []float64{1, huge}})
	b := save(t, filepath.Join(dir, "b.safetensors"), nil, named{"w", []float64{1, -huge}})
	s, err := NewSeries(openAll(t, a, b), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Measure(t.Context()); err == nil || !strings.Contains(err.Error(), `tensor "w": the difference between`) {
		t.Errorf("error %v", err)
	}
}

// A failed write leaves no files.
func TestOverflow(t *testing.T) {
	dir := t.TempDir()
	a := save(t, filepath.Join(dir, "a.safetensors"), nil, named{"w", []float32{1, 3e38}})
	b := save(t, filepath.Join(dir, "b.safetensors"), nil, named{"w", []float32{1, 1}})
	s, err := NewSeries(openAll(t, a, b), Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(t.Context(), filepath.Join(dir, "out.safetensors"), []float64{2, -1}, WriteOptions{})
	if err == nil || !strings.Contains(err.Error(), `element 1 of tensor "w"`) {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("files %v are left", left)
	}
}

func TestNonFinite(t *testing.T) {
	dir := t.TempDir()
	v := make([]float32, 3000)
	a := save(t, filepath.Join(dir, "a.safetensors"), nil, named{"w", v})
	v[2999] = float32(math.NaN())
	b := save(t, filepath.Join(dir, "b.safetensors"), nil, named{"w", v})
	s, err := NewSeries(openAll(t, a, b), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Measure(t.Context()); err == nil || !strings.Contains(err.Error(),
		`b.safetensors: element 2999 of tensor "w" is NaN`) {
		t.Errorf("error %v", err)
	}
	same := measured(t, openAll(t, a, a), Options{})
	if res, err := same.Solve(rna.Options{}); err != nil || res.Status != rna.ZeroResidual {
		t.Errorf("equal files: status %v, error %v", res.Status, err)
	}
}
