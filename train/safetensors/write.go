package safetensors

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"sync"
	"unicode/utf8"

	"onlinerna/internal/checksum"
	"onlinerna/internal/files"
)

// maxSums bounds the checksums in a header: they are left out for more than 512 GB of data.
const maxSums = 4 << 20

// Writer writes one file: whole tensors in their declared order ([Writer.Write]), or parts of tensors in any order
// ([Writer.WriteAt]).
type Writer struct {
	path    string
	file    *files.File
	buf     *bufio.Writer
	tensors []Tensor
	start   int64  // of the data section
	head    []byte // the header with room for checksums
	next    int

	parts   map[string]Tensor // with their places, for WriteAt
	mu      sync.Mutex
	written int64         // bytes written by WriteAt
	sums    *checksum.Sum // of partial blocks, for WriteAt

	err  error
	done bool // committed or aborted
}

// entry is a tensor in the JSON header.
type entry struct {
	DType   DType   `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// Create starts a file for the given tensors, with the checksums of all its bytes in the metadata. Nothing appears at
// path before Commit.
func Create(path string, tensors []Tensor, metadata map[string]string) (*Writer, error) {
	return create(path, tensors, metadata, func() (*files.File, error) { return files.Create(path) })
}

// Join is Create for a part of the file that another process makes with the same tensors and metadata; unfinished is
// the result of that process's Unfinished. Leave ends it.
func Join(path, unfinished string, tensors []Tensor, metadata map[string]string) (*Writer, error) {
	return create(path, tensors, metadata, func() (*files.File, error) { return files.Join(unfinished) })
}

func create(path string, tensors []Tensor, metadata map[string]string, open func() (*files.File, error)) (*Writer,
	error) {
	head := map[string]any{}
	at := int64(0)
	parts := make(map[string]Tensor, len(tensors))
	for _, t := range tensors {
		n, err := t.size()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if _, twice := head[t.Name]; twice || t.Name == "__metadata__" || !utf8.ValidString(t.Name) {
			return nil, fmt.Errorf("%s: tensor name %q is taken, or not UTF-8", path, t.Name)
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		head[t.Name] = entry{t.DType, shape, []int64{at, at + n}}
		t.off, t.bytes = at, n
		parts[t.Name] = t
		at += n
	}
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	if checksum.Len(at) <= maxSums {
		metadata[sumKey] = unsealed(at)
	}
	head["__metadata__"] = metadata
	js, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for len(js)%8 != 0 { // aligns the data
		js = append(js, ' ')
	}
	if len(js) > maxHeader || len(tensors) > maxTensors || len(metadata) > maxEntries {
		return nil, fmt.Errorf("%s: %d tensors and %d entries of metadata with a header of %d bytes, a file has at most "+
			"%d, %d and %d: write several files", path, len(tensors), len(metadata), len(js), maxTensors, maxEntries, maxHeader)
	}
	fd, err := open()
	if err != nil {
		return nil, err
	}
	w := &Writer{path: path, file: fd, buf: bufio.NewWriterSize(fd, 1<<20), tensors: tensors, start: 8 + int64(len(js)),
		head: js, parts: parts,
		sums: checksum.NewSum(crc32.Castagnoli)}
	w.write(binary.LittleEndian.AppendUint64(nil, uint64(len(js))))
	w.write(js)
	return w, nil
}

func (w *Writer) write(b []byte) {
	if w.err == nil {
		_, w.err = w.buf.Write(b)
	}
}

// Write writes the next tensor: all its elements as []float32, []float64, []int64 or []int32 of exactly the declared
// type.
func (w *Writer) Write(name string, data any) error {
	if w.err != nil {
		return w.err
	}
	if w.next >= len(w.tensors) || w.tensors[w.next].Name != name {
		return w.fail(fmt.Errorf("tensor %q is out of turn", name))
	}
	t := w.tensors[w.next]
	w.next++
	switch d := data.(type) {
	case []float32:
		if t.DType == F32 && len(d) == t.Len() {
			return w.elements(len(d), func(b []byte, i int) []byte {
				return binary.LittleEndian.AppendUint32(b, math.Float32bits(d[i]))
			})
		}
	case []float64:
		if t.DType == F64 && len(d) == t.Len() {
			return w.elements(len(d), func(b []byte, i int) []byte {
				return binary.LittleEndian.AppendUint64(b, math.Float64bits(d[i]))
			})
		}
	case []int64:
		if t.DType == I64 && len(d) == t.Len() {
			return w.elements(len(d), func(b []byte, i int) []byte {
				return binary.LittleEndian.AppendUint64(b, uint64(d[i]))
			})
		}
	case []int32:
		if t.DType == I32 && len(d) == t.Len() {
			return w.elements(len(d), func(b []byte, i int) []byte {
				return binary.LittleEndian.AppendUint32(b, uint32(d[i]))
			})
		}
	}
	return w.fail(fmt.Errorf("tensor %q is declared %s%v, got %T", name, t.DType, t.Shape, data))
}

// WriteAt writes bytes of the named tensor, in the file's format, from its byte off on. Parts must not overlap; they
// may come in any order, from several goroutines; Commit checks that they are complete. Write and WriteAt cannot be
// mixed in one file.
func (w *Writer) WriteAt(name string, b []byte, off int64) error {
	t, ok := w.parts[name]
	if !ok || off < 0 || int64(len(b)) > t.bytes-off {
		return fmt.Errorf("%s: tensor %q of %d bytes: no room for %d bytes at %d", w.path, name, t.bytes, len(b), off)
	}
	if _, err := w.file.WriteAt(b, w.start+t.off+off); err != nil {
		return fmt.Errorf("%s: tensor %q: %w", w.path, name, err)
	}
	w.mu.Lock()
	w.written += int64(len(b))
	w.mu.Unlock()
	for at := t.off + off; len(b) > 0; {
		part := b[:min(int64(len(b)), checksum.Block-at%checksum.Block)]
		sum := checksum.Part(crc32.Castagnoli, part)
		w.mu.Lock()
		w.sums.Add(at, int64(len(part)), sum)
		w.mu.Unlock()
		b, at = b[len(part):], at+int64(len(part))
	}
	return nil
}

// Unfinished is the name of the file in the making, for [Join].
func (w *Writer) Unfinished() string { return w.file.Name() }

// Leave ends the part of a joined file that WriteAt wrote, and returns its checksums for Take.
func (w *Writer) Leave(sync bool) (part []byte, err error) {
	w.done, w.err = true, errors.New("left")
	return w.sums.AppendTo(nil), w.file.Leave(sync)
}

// Take takes over the part of a process that has left.
func (w *Writer) Take(part []byte) { w.written += w.sums.AddParts(part) }

// blocks are the checksums of the data blocks that WriteAt wrote; ok is false for a file of Write.
func (w *Writer) blocks(n int64) (sums string, ok bool) {
	if w.written == 0 {
		return "", false
	}
	out := make([]byte, 0, checksum.Len(n))
	for at := int64(0); at < n; at += checksum.Block {
		sum, ok := w.sums.Of(at, min(at+checksum.Block, n))
		if !ok {
			return "", false
		}
		out = append(out, checksum.Digits(sum)...)
	}
	return string(out), true
}

func (w *Writer) elements(n int, put func(b []byte, i int) []byte) error {
	var chunk [8 << 10]byte
	b := chunk[:0]
	for i := range n {
		if b = put(b, i); len(b) > len(chunk)-8 {
			w.write(b)
			b = chunk[:0]
		}
	}
	w.write(b)
	if w.err != nil {
		return w.fail(w.err)
	}
	return nil
}

func (w *Writer) fail(err error) error {
	w.err = fmt.Errorf("%s: %w", w.path, err)
	return w.err
}

// Commit completes the file: it syncs the data to disk and renames the file to its path.
func (w *Writer) Commit() error { return w.commit(true) }

// CommitUnsynced is Commit without syncing the data to disk. [Open] rejects a file truncated by a power failure.
func (w *Writer) CommitUnsynced() error { return w.commit(false) }

func (w *Writer) commit(sync bool) error {
	if w.done {
		return w.err
	}
	if w.err == nil {
		w.complete()
	}
	if w.err == nil {
		w.err = w.buf.Flush()
	}
	if w.err == nil {
		w.err = w.seal()
	}
	if w.err == nil {
		w.done = true
		if sync {
			w.err = w.file.Commit()
		} else {
			w.err = w.file.CommitUnsynced()
		}
	}
	if w.err != nil {
		w.file.Abort()
		w.done = true
		return w.err
	}
	w.err = errors.New("already committed")
	return nil
}

// complete records an error if data is missing.
func (w *Writer) complete() {
	want := int64(0)
	for _, t := range w.parts {
		want += t.bytes
	}
	if n := w.written; n > 0 || want == 0 && w.next == 0 {
		if n != want || w.next > 0 {
			w.fail(fmt.Errorf("%d bytes of tensors were written, %d are declared", n, want))
		}
		return
	}
	if w.next != len(w.tensors) {
		w.fail(fmt.Errorf("tensor %q was not written", w.tensors[w.next].Name))
	}
}

// Abort removes the unfinished file. After Commit it does nothing.
func (w *Writer) Abort() {
	if w.done {
		return
	}
	w.file.Abort()
	w.done, w.err = true, errors.New("aborted")
}
