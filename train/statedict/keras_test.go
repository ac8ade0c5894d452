package statedict

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// numbersOf reads all tensors as float64, by name.
func numbersOf(t *testing.T, f *File) map[string][]float64 {
	t.Helper()
	all := map[string][]float64{}
	for _, x := range f.Tensors {
		v := make([]float64, x.Len())
		if err := f.Float64s(x, v); err != nil {
			t.Fatal(err)
		}
		all[x.Name] = v
	}
	return all
}

// TestKeras reads the weights of one net from Keras's three forms, and compares them with those that h5py reads.
func TestKeras(t *testing.T) {
	want := numbersOf(t, open(t, "testdata/keras/net.npz", ""))
	if len(want) != 11 {
		t.Fatalf("%d tensors", len(want))
	}
	for path, shards := range map[string]int{"net.keras": 1, "net.weights.h5": 1, "net.weights.json": 4} {
		f := open(t, filepath.Join("testdata/keras", path), "")
		if got := numbersOf(t, f); f.Form != HDF5 || f.Shards != shards || !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: %s of %d shards: %v, want %v", path, f.Form, f.Shards, got, want)
		}
		if x, _ := f.Lookup("layers/dense_1/vars/0"); x.DType != "BF16" {
			t.Errorf("%s: %s", path, x.DType)
		}
		f = open(t, filepath.Join("testdata/keras", path), "layers/dense")
		if got := numbersOf(t, f); len(got) != 2 || !slices.Equal(got["vars/0"], want["layers/dense/vars/0"]) {
			t.Errorf("%s under layers/dense: %v", path, got)
		}
		for key, want := range map[string]string{"layer": "there is no tensor under key",
			"optimizer": "the state of an optimiser alone, 2 tensors"} {
			_, err := Open(filepath.Join("testdata/keras", path), key)
			if err == nil || !strings.Contains(err.Error(), want) && path != "net.weights.json" {
				t.Errorf("%s under %s: %v", path, key, err)
			}
		}
	}
	kind, what := open(t, "testdata/keras/net_00001.weights.h5", "").Contents()
	if kind != Shard || !strings.HasSuffix(what, "name its index, testdata/keras/net.weights.json") {
		t.Errorf("a shard alone: %v, %s", kind, what)
	}
}

// TestBadKerasIndex opens false indexes of Keras.
func TestBadKerasIndex(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`"net_00002.weights.h5",`, ``, "its shards have 136 bytes, they have 100"},
		{`"net_00000`, `"../net_00000`, "not the name of a file beside the index"},
		{`"net_00000`, `"gone`, "no such file"},
		{`"net_00000.weights.h5"`, `{}`, "not the name of a file"},
		{`"net_00000.weights.h5"`, `"net_00000.weights.h5", "net_00001.weights.h5"`,
			`says that tensors of "layers/dense/vars"`},
		{`"net_00000.weights.h5"`, `"net.npz"`, "not HDF5"},
		{`"net_00000.weights.h5"`, `"net.weights.h5"`, "is in "},
	} {
		dir := copyFolder(t, "keras")
		path := filepath.Join(dir, "net.weights.json")
		replace(t, path, c.from, c.to)
		refused(t, path, c.want)
	}
}

// TestRefusedHDF5 opens arrays that are not in one piece, and archives without numbers.
func TestRefusedHDF5(t *testing.T) {
	for _, c := range []struct{ file, from, to, want string }{
		{"plain.h5", "\x03\x01", "\x03\x02", "it is in chunks"}, // of a layout
		{"keras/net.keras", "model.weights.h5", "model.weights.h6", "without model.weights.h5"},
	} {
		dir := copyFolder(t, filepath.Dir(c.file))
		path := filepath.Join(dir, filepath.Base(c.file))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := strings.ReplaceAll(string(b), c.from, c.to)
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
		refused(t, path, c.want)
	}
}
