//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package files

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
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

// hold keeps the lock of a file that is closed until release is called.
func hold(f *os.File) (release func()) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	return func() { unix.Close(fd) }
}

// removeUnlocked removes a file, or a folder with all in it, that nobody has locked.
func removeUnlocked(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, syscall.EISDIR) {
		f, err = os.Open(name)
	}
	if err != nil {
		return nil // removed by its writer, or by someone else
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil
	}
	return RemoveAll(name)
}
