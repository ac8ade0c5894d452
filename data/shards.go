package data

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"onlinerna/data/imaging"
)

// shards is a set of WebDataset shards, read at random through an index.
type shards struct {
	files   []*shardFile
	first   []int // by file: the index of its first image
	classes []string

	keys    names
	offsets []int64
	sizes   []uint32
	labels  []int32
}

var (
	_ Dataset   = (*shards)(nil)
	_ io.Closer = (*shards)(nil)
)

// openShards indexes shards, which share the classes.txt beside the first one. Without it the
// classes are "0", "1", … as far as the labels go, unless classes are given.
func openShards(paths []string, classes []string) (Dataset, error) {
	own, err := ReadClasses(filepath.Join(filepath.Dir(paths[0]), "classes.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	parts, err := indexShards(paths, own, classes)
	if err != nil {
		return nil, err
	}
	d := &shards{classes: classes}
	for i, p := range parts {
		d.files = append(d.files, &shardFile{path: paths[i], keep: i < maxOpenShards})
		d.first = append(d.first, len(d.labels))
		for k := range p.labels {
			d.keys.add(p.keys.at(k))
		}
		d.offsets = append(d.offsets, p.offsets...)
		d.sizes = append(d.sizes, p.sizes...)
		d.labels = append(d.labels, p.labels...)
		parts[i] = nil
	}
	if len(d.labels) == 0 {
		return nil, fmt.Errorf("%s: the shards hold no samples: want <key>.jpg and <key>.cls", filepath.Dir(paths[0]))
	}
	if d.classes == nil {
		if d.classes = own; own == nil {
			d.classes = numbered(int(slices.Max(d.labels)) + 1)
		}
	}
	if i, err := remap(d.labels, own, d.classes); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(i), err)
	}
	return d, nil
}

// ReadClasses reads the names of classes, one a line.
func ReadClasses(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("classes: %w", err)
	}
	lines := strings.Split(strings.TrimRight(string(b), " \t\r\n"), "\n")
	for i, line := range lines {
		if lines[i] = strings.TrimSpace(line); lines[i] == "" {
			return nil, fmt.Errorf("%s: line %d is empty: want one class a line", path, i+1)
		}
	}
	return lines, nil
}

// indexShards indexes several shards at a time; what it returns does not depend on how many.
func indexShards(paths []string, own, classes []string) ([]*shards, error) {
	limit := maxClasses
	switch {
	case own != nil:
		limit = len(own)
	case classes != nil:
		limit = len(classes)
	}
	index := newClassIndex(own)
	parts, errs := make([]*shards, len(paths)), make([]error, len(paths))
	var group sync.WaitGroup
	free := make(chan struct{}, 2*runtime.GOMAXPROCS(0)) // scanning waits for the disk
	for i, path := range paths {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			parts[i] = new(shards)
			if err := parts[i].scan(path, limit, index); err != nil {
				errs[i] = fmt.Errorf("shard %s: %w", path, err)
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// scan adds the samples of one shard.
func (d *shards) scan(path string, classes int, index classIndex) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return indexShard(&blockReader{r: f}, info.Size(), func(e shardEntry) error {
		label, err := parseLabel(e.label, classes, index)
		if err != nil {
			return fmt.Errorf("key %s: %w", e.key, err)
		}
		d.keys.add(e.key)
		d.offsets = append(d.offsets, e.offset)
		d.sizes = append(d.sizes, uint32(min(e.size, 1<<32-1))) // decode refuses what is that large
		d.labels = append(d.labels, label)
		return nil
	})
}

// blockReader buffers a scan that reads some bytes here and there, in rising order.
type blockReader struct {
	r     io.ReaderAt
	buf   [8 << 10]byte
	start int64 // of what buf holds
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

func (d *shards) Len() int          { return len(d.labels) }
func (d *shards) Classes() []string { return d.classes }
func (d *shards) Channels() int     { return 3 }
func (d *shards) Label(i int) int   { return int(d.labels[i]) }
func (d *shards) Name(i int) string { return d.file(i).path + "/" + d.keys.at(i) }

// file is the shard that image i is in.
func (d *shards) file(i int) *shardFile {
	k, ok := slices.BinarySearch(d.first, i)
	if !ok {
		return d.files[k-1]
	}
	for k+1 < len(d.first) && d.first[k+1] == i { // shards without samples
		k++
	}
	return d.files[k]
}

func (d *shards) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	img, err := s.decode(d.file(i), d.offsets[i], int64(d.sizes[i]), d.Channels(), region)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(i), err)
	}
	return img, nil
}

// Close closes the shards; another Read opens them again.
func (d *shards) Close() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// maxOpenShards is the number of shards of a set that are kept open; the others are opened for each
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
		f, err := os.Open(s.path)
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
	s.f, err = os.Open(s.path)
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
