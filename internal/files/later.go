package files

import (
	"os"
	"path/filepath"
	"sync"
)

// later are the folders of SyncLater.
var later sync.Map

// SyncLater leaves the syncing of files committed in a folder to [SyncFile], until the returned function is called.
func SyncLater(dir string) (end func()) {
	dir = filepath.Clean(dir)
	later.Store(dir, true)
	return func() { later.Delete(dir) }
}

func syncsLater(path string) bool {
	_, ok := later.Load(filepath.Dir(path))
	return ok
}

// SyncFile brings a file to disk, but not its name: see [SyncDir].
func SyncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = Sync(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil && Trace != nil {
		var b []byte
		b, err = os.ReadFile(path)
		tell(Change{What: Filled, Path: path, Data: b, Synced: true})
	}
	return err
}
