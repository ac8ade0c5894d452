// Package golden reads PyTorch's results for single ops and whole networks, and rebuilds the weights and inputs behind
// them, for tests.
//
// The data lie in the folder shared/reference/torch above the module, with the scripts that made them; tests skip where
// it is absent. All was computed in float64 from operands rounded to float32.
package golden

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Shared gives the path of an element of the shared folder, which lies beside the module or further up. It skips the
// test if there is none.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(append([]string{"shared"}, elem...)...)
	for {
		found := filepath.Join(dir, path)
		_, err := os.Stat(found)
		if err == nil {
			return found
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Skipf("no %s above this package", path)
		}
		dir = up
	}
}

// Torch gives the path of a file of PyTorch's results, as "net_resnet20.json", or of their folder for "". It skips the
// test if there is none.
func Torch(t testing.TB, file string) string {
	t.Helper()
	return Shared(t, "reference", "torch", file)
}
