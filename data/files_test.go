//go:build unix

package data

import (
	"path/filepath"
	"syscall"
	"testing"

	"onlinerna/data/internal/datatest"
)

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
