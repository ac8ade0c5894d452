package fetch

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"onlinerna/internal/catalogue"
	"onlinerna/internal/files"
)

// check compares a file's size and checksum with the expected ones.
func check(path string, f catalogue.File) error {
	in, n, err := files.OpenSized(path)
	if err != nil {
		return &localError{err}
	}
	defer in.Close()
	if !f.Rough && n != f.Size {
		return fmt.Errorf("%s: %d bytes in place of the %d of %s", path, n, f.Size, f.Name)
	}
	h, want, kind := sha256.New(), f.SHA256, "SHA-256"
	if want == "" {
		h, want, kind = sha1.New(), f.Git, "Git's SHA-1"
		fmt.Fprintf(h, "blob %d\x00", n)
	}
	if _, err := io.Copy(h, in); err != nil {
		return &localError{err}
	}
	if sum := hex.EncodeToString(h.Sum(nil)); !strings.HasPrefix(sum, want) {
		return fmt.Errorf("%s: wrong checksum, %s %s; published for %s: %s", path, kind, sum, f.Name, f.Sum())
	}
	return nil
}
