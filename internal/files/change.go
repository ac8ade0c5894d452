package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Trace, if set, is called for each change by this package, for tests of power loss.
var Trace func(Change)

func tell(c Change) {
	if Trace != nil {
		Trace(c)
	}
}

// A Change is a change that a file system may keep or lose independently until its folder is synced.
type Change struct {
	What     What
	Path, To string
	Data     []byte
	Synced   bool
}

// The kinds of Change.
type What int

// The kinds of changes. Filled gives a file its content, which is on the disk if it is synced; Synced makes the changes
// of a folder stay.
const (
	Created What = iota
	Filled
	Made // a folder
	Renamed
	Removed
	Synced
)

// Mkdir makes a folder.
func Mkdir(dir string) error {
	err := ask("mkdir", dir)
	if err == nil {
		err = os.Mkdir(dir, 0o777)
	}
	if err == nil {
		tell(Change{What: Made, Path: dir})
	}
	return err
}

// Rename gives a file or a folder another name.
func Rename(from, to string) error {
	err := ask("rename", to)
	if err == nil {
		err = os.Rename(from, to)
	}
	if err == nil {
		tell(Change{What: Renamed, Path: from, To: to})
	}
	return err
}

// RenameFolder gives a folder another name, which may be that of an empty folder.
func RenameFolder(from, to string) error {
	err := ask("rename", to)
	if err == nil {
		err = renameFolder(from, to)
	}
	if err == nil {
		tell(Change{What: Renamed, Path: from, To: to})
	}
	return err
}

// Remove removes a file or an empty folder.
func Remove(path string) error {
	err := ask("remove", path)
	if err == nil {
		err = os.Remove(path)
	}
	if err == nil {
		tell(Change{What: Removed, Path: path})
	}
	return err
}

// RemoveAll removes a file or a folder with all in it. A missing one is no error.
func RemoveAll(path string) error {
	if Trace != nil {
		var all []string
		filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
			if err == nil {
				all = append(all, p)
			}
			return nil
		})
		for _, p := range slices.Backward(all) {
			tell(Change{What: Removed, Path: p})
		}
	}
	if err := ask("remove", path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}
