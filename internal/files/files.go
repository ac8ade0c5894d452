// Package files writes files that appear whole or not at all, and stay after a loss of power.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
)

// File is an unfinished file beside its final place.
type File struct {
	*os.File
	path string
	mode fs.FileMode // of the file that it replaces, 0 for none
	done bool
	part bool // of another process's file

	written atomic.Int64 // bytes, by WriteAt
}

// Create starts a file that takes its name by [File.Commit]. If path is a link, the file is its target; an existing
// file must be regular; its permissions are kept. A link to nothing is an error. Create removes the
// temporary files that killed writers of the same file left.
func Create(path string) (*File, error) {
	path, mode, err := target(path)
	if err != nil {
		return nil, err
	}
	if _, done := swept.LoadOrStore(path, true); !done && !syncsLater(path) { // a checkpoint's folder is new
		RemoveDead(path)
	}
	for {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%08x", stem(path), rand.Uint32()))
		if err := ask("create", name); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666) // less the umask
		if err == nil && !lock(f) {
			f.Close()
			continue
		}
		if err == nil {
			tell(Change{What: Created, Path: name})
			return &File{File: f, path: path, mode: mode}, nil
		}
		if !os.IsExist(err) {
			return nil, err
		}
	}
}

// Join opens another process's unfinished file by its name, to write a part of it. [File.Leave] ends that.
func Join(name string) (*File, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &File{File: f, part: true}, nil
}

// Leave closes a joined file; sync waits until its bytes are on the disk.
func (f *File) Leave(sync bool) (err error) {
	f.done = true
	if sync {
		if err = ask("sync", f.Name()); err == nil {
			err = f.Sync()
		}
	}
	return errors.Join(err, f.File.Close())
}

// stem is the name of a path's file, cut so that a file system takes it with ten bytes more: names have 255 at most.
func stem(path string) string {
	const most = 240
	name := filepath.Base(path)
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "")
}

// target returns the file that a path refers to, and its permissions if it exists.
func target(path string) (string, fs.FileMode, error) {
	st, err := os.Stat(path)
	if err != nil {
		if link, _ := os.Readlink(path); link != "" {
			return "", 0, fmt.Errorf("%s cannot be written: it is a link to %s, which is not there", path, link)
		}
		return path, 0, nil
	}
	if !st.Mode().IsRegular() {
		return "", 0, fmt.Errorf("%s cannot be written: it is no regular file", path)
	}
	path, err = filepath.EvalSymlinks(path)
	return path, st.Mode().Perm(), err
}

// Commit completes the file: it goes to disk, and takes its name.
func (f *File) Commit() error { return f.commit(true) }

// CommitUnsynced is Commit without syncing: the system decides when the data go to disk. A loss of power may leave a
// shorter file.
func (f *File) CommitUnsynced() error { return f.commit(false) }

func (f *File) commit(sync bool) error {
	var err error
	sync = sync && !syncsLater(f.path)
	if f.mode != 0 {
		err = f.Chmod(f.mode)
	}
	if err == nil && sync {
		err = Sync(f.File)
	}
	if err == nil && Trace != nil {
		var b []byte
		b, err = os.ReadFile(f.Name())
		tell(Change{What: Filled, Path: f.Name(), Data: b, Synced: sync})
	}
	defer hold(f.File)() // until it has its name
	if e := f.File.Close(); err == nil {
		if err = e; err == nil {
			err = ask("close", f.Name())
		}
	}
	f.done = true
	if err == nil {
		err = Rename(f.Name(), f.path)
	}
	if err != nil {
		Remove(f.Name())
		return err
	}
	if sync {
		return SyncDir(filepath.Dir(f.path))
	}
	return nil
}

// Abort gives the file up and leaves nothing behind. After Commit it does nothing.
func (f *File) Abort() {
	if !f.done {
		f.done = true
		f.File.Close()
		if !f.part {
			Remove(f.Name())
		}
	}
}

// Write writes a file that appears whole or not at all.
func Write(path string, b []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Commit()
}

// SyncDir makes the names in a folder stay after a loss of power.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" { // it has no such call, and keeps names by its journal
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err = Sync(d); unsyncable(err) {
		err = nil
	}
	if e := d.Close(); err == nil {
		err = e
	}
	tell(Change{What: Synced, Path: dir})
	return err
}

// MkdirAll makes a folder and those above it that are missing, to stay after a loss of power.
func MkdirAll(dir string) error {
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := MkdirAll(above); err != nil {
			return err
		}
	}
	if err := Mkdir(dir); err != nil && !os.IsExist(err) {
		return err
	} else if st, e := os.Stat(dir); e != nil || !st.IsDir() {
		return fmt.Errorf("%s: not a folder", dir)
	}
	return SyncDir(above)
}
