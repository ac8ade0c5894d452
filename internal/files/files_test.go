package files

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func list(t *testing.T, dir string) string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x")
	if err := Write(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("x", link); err != nil {
		t.Skip(err)
	}
	if err := Write(link, []byte("two")); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(path)
	st, _ := os.Lstat(path)
	if l, err := os.Readlink(link); string(b) != "two" || st.Mode() != 0o640 || l != "x" || err != nil {
		t.Errorf("%q, %v, link to %s, %v", b, st.Mode(), l, err)
	}
	if got := list(t, dir); got != "link x" {
		t.Errorf("left: %s", got)
	}
}

func TestAbort(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	if err := Write(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Write([]byte("other"))
	f.Abort()
	f.Abort()
	if b, _ := os.ReadFile(path); string(b) != "one" || list(t, dir) != "x" {
		t.Errorf("%q, %s", b, list(t, dir))
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{"nothing": "which is not there", "folder": "no regular file"} {
		path := filepath.Join(dir, name)
		var err error
		if name == "folder" {
			err = os.Mkdir(path, 0o755)
		} else {
			err = os.Symlink("nowhere", path)
		}
		if err != nil {
			t.Skip(err)
		}
		if err := Write(path, nil); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := filepath.Join(dir, "file")
	if err := Write(path, nil); err != nil {
		t.Fatal(err)
	}
	if err := MkdirAll(filepath.Join(path, "below")); err == nil {
		t.Error("a folder in a file")
	}
}

// A new file has the permissions of this user's other new files.
func TestUmask(t *testing.T) {
	dir := t.TempDir()
	want := filepath.Join(dir, "want")
	if err := os.WriteFile(want, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	got := filepath.Join(dir, "got")
	if err := Write(got, nil); err != nil {
		t.Fatal(err)
	}
	a, _ := os.Stat(want)
	b, _ := os.Stat(got)
	if a.Mode() != b.Mode() {
		t.Errorf("mode %v, others have %v", b.Mode(), a.Mode())
	}
}

// The longest names that file systems take can be written.
func TestLongNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{strings.Repeat("x", 250), strings.Repeat("y", 255), strings.Repeat("ä", 127)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Skip(err)
		}
		if err := Write(path, []byte("content")); err != nil {
			t.Errorf("%d bytes: %v", len(name), err)
		}
	}
}

// TestRenameFolder replaces an empty folder, which stays if the rename fails.
func TestRenameFolder(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.Mkdir(to, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := RenameFolder(from, to); !os.IsNotExist(err) {
		t.Error(err)
	}
	if st, err := os.Stat(to); err != nil || !st.IsDir() {
		t.Error(st, err)
	}
	if err := os.MkdirAll(filepath.Join(from, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := RenameFolder(from, to); err != nil {
		t.Error(err)
	}
	if got := list(t, to); got != "in" {
		t.Errorf("in the folder: %q", got)
	}
}

func TestIsMount(t *testing.T) {
	dir := t.TempDir()
	if IsMount(dir) || IsMount(filepath.Join(dir, "none")) {
		t.Error("a folder of a test is taken for a mount point")
	}
	if runtime.GOOS == "linux" && (!IsMount("/proc") || !IsMount("/")) {
		t.Error("/ or /proc is not taken for a mount point")
	}
}
