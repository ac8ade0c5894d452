package torchfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"sync"

	"onlinerna/internal/checksum"
	"onlinerna/internal/files"
	"onlinerna/internal/pickle"
	"onlinerna/train/safetensors"
)

// metadataEntry is the archive's entry with the metadata. PyTorch ignores it.
const metadataEntry = "extra/metadata.json"

// root is the archive's folder, named as torch.save does for a stream.
const root = "archive/"

// storageAlign is torch.save's alignment of storages.
const storageAlign = 64

// Writer writes a state dict as torch.save does, so that torch.load accepts it with weights_only=True: an OrderedDict
// of contiguous tensors with a storage each. Their bytes may come in any order.
type Writer struct {
	path    string
	file    *files.File
	names   map[string]int // number in data
	entries []zipEntry
	data    int // number of entries before the tensors
	end     int64

	mu   sync.Mutex
	sums *checksum.Sum
}

// zipEntry is a stored, uncompressed file in the archive.
type zipEntry struct {
	name     string
	head, at int64 // offsets of its header and its bytes
	size     int64
	sum      uint32
}

// Create starts a file for the tensors; it ignores their Offset and Strides. Read returns the optional metadata.
// Nothing appears at path before Commit.
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
	p, err := pickled(tensors)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := readable(p); err != nil {
		return nil, fmt.Errorf("%s: %d tensors, more than Read takes in one file: write a folder or .safetensors: %w", path,
			len(tensors), err)
	}
	w := &Writer{path: path, names: map[string]int{}, sums: checksum.NewSum(crc32.IEEE)}
	small := map[string][]byte{"data.pkl": p, "byteorder": []byte("little"), "version": []byte("3\n")}
	order := []string{"data.pkl", "byteorder"}
	if len(metadata) > 0 {
		if small[metadataEntry], err = json.Marshal(metadata); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		order = append(order, metadataEntry)
	}
	for _, name := range order {
		w.add(name, int64(len(small[name])))
	}
	w.data = len(w.entries)
	for i, t := range tensors {
		if _, twice := w.names[t.Name]; twice {
			return nil, fmt.Errorf("%s: tensor name %q is taken", path, t.Name)
		}
		w.names[t.Name] = len(w.entries)
		w.add(fmt.Sprintf("data/%d", i), int64(length(t.Shape))*int64(t.DType.Size()))
	}
	w.add("version", int64(len(small["version"])))
	if w.file, err = open(); err != nil {
		return nil, err
	}
	for i := range w.entries {
		e := &w.entries[i]
		b, ok := small[strings.TrimPrefix(e.name, root)]
		if !ok {
			continue
		}
		e.sum = crc32.ChecksumIEEE(b)
		if _, err := w.file.WriteAt(b, e.at); err != nil {
			w.file.Abort()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return w, nil
}

// readable returns the error that [Read] would have for a pickle.
func readable(p []byte) error {
	switch {
	case len(p) > maxPickle:
		return fmt.Errorf("a pickle of %d bytes, %d at most", len(p), maxPickle)
	case len(p) < pickle.MaxMemory/valueRatio: // no tensor takes so many values
		return nil
	}
	_, err := machine(p, 0, func(string) (*place, error) { return &place{bytes: math.MaxInt64}, nil }).Run()
	return err
}

// add appends an entry, with its bytes at a multiple of storageAlign.
func (w *Writer) add(name string, size int64) {
	e := zipEntry{name: root + name, head: w.end, size: size}
	e.at = e.head + headerLen + int64(len(e.name)) + 4 // with the extra field for padding
	if size >= math.MaxUint32 {
		e.at += 20 // the extra field of large entries
	}
	e.at = (e.at + storageAlign - 1) / storageAlign * storageAlign
	w.end = e.at + size
	w.entries = append(w.entries, e)
}

// WriteAt writes little-endian bytes of the named tensor from its byte off on. Parts must not overlap; they may come in
// any order, from several goroutines; Commit checks that they are complete.
func (w *Writer) WriteAt(name string, b []byte, off int64) error {
	i, ok := w.names[name]
	if !ok || off < 0 || int64(len(b)) > w.entries[i].size-off {
		return fmt.Errorf("%s: tensor %q: no room for %d bytes at %d", w.path, name, len(b), off)
	}
	at := w.entries[i].at + off
	if _, err := w.file.WriteAt(b, at); err != nil {
		return fmt.Errorf("%s: tensor %q: %w", w.path, name, err)
	}
	sum := crc32.ChecksumIEEE(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sums.Add(at, int64(len(b)), sum)
	return nil
}

// Unfinished is the name of the file in the making, for [Join].
func (w *Writer) Unfinished() string { return w.file.Name() }

// Leave ends the part of a joined file that WriteAt wrote, and returns its checksums for Take.
func (w *Writer) Leave(sync bool) (part []byte, err error) {
	return w.sums.AppendTo(nil), w.file.Leave(sync)
}

// Take takes over the part of a process that has left.
func (w *Writer) Take(part []byte) { w.sums.AddParts(part) }

// Commit completes the file: it syncs the data to disk and renames the file to its path.
func (w *Writer) Commit() error { return w.commit(true) }

// CommitUnsynced is Commit without syncing the data to disk.
func (w *Writer) CommitUnsynced() error { return w.commit(false) }

func (w *Writer) commit(sync bool) error {
	if err := w.complete(); err != nil {
		w.file.Abort()
		return fmt.Errorf("%s: %w", w.path, err)
	}
	if sync {
		return w.file.Commit()
	}
	return w.file.CommitUnsynced()
}

// Abort removes the unfinished file. After Commit it does nothing.
func (w *Writer) Abort() { w.file.Abort() }

// complete writes the headers of the entries, the archive's directory, and the checksum of both as its comment.
func (w *Writer) complete() error {
	var dir []byte
	seal := uint32(0)
	for i := range w.entries {
		e := &w.entries[i]
		if i >= w.data && i < w.data+len(w.names) {
			sum, ok := w.sums.Of(e.at, e.at+e.size)
			if !ok {
				return fmt.Errorf("not all of tensor %d was written", i-w.data)
			}
			e.sum = sum
		}
		head := append([]byte(zipMagic), e.fields()...)
		head = append(head, e.local()...)
		if _, err := w.file.WriteAt(head, e.head); err != nil {
			return err
		}
		seal = checksum.Add(seal, head)
		dir = e.central(dir)
	}
	le := binary.LittleEndian
	end := append(dir, "PK\x06\x06"...)
	end = le.AppendUint64(end, end64Len-12)
	end = append(end, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	n := uint64(len(w.entries))
	for _, v := range []uint64{n, n, uint64(len(dir)), uint64(w.end)} {
		end = le.AppendUint64(end, v)
	}
	end = append(end, "PK\x06\x07\x00\x00\x00\x00"...)
	end = le.AppendUint64(end, uint64(w.end)+uint64(len(dir)))
	end = append(end, 1, 0, 0, 0)
	end = append(end, "PK\x05\x06\x00\x00\x00\x00"...)
	for range 2 {
		end = le.AppendUint16(end, uint16(min(n, math.MaxUint16)))
	}
	end = le.AppendUint32(end, uint32(min(len(dir), math.MaxUint32)))
	end = le.AppendUint32(end, uint32(min(w.end, math.MaxUint32)))
	end = le.AppendUint16(end, sealLen)
	end = append(end, sealPrefix+checksum.Zeros...)
	copy(end[len(end)-len(checksum.Zeros):], checksum.Digits(checksum.Add(seal, end)))
	_, err := w.file.WriteAt(end, w.end)
	return err
}

// fields are the common fields of an entry's header and directory record, up to the length of the name.
func (e *zipEntry) fields() []byte {
	le := binary.LittleEndian
	b := []byte{20, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if e.size >= math.MaxUint32 {
		b[0] = 45
	}
	b = le.AppendUint32(b, e.sum)
	for range 2 {
		b = le.AppendUint32(b, uint32(min(e.size, math.MaxUint32)))
	}
	return le.AppendUint16(b, uint16(len(e.name)))
}

// local is the rest of the header before the bytes: the name, the sizes of a large entry, and torch.save's padding.
func (e *zipEntry) local() []byte {
	le := binary.LittleEndian
	var extra []byte
	if e.size >= math.MaxUint32 {
		extra = append(extra, 1, 0, 16, 0)
		extra = le.AppendUint64(le.AppendUint64(extra, uint64(e.size)), uint64(e.size))
	}
	pad := e.at - e.head - headerLen - int64(len(e.name)) - int64(len(extra)) - 4
	extra = le.AppendUint16(append(extra, "FB"...), uint16(pad))
	extra = append(extra, bytes.Repeat([]byte("Z"), int(pad))...)
	b := le.AppendUint16(nil, uint16(len(extra)))
	return append(append(b, e.name...), extra...)
}

// central appends the entry's directory record.
func (e *zipEntry) central(dir []byte) []byte {
	le := binary.LittleEndian
	var extra []byte
	if e.size >= math.MaxUint32 {
		extra = le.AppendUint64(le.AppendUint64(extra, uint64(e.size)), uint64(e.size))
	}
	if e.head >= math.MaxUint32 {
		extra = le.AppendUint64(extra, uint64(e.head))
	}
	if extra != nil {
		extra = append([]byte{1, 0, byte(len(extra)), 0}, extra...)
	}
	dir = append(dir, "PK\x01\x02\x2d\x00"...)
	dir = append(dir, e.fields()...)
	dir = le.AppendUint16(dir, uint16(len(extra)))
	dir = append(dir, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	dir = le.AppendUint32(dir, uint32(min(e.head, math.MaxUint32)))
	return append(append(dir, e.name...), extra...)
}

func length(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// classes gives each element type's storage class.
var classes = func() map[safetensors.DType]pickle.Global {
	m := map[safetensors.DType]pickle.Global{}
	for class, t := range storages {
		if !strings.HasSuffix(string(class), "UntypedStorage") {
			m[t] = class
		}
	}
	return m
}()

// pickled is the pickle, of protocol 2, of an OrderedDict of tensors with storages "0", "1", ….
func pickled(tensors []Tensor) ([]byte, error) {
	p := &pickler{}
	p.raw("\x80\x02")
	p.global("collections.OrderedDict")
	p.raw(")R(")
	for i, t := range tensors {
		class, ok := classes[t.DType]
		if !ok {
			return nil, fmt.Errorf("tensor %q: torch.save has no elements of type %s", t.Name, t.DType)
		}
		p.text(t.Name)
		p.global("torch._utils._rebuild_tensor_v2")
		p.raw("((")
		p.text("storage")
		p.global(class)
		p.text(fmt.Sprint(i))
		p.text("cpu")
		p.integer(length(t.Shape))
		p.raw("tQ")
		p.integer(0)
		p.tuple(t.Shape)
		strides := make([]int, len(t.Shape))
		for k, n := len(strides)-1, 1; k >= 0; k-- {
			strides[k], n = n, n*max(t.Shape[k], 1)
		}
		p.tuple(strides)
		p.raw("\x89") // requires_grad is false
		p.global("collections.OrderedDict")
		p.raw(")RtR")
	}
	p.raw("u.")
	return p.b, nil
}

type pickler struct{ b []byte }

func (p *pickler) raw(s string) { p.b = append(p.b, s...) }

func (p *pickler) global(g pickle.Global) {
	i := bytes.LastIndexByte([]byte(g), '.')
	p.raw("c" + string(g[:i]) + "\n" + string(g[i+1:]) + "\n")
}

func (p *pickler) text(s string) {
	p.b = binary.LittleEndian.AppendUint32(append(p.b, 'X'), uint32(len(s)))
	p.raw(s)
}

func (p *pickler) integer(n int) {
	if n <= math.MaxInt32 {
		p.b = binary.LittleEndian.AppendUint32(append(p.b, 'J'), uint32(n))
		return
	}
	p.b = binary.LittleEndian.AppendUint64(append(p.b, 0x8a, 8), uint64(n))
}

func (p *pickler) tuple(list []int) {
	p.raw("(")
	for _, n := range list {
		p.integer(n)
	}
	p.raw("t")
}
