//go:build unix

package format

import (
	"path/filepath"
	"syscall"
	"testing"

	"onlinerna/data/internal/datatest"
)

// A named pipe is an error, not a wait for its writer.
func TestNamedPipe(t *testing.T) {
	dir := t.TempDir()
	datatest.Write(t, dir, "train/a/0.jpg", datatest.JPEG(t, 20, 20, 1))
	for _, name := range []string{"train/a/pipe.jpg", "train-0.tar", "train.parquet", "train.tfrecord",
		"train.rnaraw"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Skip(err)
		}
	}
	ds, err := OpenFolder(filepath.Join(dir, "train"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = decode(ds, 1, new(Buffer))
	datatest.WantError(t, err, "pipe.jpg", "no regular file")
	ds.(Expecter).Expect(1)
	for _, name := range []string{"train-0.tar", "train.parquet", "train.tfrecord", "train.rnaraw"} {
		_, err := openFile(filepath.Join(dir, name), nil, "")
		datatest.WantError(t, err, name, "no regular file")
	}
}
