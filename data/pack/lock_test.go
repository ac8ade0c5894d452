package pack

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
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
}
