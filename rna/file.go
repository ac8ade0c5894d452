package rna

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"onlinerna/internal/parallel"
)

// spanBytes is the size of a worker's read from one file, workerBytes that of its reads from all files of one product
// or combination.
const (
	spanBytes   = 256 << 10
	workerBytes = 16 << 20
)

// NewFile32 returns a space of float32 vectors with dim elements, each in a file of its own in
// dir, or in the directory for temporary files when dir is "". It is for windows that
// are larger than memory: vectors are read and written by spans, at the speed of the
// disk or of the system's page cache, and the process holds some 16 MiB a worker of them.
// Results are those of [NewHost32], bit for bit.
//
// The files belong to the window: [Window.Close] removes them. Where the system can (not on
// Windows), a file loses its name as soon as it is open, so that not even a process that is killed leaves
// one behind. They are no format to keep; save a window by its [Window.State].
func NewFile32(dir string, dim, workers int) (Space, error) {
	return newFile[float32](dir, dim, workers)
}

// NewFile64 is [NewFile32] for float64 vectors.
func NewFile64(dir string, dim, workers int) (Space, error) {
	return newFile[float64](dir, dim, workers)
}

func newFile[T float](dir string, dim, workers int) (Space, error) {
	if err := checkDim(dim); err != nil {
		return nil, err
	}
	if dir == "" {
		dir = os.TempDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("rna: directory of a space: %w", err)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("rna: directory of a space: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("rna: directory of a space: %s is a file", dir)
	}
	size := int(unsafe.Sizeof(T(0)))
	return &storage[T]{
		dim:      dim,
		workers:  parallel.Workers(workers),
		create:   func() (cells[T], error) { return createFile[T](dir, dim) },
		buffered: true,
		span: func(vectors int) int {
			span := min(spanBytes, workerBytes/max(vectors, 1)) / size
			return max(span/blockLen, 1) * blockLen
		},
	}, nil
}

// A fileVector is a file of elements in the machine's byte order.
type fileVector[T float] struct {
	file  *os.File
	dim   int
	named bool // it still has to be removed
}

func createFile[T float](dir string, dim int) (*fileVector[T], error) {
	f, err := os.CreateTemp(dir, "rna-*.vector")
	if err != nil {
		return nil, fmt.Errorf("rna: vector of %d elements: %w", dim, err)
	}
	v := &fileVector[T]{file: f, dim: dim, named: runtime.GOOS == "windows" || os.Remove(f.Name()) != nil}
	if err := f.Truncate(int64(dim) * int64(unsafe.Sizeof(T(0)))); err != nil {
		return nil, errors.Join(fmt.Errorf("rna: vector of %d elements: %w", dim, err), v.Close())
	}
	return v, nil
}

func (v *fileVector[T]) Len() int { return v.dim }

func (v *fileVector[T]) ReadAt(dst []float32, off int) error { return readFile(v, dst, off) }

func (v *fileVector[T]) ReadAt64(dst []float64, off int) error { return readFile(v, dst, off) }

func readFile[D, T float](v *fileVector[T], dst []D, off int) error {
	if off < 0 || off > v.dim-len(dst) {
		return rangeError("read", v.dim, len(dst), off)
	}
	if same, ok := any(dst).([]T); ok {
		_, err := v.view(same, off, len(same))
		return err
	}
	buf := make([]T, min(len(dst), blockLen))
	for len(dst) > 0 {
		n := min(len(dst), len(buf))
		part, err := v.view(buf, off, n)
		if err != nil {
			return err
		}
		cast(dst[:n], part)
		dst, off = dst[n:], off+n
	}
	return nil
}

// view reads by a system call rather than through a mapping: pages of a mapping count as the
// process's own until the system takes them back, a buffer is as large as it is.
func (v *fileVector[T]) view(buf []T, off, n int) ([]T, error) {
	buf = buf[:n]
	if _, err := v.file.ReadAt(bytesOf(buf), int64(off)*int64(unsafe.Sizeof(T(0)))); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // the file was truncated
		}
		return nil, fmt.Errorf("rna: read of elements %d to %d of %s: %w", off, off+n, v.file.Name(), err)
	}
	return buf, nil
}

func (v *fileVector[T]) put(src []T, off int) error {
	if _, err := v.file.WriteAt(bytesOf(src), int64(off)*int64(unsafe.Sizeof(T(0)))); err != nil {
		return fmt.Errorf("rna: write of elements %d to %d of %s: %w", off, off+len(src), v.file.Name(), err)
	}
	return nil
}

// Close closes the file and removes it.
func (v *fileVector[T]) Close() error {
	err := v.file.Close()
	if v.named {
		v.named = false
		err = errors.Join(err, os.Remove(v.file.Name()))
	}
	if err != nil {
		return fmt.Errorf("rna: close of a vector: %w", err)
	}
	return nil
}

// bytesOf returns the memory of v.
func bytesOf[T float](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(T(0))))
}
