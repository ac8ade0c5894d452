package pack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"onlinerna/internal/files"
)

// lock keeps other processes from packing into the folder work. The file stays beside the folder while it is partial.
func lock(work string) (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(work), 0o755); err != nil {
		return nil, err
	}
	l, err := files.Lock(context.Background(), work+".lock", nil)
	if errors.Is(err, files.ErrLocked) {
		return nil, fmt.Errorf("%s: another process packs into it: wait for its end, or name another folder", work)
	} else if err != nil {
		return nil, fmt.Errorf("the lock of %s: %w", work, err)
	}
	return func() error {
		os.Remove(work) // an empty folder is nothing to go on with
		_, err := os.Lstat(work)
		return l.Unlock(errors.Is(err, fs.ErrNotExist))
	}, nil
}
