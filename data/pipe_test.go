//go:build unix

package data

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A named pipe is an error, not a wait for who writes to it.
func TestNamedPipe(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "train/a/0.jpg", encodeJPEG(t, 20, 20, 1))
	for _, name := range []string{"train/a/pipe.jpg", "train-0.tar", "train.parquet", "train.tfrecord", "train.rnaraw"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Skip(err)
		}
	}
	ds, err := openFolder(filepath.Join(dir, "train"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = ds.Read(1, nil, new(Scratch))
	wantError(t, err, "pipe.jpg", "no regular file")
	expect(ds, 1)
	for _, name := range []string{"train-0.tar", "train.parquet", "train.tfrecord", "train.rnaraw"} {
		_, err := openFile(filepath.Join(dir, name), nil)
		wantError(t, err, name, "no regular file")
	}
	pipes := NewUnlabelled(3)
	if err := pipes.AddFile(filepath.Join(dir, "train/a/pipe.jpg")); err != nil {
		t.Fatal(err)
	}
	_, err = pipes.Read(0, nil, new(Scratch))
	wantError(t, err, "pipe.jpg", "no regular file")
}
