package safetensors

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/checksum"
)

func written(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.safetensors")
	w, err := Create(path, []Tensor{{Name: "a", DType: F32, Shape: []int{n}}, {Name: "b", DType: I64, Shape: []int{2}}},
		map[string]string{"kind": "rna", "zoo": "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	x := make([]float32, n)
	for i := range x {
		x[i] = rand.Float32()
	}
	if err := errors.Join(w.Write("a", x), w.Write("b", []int64{3, 4}), w.Commit()); err != nil {
		t.Fatal(err)
	}
	return path
}

func verify(path string) (bool, error) {
	f, err := Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return f.Verify()
}

// Every flipped bit of a file is detected.
func TestEveryBit(t *testing.T) {
	path := written(t, 3)
	if ok, err := verify(path); !ok || err != nil {
		t.Fatal(ok, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := verify(path); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("bit %d of byte %d flipped: %v", bit, i, err)
			}
			b[i] ^= 1 << bit
		}
	}
}

func TestDamagedBlock(t *testing.T) {
	path := written(t, 700_000)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := len(b) - 1_000_000
	b[at] ^= 4
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = verify(path)
	var d *checksum.DamagedError
	if !errors.As(err, &d) || int64(at) < d.From || int64(at) >= d.To || !strings.HasSuffix(err.Error(), "(a)") {
		t.Errorf("%v", err)
	}
}

// A file written in parts in any order has checksums, too, and its metadata hides them.
func TestVerifyParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	w, err := Create(path, []Tensor{{Name: "a", DType: F32, Shape: []int{4}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := errors.Join(w.WriteAt("a", make([]byte, 8), 8), w.WriteAt("a", slices.Repeat([]byte{7}, 8), 0),
		w.CommitUnsynced()); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if ok, err := f.Verify(); !ok || err != nil || len(f.Metadata) > 0 {
		t.Error(ok, err, f.Metadata)
	}
}

// Files of other programs have no checksums.
func TestUnsealed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	head := `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  `
	if err := os.WriteFile(path, append([]byte{byte(len(head)), 0, 0, 0, 0, 0, 0, 0}, head+"abcd"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if ok, err := verify(path); ok || err != nil {
		t.Error(ok, err)
	}
}
