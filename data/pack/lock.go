package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

// lock keeps other processes from packing into the folder work. The file stays beside the folder until the set is
// whole; the system releases the lock of a process that dies.
func lock(work string) (unlock func(whole bool) error, err error) {
	if err := os.MkdirAll(filepath.Dir(work), 0o755); err != nil {
		return nil, err
	}
	path := work + ".lock"
	l := flock.New(path, flock.SetPermissions(0o666))
	got, err := l.TryLock()
	switch {
	case errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK): // a file system without locks
		return func(bool) error { return nil }, nil
	case err != nil:
		return nil, fmt.Errorf("the lock of %s: %w", work, err)
	case !got:
		return nil, fmt.Errorf("%s: another process packs into it: wait for its end, or name another folder", work)
	}
	return func(whole bool) error {
		err := l.Close()
		if whole {
			if e := os.Remove(path); !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		return err
	}, nil
}
