package files

import (
	"fmt"
	"os"
	"syscall"
)

// Open opens a regular file to read. It does not wait for the writer of a named pipe: pipes, sockets and devices are
// errors.
func Open(path string) (*os.File, error) {
	f, _, err := OpenSized(path)
	return f, err
}

// OpenSized is [Open], and returns the file's size.
func OpenSized(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder, not a file", path)
	} else if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file but a pipe, a socket or a device, which are not read", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// MaxRead bounds the files that [Read] reads.
const MaxRead = 64 << 20

// Read is [os.ReadFile] for files that [Open] takes, of at most MaxRead bytes.
func Read(path string) ([]byte, error) { return ReadFileAtMost(path, MaxRead) }
