package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Beside locks the hidden folder beside path in which the given kind of work is done, and returns its name. The folder
// may be missing, or there from a killed process. One that another process has locked is an error.
func Beside(path, kind string) (dir string, unlock func(), err error) {
	path = filepath.Clean(path)
	dir = filepath.Join(filepath.Dir(path), "."+stem(path)+"."+kind)
	l := flock.New(dir + ".lock")
	if ok, err := l.TryLock(); err != nil || !ok {
		return "", nil, errors.Join(fmt.Errorf("%s: another rna %s writes it", path, kind), err)
	}
	return dir, func() {
		os.Remove(l.Path())
		l.Unlock()
	}, nil
}
