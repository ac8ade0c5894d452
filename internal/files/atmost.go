package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ReadAtMost reads a whole file, which may be a pipe, of at most the given number of bytes.
func ReadAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, most)
}

// ReadFileAtMost is ReadAtMost for files that [Open] takes.
func ReadFileAtMost(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, most)
}

func readAtMost(f *os.File, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = &fs.PathError{
			Op: "read", Path: f.Name(), Err: fmt.Errorf("more than %d bytes, the limit of such a file", most),
		}
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}
