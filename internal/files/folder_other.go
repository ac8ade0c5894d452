//go:build !unix

package files

import (
	"errors"
	"os"
)

// renameFolder replaces an empty folder in two steps; if the second fails, it makes the folder again.
func renameFolder(from, to string) error {
	st, err := os.Lstat(to)
	replaced := err == nil && st.IsDir()
	if replaced {
		if err := os.Remove(to); err != nil {
			return err
		}
	}
	if err = os.Rename(from, to); err != nil && replaced {
		err = errors.Join(err, os.Mkdir(to, st.Mode().Perm()))
	}
	return err
}

// IsMount reports whether a folder is known to be a mount point, which no rename can replace.
func IsMount(string) bool { return false }
