package merge

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"onlinerna/internal/files"
	"onlinerna/train/extrapolate"
)

// busy makes renames to a path fail as those to a mount point, until the test ends.
func busy(t *testing.T, path string) {
	files.Fault = func(call, to string) error {
		if call == "rename" && to == path {
			return syscall.EBUSY
		}
		return nil
	}
	t.Cleanup(func() { files.Fault = nil })
}

// onlyEmpty checks that a folder is there, with its permissions, and that there is nothing else beside it but inputs.
func onlyEmpty(t *testing.T, dir string) {
	t.Helper()
	if st, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && st.Mode().Perm() != 0o750 {
		t.Errorf("%v, %v", st, err)
	}
	if got := contents(t, dir); len(got) != 0 {
		t.Errorf("%d files are in %s", len(got), dir)
	}
	all, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

// TestKeptFolders refuses, before any work, empty folders that a rename cannot replace.
func TestKeptFolders(t *testing.T) {
	dir := t.TempDir()
	empty, nothing := filepath.Join(dir, "empty"), filepath.Join(dir, "to-nothing")
	if err := os.Mkdir(empty, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "nothing"), nothing); err != nil {
		t.Skip(err)
	}
	if err := (&Output{Path: empty}).Check(); err != nil {
		t.Error(err)
	}
	onlyEmpty(t, empty)
	refused := func(path, want string) {
		t.Helper()
		for _, err := range []error{(&Output{Path: path}).Check(), MergeAdapters(nil, nil, path)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", path, err, want)
			}
		}
		onlyEmpty(t, empty)
	}
	refused(nothing, "is a link to "+filepath.Join(dir, "nothing")+", which is not there")
	busy(t, empty)
	refused(empty, "cannot be replaced: name a new folder, as "+filepath.Join(empty, "merged"))
	files.Fault = nil
	t.Chdir(empty)
	refused(".", "is the current folder")
	refused(empty, "is the current folder")
}

// TestLinkedFolder merges into the empty folder that a link names: the work is done beside that folder.
func TestLinkedFolder(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	link, empty := filepath.Join(dir, "link"), filepath.Join(other, "[empty")
	if err := os.Mkdir(empty, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(empty, link); err != nil {
		t.Skip(err)
	}
	s := series(t, 2, walk(t, dir, 2)...)
	rules := extrapolate.Linear(Mean(2))
	stop := errors.New("stopped")
	o := Output{Path: link, ShardSize: 5000}
	_, err := Write(t.Context(), s, stopping(rules, "b.weight", stop), o)
	if hidden := files.Hidden(empty, "merge"); err == nil || !strings.Contains(err.Error(), "(2 of 3 shards are in "+hidden) {
		t.Error(err)
	}
	o.Resume = true
	if w, err := Write(t.Context(), s, rules, o); err != nil || w.Resumed != 2 {
		t.Fatalf("%+v, %v", w, err)
	}
	whole := filepath.Join(dir, "whole")
	if _, err := Write(t.Context(), s, rules, Output{Path: whole, ShardSize: 5000}); err != nil {
		t.Fatal(err)
	}
	equal(t, link, whole)
	if to, err := os.Readlink(link); err != nil || to != empty {
		t.Errorf("the link names %q, %v", to, err)
	}
}

// TestRenameFails resumes a merge whose last step failed from all its shards.
func TestRenameFails(t *testing.T) {
	dir := t.TempDir()
	s := series(t, 2, walk(t, dir, 2)...)
	rules := extrapolate.Linear(Mean(2))
	o := Output{Path: filepath.Join(dir, "out"), ShardSize: 5000}
	busy(t, o.Path)
	_, err := Write(t.Context(), s, rules, o)
	if !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "--resume") {
		t.Error(err)
	}
	files.Fault = nil
	o.Resume = true
	if w, err := Write(t.Context(), s, rules, o); err != nil || w.Resumed != 3 {
		t.Fatalf("%+v, %v", w, err)
	}
	whole := filepath.Join(dir, "whole")
	if _, err := Write(t.Context(), s, rules, Output{Path: whole, ShardSize: 5000}); err != nil {
		t.Fatal(err)
	}
	equal(t, o.Path, whole)
}
