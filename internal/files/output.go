package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// CheckOutputs finds files that could not be written, or would be written twice, before the work begins. Empty names
// are ignored.
func CheckOutputs(paths ...string) error {
	seen := map[string]bool{}
	for _, path := range paths {
		if path == "" {
			continue
		}
		dir := filepath.Dir(path)
		if st, err := os.Stat(dir); err != nil {
			return fmt.Errorf("%s cannot be written: %w", path, err)
		} else if !st.IsDir() {
			return fmt.Errorf("%s cannot be written: %s is no folder", path, dir)
		}
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			return fmt.Errorf("%s cannot be written: it is a folder", path)
		}
		if clean := filepath.Clean(path); seen[clean] {
			return fmt.Errorf("%s is to be written twice", path)
		} else {
			seen[clean] = true
		}
	}
	return nil
}

// Writable returns an error if this process cannot make files in a folder.
func Writable(dir string) error {
	f, err := Create(filepath.Join(dir, "probe"))
	if err == nil {
		f.Abort()
	}
	return err
}

// Output is a file that a user names: it appears whole or not at all. Devices, and pipes that somebody reads, are
// written to as they are.
type Output struct {
	io.Writer
	file *File // nil for a device or a pipe
	as   *os.File
}

// NewOutput begins an output.
func NewOutput(path string) (*Output, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, syscall.ENXIO) && st.Mode().Type() == os.ModeNamedPipe {
			err = fmt.Errorf("nobody reads the pipe %s: start its reader first", path)
		}
		return &Output{Writer: f, as: f}, err
	}
	f, err := Create(path)
	if err != nil {
		return nil, err
	}
	return &Output{Writer: f, file: f}, nil
}

// Commit completes the output.
func (o *Output) Commit() error {
	if o.file == nil {
		return o.as.Close()
	}
	return o.file.Commit()
}

// Abort removes an output that is not complete. After Commit it does nothing.
func (o *Output) Abort() {
	if o.file == nil {
		o.as.Close()
		return
	}
	o.file.Abort()
}

// WriteTo writes an output, unless path is empty.
func WriteTo(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	o, err := NewOutput(path)
	if err != nil {
		return err
	}
	defer o.Abort()
	if err := write(o); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return o.Commit()
}

// Same reports whether two paths name one file, existing or not.
func Same(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	if err == nil && err2 == nil {
		return os.SameFile(x, y)
	}
	return filepath.Clean(a) == filepath.Clean(b)
}

// IsRegular reports whether a regular file exists.
func IsRegular(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}
