package statedict

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/safetensors"
)

// golden are the tensors of testdata/make.py.
var golden = []struct {
	name  string
	dtype safetensors.DType
	shape []int
}{
	{"a.weight", safetensors.F32, []int{6, 5}},
	{"a.bias", safetensors.BF16, []int{7}},
	{"b.weight", safetensors.F64, []int{5, 3, 4}},
	{"c.scale", safetensors.F32, []int{}},
	{"d.table", safetensors.F16, []int{10, 4}},
}

// TestForms reads the same tensors in all formats of PyTorch, numpy and gguf, in pieces of any size.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		path, key string
		form      Form
		without   []string
		shards    int
	}{
		{"flat.dcp", "", Distributed, nil, 4},
		{"nested.dcp", "", Distributed, nil, 2},
		{"nested.dcp", "model", Distributed, nil, 2},
		{"plain.npz", "", Numpy, []string{"a.bias"}, 1},
		{"packed.npz", "", Numpy, []string{"a.bias"}, 1},
		{"plain.gguf", "", GGUF, []string{"c.scale", "steps"}, 1},
		{"plain.orbax", "", Orbax, nil, 1},
		{"zarr3.orbax", "", Orbax, nil, 1},
		{"folders.orbax", "", Orbax, nil, 39},
		{"edges.orbax", "", Orbax, nil, 12},
		{"plain.h5", "", HDF5, nil, 1},
		{"latest.h5", "", HDF5, nil, 1},
		{"hub", "", Safetensors, nil, 2},
		{"hub/model.safetensors.index.json", "", Safetensors, nil, 2},
	} {
		f := open(t, filepath.Join("testdata", c.path), c.key)
		if f.Form != c.form || f.Shards != c.shards || len(f.Tensors) != len(golden)+1-len(c.without) {
			t.Errorf("%s: %s, %d shards, %d tensors", c.path, f.Form, f.Shards, len(f.Tensors))
		}
		for k, g := range golden {
			if slices.Contains(c.without, g.name) {
				continue
			}
			x, ok := f.Lookup(g.name)
			if !ok || x.DType != g.dtype || !slices.Equal(x.Shape, g.shape) {
				t.Fatalf("%s: %s is %s%v", c.path, g.name, x.DType, x.Shape)
			}
			for off := range x.Len() {
				for n := range x.Len() - off + 1 {
					b, v := make([]byte, n*x.DType.Size()), make([]float64, n)
					if err := f.Read(b, x, off); err != nil {
						t.Fatal(err)
					}
					if err := safetensors.Decode(v, b, x.DType); err != nil {
						t.Fatal(err)
					}
					for i := range v {
						if want := float64(off+i)/4 + float64(k); v[i] != want {
							t.Fatalf("%s: %s: element %d of %d from %d on is %v, want %v", c.path, g.name, i, n, off, v[i], want)
						}
					}
				}
			}
		}
		if slices.Contains(c.without, "steps") {
			continue
		}
		x, _ := f.Lookup("steps")
		if n, err := f.Int64s(x); err != nil || n[0] != 12 {
			t.Errorf("%s: steps %v, %v", c.path, n, err)
		}
		if err := f.Unchanged(); err != nil {
			t.Error(err)
		}
	}
}

func TestFloat8(t *testing.T) {
	f := open(t, "testdata/float8.pt", "")
	for i, want := range [][]byte{{0x30, 0xfe, 0x01, 0x45}, {0x38, 0xfb, 0x01, 0x43}} {
		x := f.Tensors[i]
		if b, err := f.Bytes(nil, x); err != nil || !bytes.Equal(b, want) ||
			x.DType != []safetensors.DType{"F8_E4M3", "F8_E5M2"}[i] {
			t.Errorf("%s %s: %x, %v", x.Name, x.DType, b, err)
		}
	}
}

// readAll reads all tensors.
func readAll(f *File) error {
	for _, x := range f.Tensors {
		if _, err := f.Bytes(nil, x); err != nil {
			return err
		}
	}
	return nil
}

// copyFolder copies a folder of testdata.
func copyFolder(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// refused opens a file and reads it: one of the two must fail.
func refused(t *testing.T, path, want string) {
	t.Helper()
	f, err := Open(path, "")
	if err == nil {
		err = readAll(f)
		f.Close()
	}
	if err == nil {
		t.Errorf("%s was opened, want %q", path, want)
	} else if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestBadIndex opens false indexes.
func TestBadIndex(t *testing.T) {
	const first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	for _, c := range []struct{ from, to, want string }{
		{`"a.weight": "` + first, `"a.weight": "../hub/` + first, "not the name of a file beside the index"},
		{`"a.weight": "` + first, `"a.weight": "/etc/passwd`, "not the name of a file beside the index"},
		{`"a.weight": "` + first, `"a.weight": "model.safetensors.index.json`, "shards are .safetensors or .bin"},
		{`"a.weight": "` + first, `"a.weight": "` + second, `"a.weight" is in ` + second + ", which lacks it"},
		{`"a.weight": "` + first + `",`, "", `tensor "a.weight" is in `},
		{`"a.weight"`, `"d.table"`, `"d.table" is named twice`},
		{`"a.weight": "` + first, `"a.weight": "gone.safetensors`, "no such file"},
		{`"a.weight": "` + first + `"`, `"a.weight": 3`, "not the name of a file"},
		{`"a.weight"`, `"other"`, `"other" is in ` + first + ", which lacks it"},
		{`"weight_map"`, `"map"`, "is JSON, not weights"},
	} {
		dir := copyFolder(t, "hub")
		path := filepath.Join(dir, "model.safetensors.index.json")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := strings.Replace(string(b), c.from, c.to, 1)
		if s == string(b) {
			t.Fatalf("%s is not in the index", c.from)
		}
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, c.want)
	}
	dir := copyFolder(t, "hub")
	if err := os.Rename(filepath.Join(dir, second), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, first), filepath.Join(dir, second)); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, "is both in ")
	if f := open(t, filepath.Join("testdata/hub", first), ""); !slices.Equal(f.Siblings(),
		[]string{second, "model.safetensors.index.json"}) {
		t.Errorf("siblings %v", f.Siblings())
	}
}

// TestRefusedForms opens files in unsupported formats; each error gives the reason.
func TestRefusedForms(t *testing.T) {
	bomb, err := os.ReadFile("testdata/packed.npz")
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(bomb, []byte("PK\x01\x02")) // the directory's first entry; the size follows its compressed size
	binary.LittleEndian.PutUint32(bomb[at+24:], 1<<30)
	lying := filepath.Join(t.TempDir(), "x.npz")
	if err := os.WriteFile(lying, bomb, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, lying, "cannot be 1073741824 when they are inflated")
	refused(t, "testdata/quantised.gguf", `"q" is quantised as Q8_0`)
	var b []byte // three tensors in the same place; an output would have three copies of it
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32([]byte(ggufMagic), 3), 3)
	b = binary.LittleEndian.AppendUint64(b, 0)
	for _, name := range []string{"a", "b", "c"} {
		b = append(binary.LittleEndian.AppendUint64(b, 1), name...)
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(b, 1), 1024)
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(b, 0), 0)
	}
	overlapping := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(overlapping, append(b, make([]byte, 4096+32)...), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, overlapping, `tensor "b" and those before it take more than the file's`)
	if _, err := Open("testdata/nested.dcp", "ema"); err == nil ||
		!strings.Contains(err.Error(), `there is no key "ema"`) {
		t.Error(err)
	}
	if _, err := Open("testdata/nested.dcp", "optim.state.a.weight"); err == nil ||
		!strings.Contains(err.Error(), "there is no key") {
		t.Errorf("the state of the optimiser: %v", err)
	}
	dir := copyFolder(t, "flat.dcp")
	path := filepath.Join(dir, ".metadata")
	b, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte("__0_0.distcp"), []byte("../0_0.distc")), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, "not the name of a file in the folder")
	dir = copyFolder(t, "flat.dcp")
	if err := os.Truncate(filepath.Join(dir, "__3_0.distcp"), 3000); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, "it was cut short")
}

// TestMutations damages headers, indexes and metadata at random: each file reads as before or is rejected, in bounded
// memory.
func TestMutations(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 40
	}
	if os.Getenv("SOAK_FLIPS") != "" {
		rounds = 2000
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		folder, file string
		from, to     int
	}{
		{"flat.dcp", ".metadata", 0, 2825},
		{"nested.dcp", ".metadata", 0, 2960},
		{"flat.dcp", "__1_0.distcp", 0, 1000},
		{"hub", "model.safetensors.index.json", 0, 372},
		{"", "plain.gguf", 0, 500},
		{"", "plain.npz", 0, 256},
		{"", "plain.npz", 1500, 1944},
		{"", "packed.npz", 0, 2000},
		{"edges.orbax", "manifest.ocdbt", 0, 300},
		{"", "plain.h5", 0, 9000},
		{"", "latest.h5", 0, 7000},
		{"keras", "net.keras", 4700, 14000},
		{"keras", "net.weights.json", 0, 536},
		{"folders.orbax", "d.table/.zarray", 0, 200},
		{"folders.orbax", "d.table/1.0", 0, 200},
	} {
		t.Run(c.folder+"/"+c.file, func(t *testing.T) {
			var dir string
			if c.folder != "" {
				dir = copyFolder(t, c.folder)
			} else {
				dir = t.TempDir()
			}
			whole, err := os.ReadFile(filepath.Join("testdata", c.folder, c.file))
			if err != nil {
				t.Fatal(err)
			}
			opened, errs := 0, map[string]int{}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range rounds {
				b := slices.Clone(whole)
				for range 1 + r.IntN(3) {
					at := c.from + r.IntN(min(c.to, len(b))-c.from)
					switch r.IntN(5) {
					case 0:
						b[at] ^= 1 << r.IntN(8)
					case 1:
						b[at] = byte(r.IntN(256))
					case 2:
						b = slices.Delete(b, at, min(at+1+r.IntN(8), len(b)))
					case 3:
						if at+8 <= len(b) {
							binary.LittleEndian.PutUint64(b[at:], r.Uint64()>>r.IntN(64))
						}
					case 4:
						b = b[:at+1]
					}
					if len(b) <= c.from+1 {
						break
					}
				}
				path := filepath.Join(dir, c.file)
				if err := os.WriteFile(path, b, 0o644); err != nil {
					t.Fatal(err)
				}
				if c.folder != "" && c.folder != "keras" {
					path = dir
				}
				f, err := Open(path, "")
				if err != nil {
					if strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000 {
						t.Errorf("error of %d bytes: %.300q", len(err.Error()), err)
					}
					errs[err.Error()]++
					continue
				}
				if err := readAll(f); err == nil {
					opened++
				} else if errs[err.Error()]++; f.inflated == 0 { // else damage shows when it is read
					t.Errorf("opened, then %v", err)
				}
				f.Close()
			}
			runtime.ReadMemStats(&after)
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 4*uint64(rounds) {
				t.Errorf("%d MB in %d rounds", mb, rounds)
			}
			t.Logf("%d of %d opened, %d different errors", opened, rounds, len(slices.Collect(maps.Keys(errs))))
			if len(errs) < min(4, rounds/20) {
				t.Errorf("only %d different errors", len(errs))
			}
		})
	}
}
