package merge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"onlinerna/internal/files"
	"onlinerna/train/extrapolate"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
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

// private checks the permissions of a folder.
func private(t *testing.T, dir string, want os.FileMode) {
	t.Helper()
	st, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Mode() &^ os.ModeDir; runtime.GOOS != "windows" && got != want {
		t.Errorf("%s has mode %v, want %v", dir, got, want)
	}
}

// TestPermissions keeps those of an empty folder, from the first shard on; its owner can write.
func TestPermissions(t *testing.T) {
	dir := t.TempDir()
	s := series(t, 2, walk(t, dir, 2)...)
	rules := extrapolate.Linear(Mean(2))
	for mode, want := range map[os.FileMode]os.FileMode{0o700: 0o700, 0o500: 0o700, 0o775: 0o775,
		0o770 | os.ModeSetgid: 0o770 | os.ModeSetgid} {
		o := Output{Path: filepath.Join(dir, "out"+mode.String()), ShardSize: 5000}
		if err := errors.Join(os.Mkdir(o.Path, 0o777), os.Chmod(o.Path, mode)); err != nil {
			t.Fatal(err)
		}
		stop := errors.New("stopped")
		if _, err := Write(t.Context(), s, stopping(rules, "b.weight", stop), o); !errors.Is(err, stop) {
			t.Error(err)
		}
		private(t, files.Hidden(o.Path, "merge"), want)
		o.Resume = true
		if _, err := Write(t.Context(), s, rules, o); err != nil {
			t.Error(err)
		}
		private(t, o.Path, want)
	}
}

// TestLastStep resumes a merge that was stopped between the rename of its folder and the removal of its plan.
func TestLastStep(t *testing.T) {
	dir := t.TempDir()
	paths := walk(t, dir, 2)
	s := series(t, 2, paths...)
	rules := extrapolate.Linear(Mean(2))
	o := Output{Path: filepath.Join(dir, "out"), ShardSize: 5000}
	plan := filepath.Join(o.Path, planName)
	files.Fault = func(call, path string) error {
		if call == "remove" && path == plan {
			return syscall.EIO
		}
		return nil
	}
	t.Cleanup(func() { files.Fault = nil })
	if _, err := Write(t.Context(), s, rules, o); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "--resume") {
		t.Error(err)
	}
	files.Fault = nil
	if _, err := Write(t.Context(), s, rules, o); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Error(err)
	}
	other := o
	other.Resume, other.ShardSize = true, 6000
	other.Metadata = map[string]string{"merge": "other"}
	_, err := Write(t.Context(), s, rules, other)
	if err == nil || !strings.Contains(err.Error(), o.Path+" is of another merge") || !files.IsRegular(plan) {
		t.Error(err)
	}
	o.Resume = true
	computed := errors.New("computed again")
	rankstest.Run(t, 2, time.Minute, func(g *ranks.Group) error {
		list, err := (&extrapolate.Window{Order: extrapolate.Given}).Open(context.Background(), paths,
			extrapolate.Options{Workers: 1, Ranks: g})
		if err != nil {
			return err
		}
		defer list.Close()
		o := o
		o.Ranks = g
		w, err := Write(context.Background(), list, stopping(rules, "b.weight", computed), o)
		if err == nil && (w.Shards != 3 || w.Resumed != 3) {
			err = fmt.Errorf("%+v", w)
		}
		return err
	})
	whole := filepath.Join(dir, "whole")
	if _, err := Write(t.Context(), s, rules, Output{Path: whole, ShardSize: 5000}); err != nil {
		t.Fatal(err)
	}
	equal(t, o.Path, whole)
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); left != nil {
		t.Errorf("left behind: %v", left)
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
	was, err := os.Stat(empty)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Output{Path: empty}).Check(); err != nil {
		t.Error(err)
	}
	onlyEmpty(t, empty)
	if st, err := os.Stat(empty); err != nil || !os.SameFile(st, was) {
		t.Errorf("a check replaced the folder: %v", err)
	}
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
	private(t, empty, 0o750)
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
