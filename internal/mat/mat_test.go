package mat

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
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
		list, err := Read(bytes.NewReader(load(t, name)), 1<<24)
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
			if _, err := Read(bytes.NewReader(b[:n]), 1<<24); err == nil {
				t.Errorf("%s: no error of its first %d bytes", name, n)
			}
		}
		for range 1000 {
			m := bytes.Clone(b)
			for range 1 + rng.IntN(3) {
				m[rng.IntN(len(m))] = byte(rng.Uint32())
			}
			_, _ = Read(bytes.NewReader(m[:len(m)-rng.IntN(2)*rng.IntN(len(m))]), 1<<24)
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
		if _, err := Read(bytes.NewReader(c.b), 1<<24); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// A small file, compressed or not, takes no more memory than allowed.
func TestReadBudget(t *testing.T) {
	tag := func(kind, size int) []byte {
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(kind)), uint32(size))
	}
	file := func(variable []byte) []byte {
		b := append(make([]byte, 124), 0, 1, 'I', 'M')
		return append(b, variable...)
	}
	matrix := func(class byte, dims [2]int32, rest ...byte) []byte {
		b := append(tag(miUint32, 8), class, 0, 0, 0, 0, 0, 0, 0)
		b = append(b, tag(miInt32, 8)...)
		b = binary.LittleEndian.AppendUint32(b, uint32(dims[0]))
		b = binary.LittleEndian.AppendUint32(b, uint32(dims[1]))
		b = append(append(b, tag(miInt8, 0)...), rest...)
		return append(tag(miMatrix, len(b)), b...)
	}
	const many = 30 << 20
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	head := matrix(byte(Int8), [2]int32{many, 1}, tag(miInt8, many)...)
	binary.LittleEndian.PutUint32(head[4:], uint32(len(head)-8+many))
	z.Write(head)
	z.Write(make([]byte, many))
	z.Close()
	notANumber := slices.Concat(tag(miInt32, 4), make([]byte, 8), tag(miDouble, 16), make([]byte, 8),
		binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN())), tag(miDouble, 8), make([]byte, 8))
	sparse := slices.Concat(tag(miInt32, 0), tag(miInt32, 8), make([]byte, 8), tag(miDouble, 0))
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"zeros":       {file(append(tag(miCompressed, packed.Len()), packed.Bytes()...)), "limit of"},
		"no number":   {file(matrix(byte(Sparse), [2]int32{1, 1}, notANumber...)), "no integers"},
		"sparse rows": {file(matrix(byte(Sparse), [2]int32{math.MaxInt32, 1}, sparse...)), "2147483647 rows"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(bytes.NewReader(c.b), 1<<24)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) || after.TotalAlloc-before.TotalAlloc > 64<<20 {
			t.Errorf("%s: %d MB, error %v", name, (after.TotalAlloc-before.TotalAlloc)>>20, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(load(f, "plain.mat"))
	f.Add(load(f, "compressed.mat"))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = Read(bytes.NewReader(b), 1<<24) })
}
