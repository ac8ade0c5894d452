package files

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestBeside names another process only if that has the lock.
func TestBeside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	hidden, unlock, err := Beside(path, "merge")
	if err != nil || hidden != Hidden(path, "merge") {
		t.Fatal(hidden, err)
	}
	defer unlock()
	if _, _, err := Beside(path, "merge"); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(),
		path+": another rna merge writes it") {
		t.Error(err)
	}
	_, _, err = Beside(filepath.Join(dir, "none", "out"), "merge")
	if !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "another rna") {
		t.Error(err)
	}
}
