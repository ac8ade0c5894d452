package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// restarted makes this process forget the paths that it has swept, as a new process.
func restarted() { swept.Clear() }

// Files in the making of killed writers go at the next start; those of living ones, and other files, stay.
func TestCreateSweeps(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	others := []string{".x.0123456", ".x.01234567.bak", ".xy.01234567", "x.01234567"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	killed, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	living, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	killed.File.Close()
	if err := os.WriteFile(filepath.Join(dir, ".x.01234567"), nil, 0o666); err != nil { // by an older program
		t.Fatal(err)
	}
	restarted()
	if err := Write(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	want := append([]string{filepath.Base(living.Name()), "x"}, others...)
	got := strings.Fields(list(t, dir))
	if len(got) != len(want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := living.Commit(); err != nil {
		t.Error(err)
	}
}

func TestMkdirTemp(t *testing.T) {
	above := t.TempDir()
	make := func() (string, func() error) {
		t.Helper()
		dir, remove, err := MkdirTemp(above, "work-*")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o666); err != nil {
			t.Fatal(err)
		}
		return dir, remove
	}
	for _, name := range []string{"work-1/a", "work-1/" + marker, "work-2026/a", "work-mine/a", "work-mine/" + marker} {
		path := filepath.Join(above, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, nil, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	living, remove := make()
	restarted()
	second, removeSecond := make()
	got := strings.Fields(list(t, above))
	want := []string{filepath.Base(living), filepath.Base(second), "work-2026", "work-mine"} // not work-1 of a killed process
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := errors.Join(remove(), removeSecond()); err != nil || list(t, above) != "work-2026 work-mine" {
		t.Errorf("%v, left %s", err, list(t, above))
	}
	for _, name := range []string{"work-2026/a", "work-mine/a"} { // a user's
		if _, err := os.Stat(filepath.Join(above, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestRemoveLeft removes leftovers of the given names, and no user's file whose name looks alike.
func TestRemoveLeft(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".a.json.0011aabb", ".key.0011aabb", ".a.json.0011aabbc", "a.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveLeft(dir, regexp.MustCompile(`^a\.json$`)); err != nil {
		t.Fatal(err)
	}
	if got := list(t, dir); got != ".a.json.0011aabbc .key.0011aabb a.json" {
		t.Errorf("left: %s", got)
	}
}

// Processes that write the same file at once, and sweep for one another, all succeed.
func TestCreateTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				restarted()
				if err := Write(path, []byte("content")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := list(t, filepath.Dir(path)); got != "x" {
		t.Errorf("left: %s", got)
	}
}

// Only one process has a lock at a time, also while its file is removed.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(t.Context(), path, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, path, func() {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a lock to wait for: %v", err)
	}
	if err := l.Unlock(true); err != nil {
		t.Error(err)
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for k := range 5 {
				l, err := Lock(t.Context(), path, func() {})
				if err != nil {
					t.Error(err)
					return
				}
				if !mu.TryLock() {
					t.Error("two have the lock")
				} else {
					time.Sleep(time.Millisecond)
					mu.Unlock()
				}
				if err := l.Unlock(k%2 == 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

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
