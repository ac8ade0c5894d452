package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// left are the names that [Create] gives to files in the making.
var left = regexp.MustCompile(`^\..+\.[0-9a-f]{8}$`)

// RemoveLeft removes the files that killed writers left in a folder. No other process may write there.
func RemoveLeft(dir string) error {
	return sweep(dir, Remove, func(e fs.DirEntry) bool { return e.Type().IsRegular() && left.MatchString(e.Name()) })
}

// RemoveDead removes the files that killed writers of path left beside it. Files that are still written are locked, and
// stay.
func RemoveDead(path string) error {
	path, _, err := target(path)
	if err != nil {
		return err
	}
	start := "." + stem(path) + "."
	return sweep(filepath.Dir(path), removeUnlocked, func(e fs.DirEntry) bool {
		return e.Type().IsRegular() && strings.HasPrefix(e.Name(), start) && len(e.Name()) == len(start)+8 &&
			left.MatchString(e.Name())
	})
}

// sweep removes the dead entries of a folder, which may be missing.
func sweep(dir string, remove func(path string) error, dead func(e fs.DirEntry) bool) error {
	all, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	for _, e := range all {
		if err == nil && dead(e) {
			err = remove(filepath.Join(dir, e.Name()))
		}
	}
	return err
}

// swept are the paths for which this process has removed temporary files and folders of killed processes.
var swept sync.Map

// MkdirTemp makes a folder for this process, as os.MkdirTemp does with a pattern that ends in a star, and removes those
// that killed processes left there. remove ends its use.
func MkdirTemp(dir, pattern string) (path string, remove func() error, err error) {
	if dir == "" {
		dir = os.TempDir()
	}
	start := strings.TrimSuffix(pattern, "*")
	if _, done := swept.LoadOrStore(filepath.Join(dir, start), true); !done {
		_ = sweep(dir, removeUnlocked, func(e fs.DirEntry) bool { return e.IsDir() && strings.HasPrefix(e.Name(), start) })
	}
	for {
		if path, err = os.MkdirTemp(dir, pattern); err != nil {
			return "", nil, err
		}
		f, err := os.Open(path)
		if err == nil && lock(f) {
			return path, func() error { return errors.Join(f.Close(), os.RemoveAll(path)) }, nil
		}
		if err == nil {
			f.Close()
		} else if !errors.Is(err, fs.ErrNotExist) { // another process removed it before it was locked
			os.Remove(path)
			return "", nil, err
		}
	}
}
