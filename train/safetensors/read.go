package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"onlinerna/internal/files"
)

// maxHeader bounds the JSON header, as the format does. Headers have some 100 bytes a tensor; reading
// allocates less than twelve times its bytes, which the file has.
const maxHeader = 100_000_000

// File is an open file. Its methods may be called concurrently.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor // by their place in the file

	path  string
	file  *os.File
	start int64 // of the data section
	index map[string]int
	sums  string // of the data, empty for none
}

// Open reads and checks the header of a file.
func Open(path string) (*File, error) {
	fd, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := Of(fd)
	if err != nil {
		fd.Close()
		return nil, err
	}
	return f, nil
}

// Of is Open of an open file, which it takes over: Close closes it.
func Of(fd *os.File) (*File, error) {
	f := &File{path: fd.Name(), file: fd, index: map[string]int{}}
	if err := f.readHeader(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return f, nil
}

// Close releases the file.
func (f *File) Close() error { return f.file.Close() }

func (f *File) readHeader() error {
	st, err := f.file.Stat()
	if err != nil {
		return err
	}
	if st.IsDir() {
		return errors.New("is a folder, not a safetensors file")
	}
	var prefix [8]byte
	if _, err := f.file.ReadAt(prefix[:], 0); err != nil {
		return errors.New("not a safetensors file: shorter than 8 bytes")
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > maxHeader || int64(n) > st.Size()-8 {
		if h := string(prefix[:4]); h == "PK\x03\x04" || h == "\x80\x02\x8a\x0a" {
			return errors.New("not a safetensors file but one of torch.save: " +
				"convert it by safetensors.torch.save_file(torch.load(FILE), OUT)")
		}
		return fmt.Errorf("not a safetensors file, or cut short: a header of %d bytes in a file of %d", n, st.Size())
	}
	head := make([]byte, n)
	if _, err := f.file.ReadAt(head, int64(len(prefix))); err != nil {
		return fmt.Errorf("reading the header: %w", err)
	}
	f.start = 8 + int64(n)
	if err := f.parse(head, st.Size()-f.start); err != nil {
		return err
	}
	return f.sealed(prefix[:], head)
}

func (f *File) parse(head []byte, size int64) error {
	h := header{b: head}
	if err := h.read(f, size); err != nil {
		return err
	}
	slices.SortFunc(f.Tensors, func(a, b Tensor) int {
		if a.off != b.off {
			return int(min(max(a.off-b.off, -1), 1))
		}
		if a.bytes != b.bytes { // empty tensors first
			return int(min(max(a.bytes-b.bytes, -1), 1))
		}
		return strings.Compare(a.Name, b.Name)
	})
	at := int64(0)
	for i, t := range f.Tensors {
		if t.off != at {
			return fmt.Errorf("tensor %q starts at byte %d of the data, expected %d: overlap or hole", t.Name, t.off, at)
		}
		at += t.bytes
		f.index[t.Name] = i
	}
	if at != size {
		return fmt.Errorf("the header describes %d bytes of data, the file holds %d: cut short or overlong", at, size)
	}
	return nil
}

// Lookup finds a tensor by name.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Section returns the offset and the length of a tensor's bytes in the file.
func (f *File) Section(t Tensor) (off, bytes int64) { return f.start + t.off, t.bytes }

// Float32s reads elements off to off+len(dst) of a floating-point tensor, converting to float32.
func (f *File) Float32s(t Tensor, dst []float32, off int) error { return readFloats(f, t, dst, off) }

// Float64s reads elements off to off+len(dst) of a floating-point tensor, converting to float64.
func (f *File) Float64s(t Tensor, dst []float64, off int) error { return readFloats(f, t, dst, off) }

// Int64s reads all elements of an I64 or I32 tensor.
func (f *File) Int64s(t Tensor) ([]int64, error) {
	if !t.DType.Integer() {
		return nil, fmt.Errorf("%s: tensor %q is %s: only I64 and I32 can be read as integers", f.path, t.Name, t.DType)
	}
	dst := make([]int64, t.Len())
	err := f.blocks(t, 0, len(dst), func(b []byte, i, n int) error {
		for k := range n {
			switch t.DType {
			case I64:
				dst[i+k] = int64(binary.LittleEndian.Uint64(b[8*k:]))
			case I32:
				dst[i+k] = int64(int32(binary.LittleEndian.Uint32(b[4*k:])))
			}
		}
		return nil
	})
	return dst, err
}

func readFloats[T float32 | float64](f *File, t Tensor, dst []T, off int) error {
	if !t.DType.Float() {
		return fmt.Errorf("%s: tensor %q is %s: only F64, F32, F16 and BF16 can be read as floating-point numbers", f.path,
			t.Name, t.DType)
	}
	return f.blocks(t, off, len(dst), func(b []byte, i, n int) error {
		out := dst[i : i+n]
		switch t.DType {
		case F32:
			for k := range out {
				out[k] = T(math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:])))
			}
		case F64:
			for k := range out {
				out[k] = T(math.Float64frombits(binary.LittleEndian.Uint64(b[8*k:])))
			}
		case BF16:
			for k := range out {
				out[k] = T(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*k:])) << 16))
			}
		case F16:
			for k := range out {
				out[k] = T(halfToFloat(binary.LittleEndian.Uint16(b[2*k:])))
			}
		}
		return nil
	})
}

// blocks reads elements off to off+n of t in blocks and passes each to fn with its index in the range.
func (f *File) blocks(t Tensor, off, n int, fn func(b []byte, i, n int) error) error {
	unit := int(sizes[t.DType])
	if off < 0 || off+n > t.Len() {
		return fmt.Errorf("%s: tensor %q has %d elements, asked for %d to %d", f.path, t.Name, t.Len(), off, off+n)
	}
	buf := make([]byte, min(1<<20, n*unit))
	for i := 0; i < n; {
		k := min(len(buf)/unit, n-i)
		b := buf[:k*unit]
		if _, err := f.file.ReadAt(b, f.start+t.off+int64((off+i)*unit)); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", f.path, t.Name, err)
		}
		if err := fn(b, i, k); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", f.path, t.Name, err)
		}
		i += k
	}
	return nil
}

func halfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exp {
	case 0: // zero or subnormal
		v := float32(frac) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
