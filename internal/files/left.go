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
var left = regexp.MustCompile(`^\.(.+)\.[0-9a-f]{8}$`)

// RemoveLeft removes unfinished files that killed writers left in a folder. written matches the names that these files
// would have got. No other process may write files of these names there.
func RemoveLeft(dir string, written *regexp.Regexp) error {
	return sweep(dir, Remove, func(e fs.DirEntry) bool {
		name := left.FindStringSubmatch(e.Name())
		return name != nil && e.Type().IsRegular() && written.MatchString(name[1])
	})
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

// marker is the file by which MkdirTemp recognises its folders.
const marker = ".onlinerna-temporary"

// MkdirTemp makes a folder for this process, as os.MkdirTemp does with a pattern that ends in a star, and removes those
// that killed processes left there, on systems with locks: on Windows they stay. A marker in each tells it from a
// user's folder. remove ends its use.
func MkdirTemp(dir, pattern string) (path string, remove func() error, err error) {
	if dir == "" {
		dir = os.TempDir()
	}
	start := strings.TrimSuffix(pattern, "*")
	if _, done := swept.LoadOrStore(filepath.Join(dir, start), true); !done {
		_ = sweep(dir, removeUnlocked, func(e fs.DirEntry) bool {
			end, ours := strings.CutPrefix(e.Name(), start)
			return ours && e.IsDir() && strings.Trim(end, "0123456789") == "" &&
				IsRegular(filepath.Join(dir, e.Name(), marker))
		})
	}
	for {
		if path, err = os.MkdirTemp(dir, pattern); err != nil {
			return "", nil, err
		}
		f, err := os.Open(path)
		if err == nil && lock(f) {
			remove := func() error { return errors.Join(f.Close(), os.RemoveAll(path)) }
			if err := os.WriteFile(filepath.Join(path, marker), nil, 0o600); err != nil {
				return "", nil, errors.Join(err, remove())
			}
			return path, remove, nil
		}
		if err == nil {
			f.Close()
		} else if !errors.Is(err, fs.ErrNotExist) { // another process removed it before it was locked
			os.Remove(path)
			return "", nil, err
		}
	}
}
