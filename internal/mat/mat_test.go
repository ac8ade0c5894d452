package mat

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func load(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Files written by scipy, see testdata/make.py.
func TestRead(t *testing.T) {
	for _, name := range []string{"plain.mat", "compressed.mat"} {
		list, err := Read(bytes.NewReader(load(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]*Array{}
		for _, a := range list {
			byName[a.Name] = a
		}
		for _, c := range []struct {
			name string
			got  func(a *Array) any
			want any
		}{
			{"x", func(a *Array) any { return a.Dims }, []int{2, 3}},
			{"x", func(a *Array) any { return a.Real }, []float64{0, .75, .25, 1, .5, 1.25}},
			{"y", func(a *Array) any { return a.Real }, []float64{-1, 1}},
			{"y", func(a *Array) any { return a.Class }, Int8},
			{"z", func(a *Array) any { return [][]float64{a.Real, a.Imag} }, [][]float64{{1, 0}, {2, -3}}},
			{"s", func(a *Array) any { return [][]int{a.Rows, a.Columns, a.Dims} },
				[][]int{{1, 0, 2}, {0, 1, 3, 3}, {3, 3}}},
			{"s", func(a *Array) any { return a.Real }, []float64{2, 1.5, -1}},
			{"c", func(a *Array) any { return a.Cells[0].Text }, "one"},
			{"c", func(a *Array) any { return a.Cells[1].Real }, []float64{7, 8}},
			{"text", func(a *Array) any { return a.Text }, "Grüße"},
			{"yes", func(a *Array) any { return a.Logical && slices.Equal(a.Real, []float64{1, 0}) }, true},
			{"f", func(a *Array) any { return a.Real }, []float64{.5}},
			{"big", func(a *Array) any { return a.Real }, []float64{1 << 40, -1 << 33}},
			{"synsets", func(a *Array) any { return a.Fields },
				[]string{"ILSVRC2012_ID", "WNID", "num_children", "children"}},
			{"synsets", func(a *Array) any { return a.Len() }, 3},
			{"synsets", func(a *Array) any { return a.Field(1, "WNID").Text }, "n02119789"},
			{"synsets", func(a *Array) any { return a.Field(2, "ILSVRC2012_ID").Real }, []float64{3}},
			{"synsets", func(a *Array) any { return a.Field(2, "children").Real }, []float64{1, 2}},
			{"synsets", func(a *Array) any { return a.Field(0, "none") == nil }, true},
		} {
			a := byName[c.name]
			if a == nil {
				t.Fatalf("%s: no variable %s", name, c.name)
			}
			if got := c.got(a); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s: %s: got %v, want %v", name, c.name, got, c.want)
			}
		}
	}
}

// Files that are cut short or changed anywhere give an error or other values, and never a panic.
func TestReadDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"plain.mat", "compressed.mat"} {
		b := load(t, name)
		for n := range 128 {
			if _, err := Read(bytes.NewReader(b[:n])); err == nil {
				t.Errorf("%s: no error of its first %d bytes", name, n)
			}
		}
		for range 1000 {
			m := bytes.Clone(b)
			for range 1 + rng.IntN(3) {
				m[rng.IntN(len(m))] = byte(rng.Uint32())
			}
			_, _ = Read(bytes.NewReader(m[:len(m)-rng.IntN(2)*rng.IntN(len(m))]))
		}
	}
}

func TestReadErrors(t *testing.T) {
	hdf := bytes.Clone(load(t, "plain.mat"))
	hdf[124], hdf[125] = 0, 2
	for _, c := range []struct {
		want string
		b    []byte
	}{{"not a MAT-file", nil}, {"not a MAT-file", make([]byte, 200)}, {"7.3", hdf},
		{"cut short", load(t, "plain.mat")[:200]}} {
		if _, err := Read(bytes.NewReader(c.b)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(load(f, "plain.mat"))
	f.Add(load(f, "compressed.mat"))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = Read(bytes.NewReader(b)) })
}
