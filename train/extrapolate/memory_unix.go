//go:build unix

package extrapolate

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"onlinerna/internal/files"
)

// mapped is a file in the address space.
type mapped []byte

// inPlace says that views need no buffer.
const inPlace = true

func openMemory(path string) (memory, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > math.MaxInt {
		return nil, fmt.Errorf("%s: larger than the address space", path)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: mapping the file: %w", path, err)
	}
	unix.Madvise(m, unix.MADV_SEQUENTIAL) // advice only
	return mapped(m), nil
}

func (m mapped) view(_ []byte, off int64, n int) ([]byte, error) {
	if off < 0 || n < 0 || off > int64(len(m))-int64(n) {
		return nil, fmt.Errorf("%d bytes at %d are beyond the end of the file", n, off)
	}
	return m[off : off+int64(n)], nil
}

func (m mapped) Close() error { return unix.Munmap(m) }
