// Package cache keeps small files between runs: compiled kernels and measured choices. It touches nothing but its folder. What it
// loses is made again: no error of it is one.
package cache

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Folder is where files are kept: the folder that is asked for, by default onlinerna/cuda in the user's cache folder, or none.
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

// Digest is a hash of strings, as a part of a file's name.
func Digest(all ...string) string {
	h := sha256.New()
	for _, s := range all {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

// Read is the content of a file, if there is one.
func Read(folder, name string) ([]byte, bool) {
	if folder == "" {
		return nil, false
	}
	b, err := os.ReadFile(filepath.Join(folder, name))
	return b, err == nil
}

// Write writes a file, all of it or nothing. No folder means no cache, and an error is none.
func Write(folder, name string, content []byte) {
	if folder == "" || os.MkdirAll(folder, 0o755) != nil {
		return
	}
	f, err := os.CreateTemp(folder, "new-*")
	if err != nil {
		return
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(folder, name))
	}
	if err != nil {
		os.Remove(f.Name())
	}
}

// Alone waits, for some minutes at most, until no other process makes a file: it has the file then, and need not be made again. The caller calls done when it
// has made it itself.
func Alone(folder, name string) (done func()) {
	if folder == "" || os.MkdirAll(folder, 0o755) != nil {
		return func() {}
	}
	path := filepath.Join(folder, name+".lock")
	l := flock.New(path)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if ok, err := l.TryLockContext(ctx, 20*time.Millisecond); !ok || err != nil {
		return func() {}
	}
	return func() {
		os.Remove(path) // who waits for this one finds the file made
		l.Unlock()
	}
}
