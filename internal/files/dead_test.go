package files

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestRemoveDead finds the unfinished files of one name that nobody writes any more.
func TestRemoveDead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.pt")
	living, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer living.Abort()
	others := []string{".out.pt.0123456", ".out.pt.0123456g", ".out.safetensors.01234567", "out.pt.01234567", ".out.pt.old.01234567"}
	for _, name := range append(others, ".out.pt.01234567", ".out.pt.89abcdef") {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveDead(path); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(others, filepath.Base(living.Name())) {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{".out.pt.01234567", ".out.pt.89abcdef"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	if _, err := living.WriteString("whole"); err != nil {
		t.Fatal(err)
	}
	if err := living.Commit(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "whole" {
		t.Errorf("%q, %v", b, err)
	}
	if runtime.GOOS == "linux" { // the folder of a link's target is searched
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		dead := filepath.Join(dir, ".out.pt.76543210")
		if err := os.WriteFile(dead, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := RemoveDead(link); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dead); err == nil {
			t.Error("what a writer through a link left is left")
		}
	}
}
