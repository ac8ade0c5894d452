package format

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"

	"onlinerna/internal/files"
)

// archive holds the offsets of images inside a few large files.
type archive struct {
	files   []*shardFile
	first   []int // by file: the index of its first image
	classes []string

	keys    names
	offsets []int64
	sizes   []uint32
	labels  []int32
	notes
}

var (
	_ Set       = (*archive)(nil)
	_ io.Closer = (*archive)(nil)
	_ Encoded   = verbatim{}
)

// verbatim is an archive that holds image files unchanged.
type verbatim struct{ *archive }

// Encoded implements Encoded.
func (d verbatim) Encoded(i int, b *Buffer) ([]byte, error) { return d.read(i, b) }

// add appends an image of the last file.
func (d *archive) add(key string, offset, size int64, label int32) {
	d.keys.add(key)
	d.offsets = append(d.offsets, offset)
	d.sizes = append(d.sizes, uint32(min(size, 1<<32-1))) // decoding refuses such large images
	d.labels = append(d.labels, label)
}

// append adds the images of another archive, which lie in file.
func (d *archive) append(part *archive, file *shardFile) {
	d.files = append(d.files, file)
	d.first = append(d.first, len(d.labels))
	for k := range part.labels {
		d.keys.add(part.keys.at(k))
	}
	d.offsets = append(d.offsets, part.offsets...)
	d.sizes = append(d.sizes, part.sizes...)
	d.labels = append(d.labels, part.labels...)
}

// indexFiles scans the files, several at a time, and joins the results in order.
func indexFiles(kind string, paths []string, scan func(part *archive, path string) error) (*archive, error) {
	parts, err := inParallel(len(paths), func(k int) (*archive, error) {
		part := new(archive)
		if err := scan(part, paths[k]); err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, paths[k], err)
		}
		return part, nil
	})
	if err != nil {
		return nil, err
	}
	d := new(archive)
	for k, part := range parts {
		d.append(part, &shardFile{path: paths[k], keep: k < maxOpenShards})
		parts[k] = nil
	}
	return d, nil
}

// inParallel returns the results of work for 0, …, n−1, or the first error in that order.
func inParallel[T any](n int, work func(k int) (T, error)) ([]T, error) {
	results, errs := make([]T, n), make([]error, n)
	var group sync.WaitGroup
	free := make(chan struct{}, 2*runtime.GOMAXPROCS(0)) // scanning waits for the disk
	for k := range n {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			results[k], errs[k] = work(k)
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// blockReader buffers a scan that reads some bytes here and there, in rising order.
type blockReader struct {
	r     io.ReaderAt
	buf   [8 << 10]byte
	start int64 // offset of buf's contents
	n     int
}

func (b *blockReader) ReadAt(p []byte, off int64) (int, error) {
	if off < b.start || off+int64(len(p)) > b.start+int64(b.n) {
		if len(p) > len(b.buf) {
			return b.r.ReadAt(p, off)
		}
		n, err := b.r.ReadAt(b.buf[:], off)
		if b.start, b.n = off, n; n < len(p) {
			return copy(p, b.buf[:n]), err
		}
	}
	return copy(p, b.buf[off-b.start:b.n]), nil
}

func (d *archive) Len() int          { return len(d.labels) }
func (d *archive) Classes() []string { return d.classes }
func (d *archive) Channels() int     { return 3 }
func (d *archive) Label(i int) int   { return int(d.labels[i]) }
func (d *archive) Name(i int) string { return d.file(i).path + "/" + d.keys.at(i) }

// Size is the number of bytes of image i, 0 if its place is not known.
func (d *archive) Size(i int) (int64, error) { return int64(d.sizes[i]), nil }

// file returns the file that contains image i.
func (d *archive) file(i int) *shardFile {
	k, ok := slices.BinarySearch(d.first, i)
	if !ok {
		return d.files[k-1]
	}
	for k+1 < len(d.first) && d.first[k+1] == i { // files without images
		k++
	}
	return d.files[k]
}

// read reads the place of image i.
func (d *archive) read(i int, b *Buffer) ([]byte, error) {
	p, err := b.Read(d.file(i), d.offsets[i], int64(d.sizes[i]))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(i), err)
	}
	return p, nil
}

// Expect implements Expecter.
func (d *archive) Expect(i int) { d.file(i).expect(d.offsets[i], int64(d.sizes[i])) }

// Close closes the files; another Read opens them again.
func (d *archive) Close() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// maxOpenShards is the number of files of a set that are kept open; the others are opened for each
// read, so that a set of many shards stays below the limit of open files.
const maxOpenShards = 256

// shardFile is a file that is opened when it is first read.
type shardFile struct {
	path string
	keep bool

	mu sync.RWMutex
	f  *os.File
}

func (s *shardFile) ReadAt(p []byte, off int64) (int, error) {
	if !s.keep {
		f, err := files.Open(s.path)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		return f.ReadAt(p, off)
	}
	s.mu.RLock()
	if f := s.f; f != nil {
		defer s.mu.RUnlock()
		return f.ReadAt(p, off)
	}
	s.mu.RUnlock()
	if err := s.open(); err != nil {
		return 0, err
	}
	return s.ReadAt(p, off)
}

func (s *shardFile) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f != nil {
		return nil
	}
	var err error
	s.f, err = files.Open(s.path)
	return err
}

func (s *shardFile) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	s.f = nil
	return err
}

// expect asks the system to read size bytes from offset on ahead.
func (s *shardFile) expect(offset, size int64) {
	if !s.keep {
		if f, err := files.Open(s.path); err == nil {
			willNeed(f, offset, size)
			f.Close()
		}
		return
	}
	if s.open() != nil {
		return // reading will report the error
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.f != nil {
		willNeed(s.f, offset, size)
	}
}
