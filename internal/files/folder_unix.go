//go:build unix

package files

import (
	"os"
	"syscall"
)

// renameFolder replaces an empty folder in one step, which os.Rename refuses.
func renameFolder(from, to string) error {
	for {
		err := syscall.Rename(from, to)
		if err == nil {
			return nil
		}
		if err != syscall.EINTR {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
	}
}
