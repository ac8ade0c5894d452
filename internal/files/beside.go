package files

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// Hidden is the name of the hidden folder beside path in which the given kind of work is done.
func Hidden(path, kind string) string {
	path = filepath.Clean(path)
	return filepath.Join(filepath.Dir(path), "."+stem(path)+"."+kind)
}

// Beside locks the hidden folder beside path in which the given kind of work is done, and returns its name. The folder
// may be missing, or there from a killed process. One that another process has locked is an error.
func Beside(path, kind string) (dir string, unlock func(), err error) {
	dir = Hidden(path, kind)
	l, err := Lock(context.Background(), dir+".lock", nil)
	switch {
	case errors.Is(err, ErrLocked):
		return "", nil, fmt.Errorf("%s: another rna %s writes it: %w", path, kind, err)
	case err != nil:
		return "", nil, fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return dir, func() { l.Unlock(true) }, nil
}
