package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// ErrLocked means that another process has a lock.
var ErrLocked = errors.New("another process has it")

// Lock makes a file that only one process has at a time: the system releases it when that process dies. If another has
// it, Lock calls wait, and takes it when that one is done; without wait it returns ErrLocked. On file systems without
// locks every process gets it.
func Lock(ctx context.Context, path string, wait func()) (*Locked, error) {
	for {
		f := flock.New(path, flock.SetPermissions(0o666))
		got, err := f.TryLock()
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK) {
			return &Locked{}, nil
		}
		if err == nil && !got {
			if wait == nil {
				return nil, ErrLocked
			}
			wait()
			wait = func() {}
			if got, err = f.TryLockContext(ctx, 100*time.Millisecond); err == nil && !got {
				err = ctx.Err()
			}
		}
		if err != nil {
			return nil, err
		}
		own, err := f.Stat()
		named, gone := os.Stat(path)
		if err != nil || gone == nil && os.SameFile(own, named) {
			return &Locked{f}, err
		}
		f.Close() // it was removed by the process that had it
	}
}

// Locked is a file that this process has. The zero Locked is of a file system without locks.
type Locked struct{ file *flock.Flock }

// Unlock lets other processes have the file, and removes it first if remove is set.
func (l *Locked) Unlock(remove bool) error {
	if l.file == nil {
		return nil
	}
	var err error
	if remove && runtime.GOOS != "windows" { // there a process removes only files that it does not hold
		if err = os.Remove(l.file.Path()); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return errors.Join(err, l.file.Close())
}
