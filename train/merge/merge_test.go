package merge

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/rna"
	"onlinerna/train/extrapolate"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// save writes a checkpoint: a tensor for each name, and a counter.
func save(t *testing.T, path string, shape []int, tensors map[string][]float64, dtype safetensors.DType) {
	t.Helper()
	var list []safetensors.Tensor
	for name := range tensors {
		list = append(list, safetensors.Tensor{Name: name, DType: dtype, Shape: shape})
	}
	list = append(list, safetensors.Tensor{Name: "steps", DType: safetensors.I64})
	w, err := safetensors.Create(path, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range tensors {
		b := make([]byte, len(v)*dtype.Size())
		if _, err := safetensors.Encode(b, v, dtype); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteAt(name, b, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteAt("steps", []byte{byte(len(path)), 0, 0, 0, 0, 0, 0, 0}, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

func series(t *testing.T, workers int, paths ...string) *extrapolate.Series {
	t.Helper()
	var list []*extrapolate.Checkpoint
	for _, p := range paths {
		c, err := extrapolate.Open(p, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		list = append(list, c)
	}
	s, err := extrapolate.NewSeries(list, extrapolate.Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// merged opens the result of merging files.
func merged(t *testing.T, s *extrapolate.Series, opt Options, path string) *statedict.File {
	t.Helper()
	p, err := New(t.Context(), s, opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), s, p.Rules, Output{Path: path, ShardSize: 1000}); err != nil {
		t.Fatal(err)
	}
	f, err := statedict.Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func values(t *testing.T, f *statedict.File, name string) []float64 {
	t.Helper()
	x, ok := f.Lookup(name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	v := make([]float64, x.Len())
	if err := f.Float64s(x, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestMergekit compares methods with mergekit's results on the same numbers.
func TestMergekit(t *testing.T) {
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		t.Fatal(err)
	}
	list := func(name string) (v []float64) {
		if err := json.Unmarshal(raw[name], &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v
	}
	var models [][]float64
	if err := json.Unmarshal(raw["models"], &models); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var paths []string
	for i, v := range append([][]float64{list("base")}, models...) {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%d.safetensors", i)))
		save(t, paths[i], []int{4, 6}, map[string][]float64{"w": v}, safetensors.F64)
	}
	some := list("weights")
	for name, opt := range map[string]Options{
		"task":            {By: ByTask, Weights: some, Scale: 0.5, Sign: "none"},
		"task normalized": {By: ByTask, Weights: some, Scale: 1, Sign: "none", Normalize: true},
		"ties":            {By: ByTIES, Density: 0.4, Scale: 1, Sign: "sum", Normalize: true, Rescale: "none"},
		"ties weights":    {By: ByTIES, Weights: some, Density: 0.6, Scale: 0.5, Sign: "sum", Rescale: "none"},
		"ties l1":         {By: ByTIES, Density: 0.4, Scale: 1, Sign: "sum", Normalize: true, Rescale: "l1"},
		"breadcrumbs": {By: ByBreadcrumbs, Weights: some, Density: 0.5, Gamma: 0.1, Scale: 1, Sign: "none",
			Rescale: "none"},
		"breadcrumbs sign": {By: ByBreadcrumbs, Weights: some, Density: 0.5, Gamma: 0.1, Scale: 1, Sign: "sum",
			Rescale: "none"},
		"slerp": {By: BySlerp, T: 0.3},
	} {
		own := paths
		if opt.By == BySlerp {
			own = paths[:2]
		}
		f := merged(t, series(t, 2, own...), opt, filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".safetensors"))
		near(t, name, values(t, f, "w"), list(name), 2e-16)
		x, _ := f.Lookup("steps")
		if n, err := f.Int64s(x); err != nil || n[0] != int64(len(own[0])) {
			t.Errorf("%s: steps %v, %v", name, n, err)
		}
	}
}

// walk writes checkpoints of a run, with tensors of several parts.
func walk(t *testing.T, dir string, n int) (paths []string) {
	x := map[string][]float64{}
	for k, name := range []string{"a.weight", "a.bias", "b.weight"} {
		for i := range 300_000 / (1 + 100*k) {
			x[name] = append(x[name], math.Sin(float64(i*(k+1))))
		}
	}
	for step := range n {
		for name, v := range x {
			for i := range v {
				v[i] += math.Cos(float64(i*i)+float64(step*len(v))) / float64(4+step)
			}
			_ = name
		}
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%d.safetensors", step)))
		var list []safetensors.Tensor
		for name, v := range x {
			list = append(list, safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: []int{len(v)}})
		}
		slices.SortFunc(list, func(a, b safetensors.Tensor) int { return strings.Compare(a.Name, b.Name) })
		w, err := safetensors.Create(paths[step], list, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			narrow := make([]float32, len(x[l.Name]))
			for i, v := range x[l.Name] {
				narrow[i] = float32(v)
			}
			if err := w.Write(l.Name, narrow); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// TestWorkers checks that results do not depend on the number of goroutines.
func TestWorkers(t *testing.T) {
	dir := t.TempDir()
	paths := walk(t, dir, 4)
	for _, opt := range []Options{
		{By: ByMean}, {By: ByRNA, Per: "layer"}, {By: BySlerp, T: 0.3},
		{By: ByTIES, Density: 0.3, Scale: 1, Sign: "sum", Normalize: true, Rescale: "l1"},
		{By: ByDARE, Density: 0.3, Scale: 1, Sign: "none", Rescale: "l1", Seed: 3},
		{By: ByBreadcrumbs, Density: 0.3, Gamma: 0.2, Scale: 1, Sign: "none", Rescale: "none"},
	} {
		own := paths
		if opt.By == BySlerp {
			own = paths[:2]
		}
		var first []byte
		for _, workers := range []int{1, 5} {
			to := filepath.Join(dir, fmt.Sprintf("%s-%d.safetensors", opt.By, workers))
			merged(t, series(t, workers, own...), opt, to)
			b, err := os.ReadFile(to)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = b
			} else if !slices.Equal(first, b) {
				t.Errorf("%s differs between 1 and %d workers", opt.By, workers)
			}
		}
	}
}

// TestRanks compares the kept elements of large tensors, with many equal magnitudes, with those from a sort.
func TestRanks(t *testing.T) {
	dir := t.TempDir()
	n := 400_000
	base, model := make([]float64, n), make([]float64, n)
	for i := range model {
		model[i] = float64(i*7919%1000-500) / 1024
	}
	paths := []string{filepath.Join(dir, "base.safetensors"), filepath.Join(dir, "model.safetensors")}
	save(t, paths[0], []int{n}, map[string][]float64{"w": base}, safetensors.F32)
	save(t, paths[1], []int{n}, map[string][]float64{"w": model}, safetensors.F32)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(1024*math.Abs(model[a])) - int(1024*math.Abs(model[b]))
	})
	for _, opt := range []Options{
		{By: ByTIES, Density: 0.300001, Scale: 1, Sign: "none", Rescale: "none"},
		{By: ByBreadcrumbs, Density: 0.300001, Gamma: 0.123456, Scale: 1, Sign: "none", Rescale: "none"},
		{By: ByBreadcrumbs, Density: 0.9, Gamma: 0.5, Scale: 1, Sign: "none", Rescale: "none"},
	} {
		first, count := kept(opt, n)
		want := make([]float64, n)
		for _, i := range order[first : first+count] {
			want[i] = model[i]
		}
		for _, most := range []int64{gatherLen, 100} { // in memory, and by counts
			defer func(was int64) { gatherLen = was }(gatherLen)
			gatherLen = most
			got := values(t, merged(t, series(t, 3, paths...), opt, filepath.Join(dir,
				fmt.Sprintf("%s%v-%d.safetensors", opt.By, opt.Gamma, most))), "w")
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("%s, %d in memory: element %d is %v, want %v", opt.By, most, i, got[i], want[i])
				}
			}
		}
	}
}

// TestPerTensor solves for units, and compares each with a solution for the unit alone.
func TestPerTensor(t *testing.T) {
	dir := t.TempDir()
	paths := walk(t, dir, 4)
	s := series(t, 2, paths...)
	p, err := New(t.Context(), s, Options{By: ByRNA, Per: "tensor", RNA: rna.Options{Lambda: rna.Set(1e-6)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.weight", "a.bias", "b.weight"} {
		own := s.Of(func(x extrapolate.Tensor) bool { return x.Name == name })
		if err := own.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		res, err := own.Solve(rna.Options{Lambda: rna.Set(1e-6)})
		if err != nil {
			t.Fatal(err)
		}
		near(t, name, p.RNA[name].C, res.C, 0)
	}
	if slices.Equal(p.RNA["a.bias"].C, p.RNA["b.weight"].C) {
		t.Error("tensors have the same coefficients")
	}
	if layers, err := New(t.Context(), s, Options{By: ByRNA, Per: "layer"}); err != nil || len(layers.RNA) != 2 {
		t.Errorf("%v, %v", layers, err)
	}
}

// TestFar checks the warning about a point far from the files.
func TestFar(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, v := range []float64{0, 1, 1.9, 2.71} { // steps that shrink by a tenth: the limit is 10
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%d.safetensors", i)))
		save(t, paths[i], []int{2}, map[string][]float64{"w": {v, -v}}, safetensors.F64)
	}
	p, err := New(t.Context(), series(t, 1, paths...), Options{By: ByRNA, Per: "whole",
		RNA: rna.Options{Lambda: rna.Set(1e-9)}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0],
		"the point is 10.3 from the last file, the files are at most 3.83 apart") {
		t.Errorf("%q", p.Warnings)
	}
	p, err = New(t.Context(), series(t, 1, paths...), Options{By: ByRNA, Per: "whole",
		RNA: rna.Options{Lambda: rna.Set(1)}})
	if err != nil || len(p.Warnings) != 0 {
		t.Errorf("%v, %v", p, err)
	}
}

// TestMeter compares the distances that a merge measures while it writes with those of its output, for methods that
// leave the files' middle.
func TestMeter(t *testing.T) {
	dir := t.TempDir()
	paths := walk(t, dir, 3)
	all := func(path string) (v []float64) {
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, x := range f.Tensors {
			v = append(v, values(t, f, x.Name)...)
		}
		return v
	}
	distance := func(a, b []float64) float64 {
		sum := 0.0
		for i := range a {
			sum += (a[i] - b[i]) * (a[i] - b[i])
		}
		return math.Sqrt(sum)
	}
	var in [][]float64
	for _, p := range paths {
		in = append(in, all(p))
	}
	diameter := max(distance(in[0], in[1]), distance(in[0], in[2]), distance(in[1], in[2]))
	for name, opt := range map[string]Options{
		"weights": {By: ByWeights, Weights: []float64{-6, 0, 7}},
		"large":   {By: ByWeights, Weights: []float64{-20, 0, 21}},
		"task":    {By: ByTask, Sign: "none", Scale: 2},
		"ties":    {By: ByTIES, Density: 0.5, Sign: "sum", Scale: 3, Rescale: "none"},
		"layers":  {By: ByRNA, Per: "layer", RNA: rna.Options{Lambda: rna.Set(1e-9)}},
		"inside":  {By: ByTIES, Density: 0.5, Sign: "sum", Scale: 0.1, Rescale: "none"},
	} {
		for _, out := range []string{name, name + ".pt"} {
			s := series(t, 3, paths...)
			p, err := New(t.Context(), s, opt)
			if err != nil {
				t.Fatal(err)
			}
			if large := len(p.Warnings) == 1 && strings.Contains(p.Warnings[0], "‖c‖₂ is 29"); large != (name == "large") {
				t.Errorf("%s: %q", name, p.Warnings)
			}
			o := Output{Path: filepath.Join(dir, out), ShardSize: 5000}
			o.Meter = &extrapolate.Meter{}
			if _, err := Write(t.Context(), s, p.Rules, o); err != nil {
				t.Fatal(err)
			}
			got, point := o.Meter.Distances(), all(o.Path)
			for i, v := range []float64{got.FromFirst - distance(point, in[0]), got.FromLast - distance(point, in[2]),
				got.Diameter - diameter} {
				if !(math.Abs(v) < 1e-4) { // the output is rounded to float32
					t.Errorf("%s: distance %d of %+v differs by %g", out, i, *got, v)
				}
			}
			far := p.Far(got)
			if name != "layers" && (len(far) == 1) == (name == "inside") || p.Tame == "" {
				t.Errorf("%s: %q, tame %q", out, far, p.Tame)
			}
			if name == "ties" && !strings.Contains(far[0], "from the base") ||
				name == "weights" && !strings.Contains(far[0], "from the last file, the files are at most") {
				t.Errorf("%s: %q", name, far)
			}
		}
	}
	for _, opt := range []Options{{By: ByMean}, {By: ByWeights, Weights: []float64{0.5, 0, 0.5}}, {By: ByWSM, Schedule: "cosine"}} {
		if p, err := New(t.Context(), series(t, 1, paths...), opt); err != nil || p.Tame != "" {
			t.Errorf("%s is measured: %v", opt.By, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	s := series(t, 1, walk(t, dir, 3)...)
	for _, c := range []struct {
		opt  Options
		want string
	}{
		{Options{By: ByWeights, Weights: []float64{1}}, "1 weights for 3 files"},
		{Options{By: ByMean, Weights: []float64{1}}, "takes no weights"},
		{Options{By: ByTask, Weights: []float64{1, math.NaN()}}, "must be finite"},
		{Options{By: BySlerp}, "between two files, not 3"},
		{Options{By: ByTIES, Density: 0, Sign: "sum"}, "density 0"},
		{Options{By: ByTIES, Density: 1, Sign: "max"}, `unknown sign "max"`},
		{Options{By: ByRNA, Per: "all"}, "whole, layer or tensor"},
		{Options{By: "mode"}, `unknown method "mode"`},
	} {
		if _, err := New(t.Context(), s, c.opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
