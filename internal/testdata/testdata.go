// Package testdata finds the real data that some tests look at and that are no part of the module: the folder shared
// beside it, with data and reference in it.
package testdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Require is the environment variable that, set to require, makes tests fail that would be skipped for lack of data.
const Require = "ONLINERNA_DATA"

// Shared is the path of name, with slashes, in the folder shared. Without it the test is skipped.
func Shared(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(root(t), "..", "shared", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		if os.Getenv(Require) == "require" {
			t.Fatalf("%s is not there, and %s requires it", path, Require)
		}
		t.Skipf("needs %s", path)
	}
	return path
}

// root is the module's folder: tests run in that of their package.
func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test does not run within a module")
		}
	}
}
