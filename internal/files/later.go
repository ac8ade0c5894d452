package files

import (
	"os"
	"path/filepath"
	"sync"
)

// later are the folders of SyncLater.
var later sync.Map

// SyncLater leaves the syncing of files committed in a folder to [SyncFiles], until the returned function is called.
func SyncLater(dir string) (end func()) {
	dir = filepath.Clean(dir)
	later.Store(dir, true)
	return func() { later.Delete(dir) }
}

func syncsLater(path string) bool {
	_, ok := later.Load(filepath.Dir(path))
	return ok
}

// SyncFiles brings the files of a folder to disk, and their names.
func SyncFiles(dir string) error {
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		if !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err = ask("sync", path); err == nil {
			err = f.Sync()
		}
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		if Trace != nil {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			tell(Change{What: Filled, Path: path, Data: b, Synced: true})
		}
	}
	return SyncDir(dir)
}
