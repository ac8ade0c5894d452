package extrapolate

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOrder(t *testing.T) {
	names := func(files []*Checkpoint) string {
		var s []string
		for _, c := range files {
			s = append(s, c.Path)
		}
		return strings.Join(s, " ")
	}
	unread := func(paths ...string) (files []*Checkpoint) {
		for _, p := range paths {
			files = append(files, &Checkpoint{Path: p})
		}
		return files
	}
	for _, c := range []struct {
		by       Order
		in, want string
	}{
		{Natural, "c-10 c-2 c-1", "c-1 c-2 c-10"},
		{Natural, "c-010 c-9 c-10", "c-9 c-010 c-10"},
		{Natural, "b2/1 b10/0 b2/0", "b2/0 b2/1 b10/0"},
		{Natural, "c c1 b99999999999999999999 b100000000000000000000", "b99999999999999999999 b100000000000000000000 c c1"},
		{Given, "c-10 c-2", "c-10 c-2"},
		{ByStep, "b-epoch1-20.pt a-epoch2-30.pt c-epoch0-9.pt", "c-epoch0-9.pt b-epoch1-20.pt a-epoch2-30.pt"},
	} {
		files := unread(strings.Fields(c.in)...)
		if err := Sort(files, c.by); err != nil || names(files) != c.want {
			t.Errorf("%s of %s gives %s, want %s (%v)", c.by, c.in, names(files), c.want, err)
		}
	}
	files := unread("a-1", "b-0")
	files[0].Metadata, files[1].Metadata = map[string]string{"step": "5"}, map[string]string{"epoch": "7"}
	if err := Sort(files, ByStep); err != nil || names(files) != "a-1 b-0" {
		t.Errorf("by metadata: %s (%v)", names(files), err)
	}
	for _, bad := range [][]*Checkpoint{unread("a", "b1"), unread("a1", "b1")} {
		if err := Sort(bad, ByStep); err == nil {
			t.Errorf("%s by step: no error", names(bad))
		}
	}
	if err := Sort(files, "random"); err == nil {
		t.Error("an unknown order: no error")
	}
}

func TestNorms(t *testing.T) {
	s, err := NewSeries(golden(t, ".pt"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	norms, err := s.Norms(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range norms {
		last := values(t, s.files[3], n.Name)
		before := values(t, s.files[2], n.Name)
		norm, moved := 0.0, 0.0
		for i, v := range last {
			norm, moved = math.Hypot(norm, v), math.Hypot(moved, v-before[i])
		}
		if math.Abs(n.Norm[3]-norm) > 1e-12*norm || math.Abs(n.Moved[2]-moved) > 1e-12*norm {
			t.Errorf("%s: norm %v, moved %v, want %v, %v", n.Name, n.Norm[3], n.Moved[2], norm, moved)
		}
	}
	if len(norms) != 8 {
		t.Errorf("norms of %d tensors, want 8", len(norms))
	}
}

// A file truncated while it is read is an error, mapped or not.
func TestCutShort(t *testing.T) {
	dir := t.TempDir()
	a := save(t, filepath.Join(dir, "a.safetensors"), nil, named{"w", make([]float32, 1<<16)})
	b := save(t, filepath.Join(dir, "b.safetensors"), nil, named{"w", make([]float32, 1<<16)})
	s, err := NewSeries(openAll(t, a, b), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(b, 100); err != nil {
		t.Skip(err)
	}
	if err := s.Measure(t.Context()); err == nil {
		t.Error("no error")
	}
}
