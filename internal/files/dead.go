package files

import (
	"os"
	"path/filepath"
	"strings"
)

// RemoveDead removes the files that killed writers of path left beside it. Files that are still written are locked, and
// stay.
func RemoveDead(path string) error {
	path, _, err := target(path)
	if err != nil {
		return err
	}
	dir, start := filepath.Dir(path), "."+stem(path)+"."
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), start) || len(e.Name()) != len(start)+8 ||
			!left.MatchString(e.Name()) {
			continue
		}
		if err := removeUnlocked(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
