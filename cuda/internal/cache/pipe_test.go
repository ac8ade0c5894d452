//go:build unix

package cache

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A named pipe in the folder is not a cached file, and no reader waits for its writer.
func TestPipe(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"x", "x.lock"} {
		if err := syscall.Mkfifo(filepath.Join(folder, name), 0o600); err != nil {
			t.Skip(err)
		}
	}
	done := make(chan bool)
	go func() {
		if _, ok := Read(folder, "x"); ok {
			t.Error("a pipe is read")
		}
		Alone(folder, "x")()
		Write(folder, "x", []byte("made"))
		if b, ok := Read(folder, "x"); !ok || string(b) != "made" {
			t.Errorf("%q, %v", b, ok)
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for who writes to a pipe")
	}
}
