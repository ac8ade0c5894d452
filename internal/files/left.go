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
	all, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	for _, e := range all {
		if e.Type().IsRegular() && left.MatchString(e.Name()) && err == nil {
			err = Remove(filepath.Join(dir, e.Name()))
		}
	}
	return err
}

// swept are the files and folders for which this process has removed what killed processes left.
var swept sync.Map

// MkdirTemp makes a folder for this process, as os.MkdirTemp does with a pattern that ends in a star, and removes those
// that killed processes left there. remove ends its use.
func MkdirTemp(dir, pattern string) (path string, remove func() error, err error) {
	if dir == "" {
		dir = os.TempDir()
	}
	start := filepath.Join(dir, strings.TrimSuffix(pattern, "*"))
	if _, done := swept.LoadOrStore(start, true); !done {
		all, _ := os.ReadDir(dir)
		for _, e := range all {
			if name := filepath.Join(dir, e.Name()); e.IsDir() && strings.HasPrefix(name, start) {
				removeUnlockedAll(name)
			}
		}
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
