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

// otherDevice reports whether a folder is on another device than the folder above it.
func otherDevice(dir string) bool {
	own, err := os.Stat(dir)
	above, err2 := os.Stat(dir + "/..")
	if err != nil || err2 != nil {
		return false
	}
	a, ok := own.Sys().(*syscall.Stat_t)
	b, ok2 := above.Sys().(*syscall.Stat_t)
	return ok && ok2 && a.Dev != b.Dev
}
