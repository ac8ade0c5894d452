package files

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestOtherDevice finds mount points where Linux does not tell them.
func TestOtherDevice(t *testing.T) {
	if otherDevice(t.TempDir()) || !otherDevice("/proc") {
		t.Error("mount points are mistaken")
	}
}

// TestBindMount finds a mount point of the same file system, which the device does not tell.
func TestBindMount(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := errors.Join(os.Mkdir(a, 0o755), os.Mkdir(b, 0o755)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	skip := ""
	go func() {
		defer close(done)
		runtime.LockOSThread() // to the end: the thread with its own mounts ends with this goroutine
		err := syscall.Unshare(syscall.CLONE_NEWNS | syscall.CLONE_FS)
		if err == nil {
			err = syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
		}
		if err == nil {
			err = syscall.Mount(a, b, "", syscall.MS_BIND, "")
		}
		if err != nil {
			skip = err.Error()
			return
		}
		if IsMount(a) || !IsMount(b) {
			t.Error("a bind mount is mistaken")
		}
		if err := renameFolder(a, b); !errors.Is(err, syscall.EBUSY) {
			t.Error(err)
		}
	}()
	if <-done; skip != "" {
		t.Skip("no mounts here: ", skip)
	}
}
