package extrapolate

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"onlinerna/rna"
	"onlinerna/train/safetensors"
)

// TestGivenTwice refuses a checkpoint that two arguments name, also by links.
func TestGivenTwice(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.CopyFS(in("hub"), os.DirFS("../statedict/testdata/hub")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(in("copy"), os.DirFS(in("hub"))); err != nil {
		t.Fatal(err)
	}
	shard := "model-00001-of-00002.safetensors"
	if err := os.Symlink("hub", in("link")); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"hub/last.safetensors", "copy/one.safetensors"} {
		if err := os.Symlink(in("hub/"+shard), in(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		y0    string
		paths []string
		want  string
	}{
		{"", []string{"hub", "copy"}, ""},
		{"", []string{"hub/" + shard, "copy/" + shard}, ""},
		{"", []string{"hub", "copy", "hub/."}, "hub is given twice"},
		{"", []string{"hub", "copy", "link"}, "link is given twice: " + in("hub") + " is the same"},
		{"", []string{"hub", "copy", "hub/model.safetensors.index.json"}, "index.json is given twice: " + in("hub") + " is"},
		{"", []string{"hub/" + shard, "hub/last.safetensors"}, "last.safetensors is given twice: "},
		{"copy/one.safetensors", []string{"hub/" + shard, "copy/" + shard}, "one.safetensors is given twice: "},
		{"link", []string{"copy", "hub"}, "link is given twice: "},
	} {
		w := Window{Order: Given}
		if c.y0 != "" {
			w.Y0 = in(c.y0)
		}
		var paths []string
		for _, p := range c.paths {
			paths = append(paths, in(p))
		}
		s, err := w.Open(t.Context(), paths, Options{})
		if err == nil {
			s.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, --y0 %q: %v, want %q", c.paths, c.y0, err, c.want)
		}
	}
}

// TestManyFiles averages more files than residuals are solved for.
func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	n := rna.MaxColumns + 6
	var paths []string
	for i := range n {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%d.safetensors", i)))
		w, err := safetensors.Create(paths[i], []safetensors.Tensor{{Name: "w", DType: safetensors.F64, Shape: []int{1}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write("w", []float64{float64(i)}), w.CommitUnsynced()); err != nil {
			t.Fatal(err)
		}
	}
	w := Window{Order: Given}
	s, err := w.Open(t.Context(), paths, Options{Workers: 2})
	if err != nil {
		if errors.Is(err, syscall.EMFILE) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	defer s.Close()
	out := filepath.Join(dir, "out.safetensors")
	o := Output{Path: out, BatchNorm: LastStats, Average: true, Start: func(string, int64) {}}
	if _, err := o.Make(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	c, err := Open(out, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got [1]float64
	if err := c.File.Float64s(c.File.Tensors[0], got[:]); err != nil || math.Abs(got[0]-float64(n-1)/2) > 1e-9 {
		t.Errorf("%v, %v", got, err)
	}
	o.Average = false
	if _, err := o.Make(t.Context(), s); err == nil || !strings.Contains(err.Error(), "1029 residuals: at most 1024") {
		t.Error(err)
	}
}
