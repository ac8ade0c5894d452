//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package files

import (
	"os"
	"syscall"
)

// lock marks a file as being written, as long as it is open. It returns false if [RemoveDead] was faster. File systems
// without locks are accepted: their files are never removed.
func lock(f *os.File) bool {
	switch syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) {
	case syscall.EWOULDBLOCK:
		return false
	case nil:
		own, err := f.Stat()
		now, err2 := os.Stat(f.Name())
		return err == nil && err2 == nil && os.SameFile(own, now)
	}
	return true
}

// removeUnlocked removes a file that nobody has locked.
func removeUnlocked(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil // removed by its writer, or by someone else
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil
	}
	return Remove(name)
}
