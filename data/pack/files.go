package pack

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"onlinerna/data/internal/shardfile"
	"onlinerna/data/rawfile"
	"onlinerna/internal/files"
)

// ReadReport reads pack.json in a folder.
func ReadReport(dir string) (*Report, error) {
	path := filepath.Join(dir, reportFile)
	b, err := files.Read(path)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (r *Report) write(dir string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, reportFile), append(b, '\n'))
}

// file is an os.File; tests simulate a full disk.
type file interface {
	io.WriteSeeker
	io.Closer
	Sync() error
	Name() string
}

var create = func(path string) (file, error) { return os.Create(path) }

// writeFile writes a file beside and renames it into place.
func writeFile(path string, content []byte) error {
	f, err := create(path + ".tmp")
	if err != nil {
		return err
	}
	return finishFile(f, path, func() error {
		_, err := f.Write(content)
		return err
	})
}

// finishFile ends a file by write and renames it to path; after an error it is gone.
func finishFile(f file, path string, write func() error) error {
	err := write()
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func indexOf(shard string) string { return shard + shardfile.Extension }

// shardWriter writes a shard to a temporary file.
type shardWriter interface {
	add(s *sample) error
	size() int64
	// finish makes the shard whole under the name path.
	finish(path string) error
	abort()
}

// tarShard is a WebDataset shard; it counts bytes for the index.
type tarShard struct {
	f       file
	w       *bufio.Writer
	at      int64
	entries []shardfile.Entry
}

func newTarShard(path string) (*tarShard, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	return &tarShard{f: f, w: bufio.NewWriterSize(f, 1<<20)}, nil
}

func (t *tarShard) size() int64 { return t.at }

func (t *tarShard) add(s *sample) error {
	label := strconv.Itoa(int(s.label))
	offset, err := t.member(s.key+s.extension, s.content)
	if err == nil {
		_, err = t.member(s.key+".cls", []byte(label))
	}
	t.entries = append(t.entries, shardfile.Entry{Offset: offset, Size: int64(len(s.content)),
		Label: label, Key: s.key})
	return err
}

// member writes a file and returns where its content begins.
func (t *tarShard) member(name string, content []byte) (int64, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg,
		Format: tar.FormatUSTAR}); err != nil {
		return 0, err
	}
	offset := t.at + int64(b.Len())
	if _, err := w.Write(content); err != nil {
		return 0, err
	}
	if err := w.Flush(); err != nil { // pads it
		return 0, err
	}
	t.at += int64(b.Len())
	_, err := t.w.Write(b.Bytes())
	return offset, err
}

func (t *tarShard) finish(path string) error {
	const end = 2 * 512 // zeros
	return finishFile(t.f, path, func() error {
		if _, err := t.w.Write(make([]byte, end)); err != nil {
			return err
		}
		if err := t.w.Flush(); err != nil {
			return err
		}
		name := path[:len(path)-len(unfinished)]
		return writeFile(indexOf(name)+unfinished, shardfile.Format(t.at+end, t.entries))
	})
}

func (t *tarShard) abort() { discard(t.f) }

func discard(f file) {
	f.Close()
	os.Remove(f.Name())
}

// rawShard is a shard of package rawfile.
type rawShard struct {
	f file
	w *rawfile.Writer
}

func newRawShard(path string) (*rawShard, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	w, err := rawfile.NewWriter(f)
	if err != nil {
		discard(f)
		return nil, err
	}
	return &rawShard{f, w}, nil
}

func (r *rawShard) size() int64 { return r.w.Size() }
func (r *rawShard) add(s *sample) error {
	return r.w.Add(s.content, s.width, s.height, s.label, s.key)
}
func (r *rawShard) finish(path string) error { return finishFile(r.f, path, r.w.Close) }
func (r *rawShard) abort()                   { discard(r.f) }

// sum reads a file again: its size and SHA-256.
func sum(path string) (size int64, hash string, err error) {
	f, err := files.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return size, hex.EncodeToString(h.Sum(nil)), err
}
