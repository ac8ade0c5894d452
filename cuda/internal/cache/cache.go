// Package cache keeps small files between runs: compiled kernels and measured choices. It touches only its folder. A
// lost file is made again, so failures are not reported.
package cache

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"onlinerna/internal/files"
)

// Folder returns the folder for the files: the one asked for, by default onlinerna/cuda in the user's cache folder, or
// "".
func Folder(asked string) string {
	if asked != "" {
		return asked
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(user, "onlinerna", "cuda")
}

// Digest is a hash of strings for file names.
func Digest(all ...string) string {
	h := sha256.New()
	for _, s := range all {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

// Read returns a file's content, if the file exists.
func Read(folder, name string) ([]byte, bool) {
	if folder == "" {
		return nil, false
	}
	f, err := files.Open(filepath.Join(folder, name))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return b, err == nil
}

// Write writes a whole file or none. Without a folder there is no cache; errors are ignored.
func Write(folder, name string, content []byte) {
	if folder == "" || os.MkdirAll(folder, 0o755) != nil {
		return
	}
	path := filepath.Join(folder, name)
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		os.Remove(path)
	}
	f, err := files.Create(path)
	if err != nil {
		return
	}
	defer f.Abort()
	if _, err = f.Write(content); err == nil {
		f.CommitUnsynced()
	}
}

// Alone waits, for some minutes at most, until no other process makes the file, which can then be read instead of made
// again. A caller that makes the file itself calls done afterwards.
func Alone(folder, name string) (done func()) {
	if folder == "" || os.MkdirAll(folder, 0o755) != nil {
		return func() {}
	}
	path := filepath.Join(folder, name+".lock")
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() { // opening a named pipe waits for ever
		return func() {}
	}
	l := flock.New(path)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if ok, err := l.TryLockContext(ctx, 20*time.Millisecond); !ok || err != nil {
		return func() {}
	}
	return func() {
		os.Remove(path) // a waiting process finds the file made
		l.Unlock()
	}
}
