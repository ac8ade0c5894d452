//go:build !unix

package extrapolate

import (
	"os"

	"onlinerna/internal/files"
)

// onDisk is a file that is read in parts.
type onDisk struct{ *os.File }

// inPlace says that views need no buffer.
const inPlace = false

func openMemory(path string) (memory, error) {
	f, err := files.Open(path)
	return onDisk{f}, err
}

func (d onDisk) view(buf []byte, off int64, n int) ([]byte, error) {
	_, err := d.ReadAt(buf[:n], off)
	return buf[:n], err
}
