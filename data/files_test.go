//go:build unix

package data

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"onlinerna/data/internal/datatest"
)

// Images behind links to folders are found, as in training, also if the folder itself is a link.
func TestUnlabelledLinks(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(dir, "a.jpg"), filepath.Join(elsewhere, "b.jpg")} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	z, up := filepath.Join(dir, "z"), filepath.Join(elsewhere, "up")
	for to, from := range map[string]string{z: elsewhere, up: dir, link: dir} {
		if err := os.Symlink(from, to); err != nil {
			t.Skip(err)
		}
	}
	d := NewUnlabelled(3)
	want := []string{filepath.Join(link, "a.jpg"), filepath.Join(link, "z/b.jpg")}
	if err := d.AddFile(link); err != nil || !slices.Equal(d.names, want) {
		t.Errorf("%v, %v", d.names, err)
	}
}

// A named pipe among unlabelled images is an error, not a wait for its writer.
func TestUnlabelledPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.jpg")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	pipes := NewUnlabelled(3)
	if err := pipes.AddFile(pipe); err != nil {
		t.Fatal(err)
	}
	_, err := pipes.Read(0, nil, new(Scratch))
	datatest.WantError(t, err, "pipe.jpg", "no regular file")
}
