package statedict

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"unicode/utf8"

	"onlinerna/train/safetensors"
)

const (
	ggufMagic = "GGUF"

	// Bounds of a header's content.
	maxGGUFTensors = 1 << 18
	maxGGUFKeys    = 1 << 16
	maxGGUFName    = 1 << 12
	maxGGUFHeader  = 512 << 20
)

// ggufTypes are the supported element types.
var ggufTypes = map[uint32]safetensors.DType{
	0: safetensors.F32, 1: safetensors.F16, 30: safetensors.BF16, 28: safetensors.F64,
	24: "I8", 25: "I16", 26: safetensors.I32, 27: safetensors.I64,
}

// quantised are the names of unsupported types.
var quantised = map[uint32]string{
	2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K",
	14: "Q6_K", 15: "Q8_K",
	16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
	29: "IQ1_M",
	34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}

// ggufSizes are the sizes in bytes of the scalar types of metadata.
var ggufSizes = map[uint32]int64{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

const (
	ggufUint32 = 4
	ggufString = 8
	ggufArray  = 9
)

// ggufReader reads a header from front to back; its work is bounded by the header's bytes.
type ggufReader struct {
	*bufio.Reader
	at, size int64
	err      error
}

func (r *ggufReader) take(b []byte) {
	if r.err == nil {
		var n int
		n, r.err = io.ReadFull(r.Reader, b)
		if r.at += int64(n); r.err == io.EOF || r.err == io.ErrUnexpectedEOF {
			r.err = errors.New("the header is cut short")
		}
	}
}

func (r *ggufReader) u32() uint32 {
	var b [4]byte
	r.take(b[:])
	return binary.LittleEndian.Uint32(b[:])
}

func (r *ggufReader) u64() uint64 {
	var b [8]byte
	r.take(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func (r *ggufReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// skip skips n bytes.
func (r *ggufReader) skip(n uint64) {
	switch {
	case r.err != nil:
	case n > uint64(r.size-r.at):
		r.err = errors.New("the header is cut short")
	default:
		_, r.err = io.CopyN(io.Discard, r.Reader, int64(n))
		r.at += int64(n)
	}
}

func (r *ggufReader) name(most uint64) string {
	n := r.u64()
	if n > most {
		r.fail("a name of %d bytes: at most %d are read", n, most)
		return ""
	}
	if r.err != nil {
		return ""
	}
	b := make([]byte, n)
	if r.take(b); !utf8.Valid(b) {
		r.fail("a name that is not UTF-8")
	}
	return string(b)
}

// value skips a value of metadata and returns it if it is a 32-bit integer.
func (r *ggufReader) value(kind uint32) uint32 {
	switch size := ggufSizes[kind]; {
	case kind == ggufUint32:
		return r.u32()
	case size > 0:
		r.skip(uint64(size))
	case kind == ggufString:
		r.skip(r.u64())
	case kind == ggufArray:
		of, n := r.u32(), r.u64()
		if unit := ggufSizes[of]; unit > 0 && n <= uint64(math.MaxInt64/unit) {
			r.skip(n * uint64(unit))
		} else if of == ggufString {
			for ; n > 0 && r.err == nil; n-- {
				r.skip(r.u64())
			}
		} else {
			r.fail("an array of %d values of type %d", n, of)
		}
	default:
		r.fail("a value of the unknown type %d", kind)
	}
	return 0
}

// openGGUF reads the header of llama.cpp's format, version 2 or 3. GGUF lists the innermost dimension first, Tensor
// last.
func (f *File) openGGUF(fd *os.File) error {
	st, err := fd.Stat()
	if err != nil {
		return err
	}
	r := &ggufReader{Reader: bufio.NewReaderSize(io.NewSectionReader(fd, 4, min(st.Size(), maxGGUFHeader)), 1<<16), at: 4,
		size: st.Size()}
	version, tensors, keys := r.u32(), r.u64(), r.u64()
	if r.err == nil && version != 2 && version != 3 {
		return fmt.Errorf("GGUF of version %d: 2 and 3 are read", version)
	}
	if tensors > maxGGUFTensors || keys > maxGGUFKeys {
		return fmt.Errorf("%d tensors and %d keys of metadata: at most %d and %d are read", tensors, keys, maxGGUFTensors,
			maxGGUFKeys)
	}
	align := int64(32)
	for ; keys > 0 && r.err == nil; keys-- {
		key, kind := r.name(1<<16), r.u32()
		if v := r.value(kind); key == "general.alignment" && r.err == nil {
			if align = int64(v); kind != ggufUint32 || align <= 0 || align > 1<<20 || align&(align-1) != 0 {
				return fmt.Errorf("general.alignment %d is no power of two", v)
			}
		}
	}
	var offsets []uint64
	for ; tensors > 0 && r.err == nil; tensors-- {
		t := Tensor{Name: r.name(maxGGUFName)}
		dims := r.u32()
		if dims > 8 {
			return fmt.Errorf("tensor %q has %d dimensions", t.Name, dims)
		}
		for range dims {
			d := r.u64()
			if d > math.MaxInt32*1024 {
				return fmt.Errorf("tensor %q: extent %d", t.Name, d)
			}
			t.Shape = append(t.Shape, int(d))
		}
		slices.Reverse(t.Shape)
		kind := r.u32()
		t.DType = ggufTypes[kind]
		switch {
		case r.err != nil:
		case quantised[kind] != "":
			return fmt.Errorf("tensor %q is quantised as %s: only F64, F32, F16 and BF16 can be combined: "+
				"convert the model to one of these", t.Name, quantised[kind])
		case t.DType == "":
			return fmt.Errorf("tensor %q has elements of the unknown type %d", t.Name, kind)
		}
		offsets = append(offsets, r.u64())
		f.Tensors = append(f.Tensors, t)
	}
	if r.err != nil {
		return r.err
	}
	data := (r.at + align - 1) / align * align
	left := st.Size()
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if err := safetensors.Check(t.DType, t.Shape); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		n := int64(t.Len()) * int64(t.DType.Size())
		if off := offsets[i]; off > uint64(st.Size()) || data+int64(off) > st.Size()-n {
			return fmt.Errorf("tensor %q lies behind the end of the file: it was cut short", t.Name)
		}
		if left -= n; left < 0 {
			return fmt.Errorf("tensor %q and those before it take more than the file's %d bytes: they overlap", t.Name,
				st.Size())
		}
		t.pieces = []piece{{off: data + int64(offsets[i])}}
	}
	if len(f.Tensors) == 0 {
		return errors.New("it holds no tensor")
	}
	return nil
}
