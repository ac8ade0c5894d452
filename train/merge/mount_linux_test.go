package merge

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestMountPoint refuses an empty mount point before any work.
func TestMountPoint(t *testing.T) {
	at := filepath.Join(t.TempDir(), "at")
	if err := os.Mkdir(at, 0o750); err != nil {
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
			err = syscall.Mount(at, at, "", syscall.MS_BIND, "")
		}
		if err != nil {
			skip = err.Error()
			return
		}
		want := "is a mount point, which cannot be replaced: name a new folder, as " + filepath.Join(at, "merged")
		for _, err := range []error{(&Output{Path: at}).Check(), MergeAdapters(nil, nil, at)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		}
		onlyEmpty(t, at)
	}()
	if <-done; skip != "" {
		t.Skip("no mounts here: ", skip)
	}
}
