package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Fault, if set, is called before each file system call of this package, for tests of failing disks. Its error makes
// the call fail; with io.ErrShortWrite a write writes half of its bytes, with [ErrSkip] nothing goes to disk.
var Fault func(call, path string) error

// ErrSkip from [Fault] makes a sync do nothing.
var ErrSkip = errors.New("skipped")

// Sync brings an open file, or the names of an open folder, to disk.
func Sync(f *os.File) error {
	err := ask("sync", f.Name())
	if errors.Is(err, ErrSkip) {
		return nil
	} else if err != nil {
		return err
	}
	return f.Sync()
}

// Append opens a file to append to its first size bytes; the rest is cut off.
func Append(path string, size int64) (*os.File, error) {
	if err := ask("open", path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err = ask("truncate", path); err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func ask(call, path string) error {
	if Fault == nil {
		return nil
	}
	if err := Fault(call, path); err != nil {
		return &fs.PathError{Op: call, Path: path, Err: err}
	}
	return nil
}

// Asking is a writer to f whose writes [Fault] may fail.
func Asking(f *os.File) io.Writer { return asking{f} }

type asking struct{ *os.File }

func (a asking) Write(b []byte) (int, error) { return write(a.File, b, a.File.Write) }

func write(f *os.File, b []byte, do func(b []byte) (int, error)) (int, error) {
	if err := ask("write", f.Name()); errors.Is(err, io.ErrShortWrite) {
		n, e := do(b[:len(b)/2])
		return n, errors.Join(e, err)
	} else if err != nil {
		return 0, err
	}
	return do(b)
}

// Write writes to the file in the making.
func (f *File) Write(b []byte) (int, error) { return write(f.File, b, f.File.Write) }

// backLen is the number of bytes after which [File.WriteAt] has them sent to the disk.
const backLen = 16 << 20

// WriteAt writes at an offset. Its calls may be concurrent.
func (f *File) WriteAt(b []byte, at int64) (int, error) {
	n, err := write(f.File, b, func(b []byte) (int, error) { return f.File.WriteAt(b, at) })
	if now := f.written.Add(int64(n)); now/backLen != (now-int64(n))/backLen {
		writeBack(f.File)
	}
	return n, err
}

// unsyncable reports whether a folder's fsync failed because its file system cannot sync folders: the file system then
// decides when names are kept.
func unsyncable(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EBADF) || errors.Is(err, errors.ErrUnsupported)
}
