package pack

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"onlinerna/data"
	"onlinerna/data/format"
)

// A second packing into the same folder is refused while the first goes on, and leaves it alone.
func TestLock(t *testing.T) {
	train, val := open(t, source(t))
	dir := t.TempDir()
	whole, out := filepath.Join(dir, "whole"), filepath.Join(dir, "out")
	if _, err := Run(context.Background(), train, val, whole, options); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	var second error
	opt := options
	opt.Progress = func(string, int, int) {
		once.Do(func() { _, second = Run(context.Background(), train, val, out, options) })
	}
	if _, err := Run(context.Background(), train, val, out, opt); err != nil {
		t.Error(err)
	}
	if second == nil || !strings.Contains(second.Error(), "another process packs into it") {
		t.Errorf("a second packing: %v", second)
	}
	sameFiles(t, out, whole)
	if left, err := filepath.Glob(filepath.Join(dir, "*.lock")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := Run(context.Background(), train, val, out, options); err == nil ||
		!strings.Contains(err.Error(), "exists already") {
		t.Errorf("a third packing: %v", err)
	}
	nothing(t, dir, "out", "whole")
}

// nothing fails if a folder has other files than those.
func nothing(t *testing.T, dir string, but ...string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if !slices.Contains(but, e.Name()) {
			t.Errorf("left: %s", e.Name())
		}
	}
}

// A packing that is refused before it begins leaves no lock.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := Run(context.Background(), data.Glyphs(format.GlyphTest), nil, filepath.Join(dir, "out"),
		options); err == nil || !strings.Contains(err.Error(), "stores pixels") {
		t.Error(err)
	}
	nothing(t, dir)
}

// A folder whose name has 250 bytes is packed like any other.
func TestLongName(t *testing.T) {
	train, val := open(t, source(t))
	dir := t.TempDir()
	whole, out := filepath.Join(dir, "whole"), filepath.Join(dir, strings.Repeat("ä", 125))
	for _, out := range []string{whole, out} {
		if _, err := Run(context.Background(), train, val, out, options); err != nil {
			t.Fatal(err)
		}
	}
	sameFiles(t, out, whole)
	nothing(t, dir, "whole", filepath.Base(out))
}
