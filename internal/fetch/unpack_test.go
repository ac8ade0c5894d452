package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/internal/catalogue"
)

type entry struct {
	name, content string
	kind          byte
}

func archiveOf(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.content)), Typeflag: e.kind}
		if e.kind == tar.TypeSymlink || e.kind == tar.TypeLink {
			h.Linkname, h.Size, e.content = e.content, 0, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// archived is a set of images in two archives.
func archived(first, second []byte, address string) catalogue.Item {
	file := func(name string, b []byte) catalogue.File {
		return catalogue.File{Name: name, Addresses: []string{address}, Size: int64(len(b)), SHA256: sumOf(b)}
	}
	return catalogue.Item{Name: "set", Kind: catalogue.Images, Unpacked: 1000,
		Archives: []catalogue.File{file("first.tar.gz", first), file("second.tar.gz", second)}}
}

func TestArchive(t *testing.T) {
	first := archiveOf(t, entry{"top/", "", tar.TypeDir}, entry{"top/a", "one", tar.TypeReg},
		entry{"top/in/b", "two", tar.TypeReg})
	second := archiveOf(t, entry{"./other/a", "three", tar.TypeReg})
	s := serve(t, &server{content: first})
	it := archived(first, second, s.URL)
	read := func(dir, name, want string) {
		t.Helper()
		if b, err := os.ReadFile(filepath.Join(it.Path(dir), name)); string(b) != want {
			t.Errorf("%q, want %q, %v", b, want, err)
		}
	}
	dir := t.TempDir()
	for range 2 { // the second time it is there
		if _, err := Get(t.Context(), it, dir, options(t)); err != nil || s.requests.Load() != 1 {
			t.Fatal(err, s.requests.Load())
		}
	}
	read(dir, "a", "one")
	read(dir, "in/b", "two")
	if left, _ := filepath.Glob(filepath.Join(dir, "data", "*")); len(left) != 1 { // with the lock
		t.Errorf("left: %q", left)
	}

	dir = t.TempDir() // the other archive lies there: it is taken, and stays
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o777); err != nil {
		t.Fatal(err)
	}
	by := it.Place(dir, it.Archives[1])
	if err := os.WriteFile(by, second, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), it, dir, options(t)); err != nil || s.requests.Load() != 1 {
		t.Fatal(err, s.requests.Load())
	}
	read(dir, "a", "three")
	if _, err := os.Stat(by); err != nil {
		t.Error(err)
	}
}

func TestHostileArchives(t *testing.T) {
	good := entry{"top/a", "one", tar.TypeReg}
	whole := archiveOf(t, good)
	for _, c := range []struct {
		name, want string
		archive    []byte
	}{
		{"up", "is not in the folder", archiveOf(t, good, entry{"top/../../evil", "x", tar.TypeReg})},
		{"absolute", "is not in the folder", archiveOf(t, entry{"/evil", "x", tar.TypeReg})},
		{"beside", "is not in the folder", archiveOf(t, good, entry{"evil", "x", tar.TypeReg})},
		{"backslash", "is not in the folder", archiveOf(t, good, entry{`top/..\evil`, "x", tar.TypeReg})},
		{"link", "neither a file nor a folder", archiveOf(t, entry{"top/l", "/etc", tar.TypeSymlink})},
		{"hard link", "neither a file nor a folder", archiveOf(t, good, entry{"top/l", "/etc/passwd", tar.TypeLink})},
		{"device", "neither a file nor a folder", archiveOf(t, entry{"top/l", "", tar.TypeChar})},
		{"twice", "there twice", archiveOf(t, good, good)},
		{"a file as a folder", "not a directory", archiveOf(t, good, entry{"top/a/b", "x", tar.TypeReg})},
		{"too much", "more bytes than", archiveOf(t, good, entry{"top/b", strings.Repeat("x", 1000), tar.TypeReg})},
		{"cut", "unexpected EOF", whole[:len(whole)-12]},
		{"damaged", "", append(bytes.Clone(whole[:len(whole)-6]), 1, 2, 3, 4, 5, 6)},
		{"no archive", "gzip: invalid header", bytes.Repeat([]byte("something"), 10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, dir := serve(t, &server{content: c.archive}), t.TempDir()
			it := archived(c.archive, nil, s.URL)
			if _, err := Get(t.Context(), it, dir, options(t)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			found, _ := filepath.Glob(filepath.Join(dir, "data", "set*"))
			above, _ := filepath.Glob(filepath.Join(dir, "*"))
			if len(found) > 0 || len(above) != 1 {
				t.Errorf("left: %q %q", found, above)
			}
		})
	}
}

// TestFolderOfFiles is a set of single files, with the names of its classes.
func TestFolderOfFiles(t *testing.T) {
	content := random(1000)
	s, dir := serve(t, &server{content: content}), t.TempDir()
	it := item(content, s.URL)
	it.Kind, it.Classes = catalogue.Images, []string{"cat", "dog"}
	second := it.Files[0]
	second.Name = "b"
	it.Files = append(it.Files, second)
	path, err := Get(t.Context(), it, dir, options(t))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(path, "classes.txt")); string(b) != "cat\ndog\n" {
		t.Errorf("%q, %v", b, err)
	}
	if !it.Here(dir) {
		t.Error("not there")
	}
	if err := os.Remove(filepath.Join(path, "b")); err != nil {
		t.Fatal(err)
	}
	if it.Here(dir) {
		t.Error("there without one of its files")
	}
}
