//go:build !unix

package files

import "os"

func renameFolder(from, to string) error {
	if st, err := os.Lstat(to); err == nil && st.IsDir() {
		if err := os.Remove(to); err != nil {
			return err
		}
	}
	return os.Rename(from, to)
}
