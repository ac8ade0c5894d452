package statedict

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"onlinerna/train/safetensors"
)

// numpyTypes are the element types by their names in headers.
var numpyTypes = map[string]safetensors.DType{
	"<f8": safetensors.F64, "<f4": safetensors.F32, "<f2": safetensors.F16, "<i8": safetensors.I64, "<i4": safetensors.I32,
	"<i2": "I16", "|i1": "I8",
	"<u8": "U64", "<u4": "U32", "<u2": "U16", "|u1": "U8", "|b1": "BOOL", "<c8": "C64",
}

// maxNumpy bounds the arrays of a file, and each array's header.
const (
	maxNumpy       = 1 << 18
	maxNumpyHeader = 1 << 16
)

// firstEntry is the name of a zip archive's first entry; empty for another file.
func firstEntry(fd *os.File) string {
	var head [30]byte
	if _, err := fd.ReadAt(head[:], 0); err != nil {
		return ""
	}
	name := make([]byte, binary.LittleEndian.Uint16(head[26:]))
	if _, err := fd.ReadAt(name, int64(len(head))); err != nil {
		return ""
	}
	return string(name)
}

// openNumpy finds the arrays in a file of numpy.savez. Those of numpy.savez_compressed go to a temporary file,
// where any element can be read.
func (f *File) openNumpy(fd *os.File) error {
	st, err := fd.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(fd, st.Size())
	if err != nil {
		return fmt.Errorf("the archive is damaged: %w", err)
	}
	if len(z.File) > maxNumpy {
		return fmt.Errorf("%d arrays: at most %d are read", len(z.File), maxNumpy)
	}
	for _, e := range z.File {
		name, ok := strings.CutSuffix(e.Name, ".npy")
		if !ok {
			return fmt.Errorf("entry %q is no array", e.Name)
		}
		if e.Method == zip.Deflate {
			t, err := f.inflate(e)
			if err != nil {
				return fmt.Errorf("array %q: %w", name, err)
			}
			t.Name = name
			f.Tensors = append(f.Tensors, t)
			continue
		}
		if e.Method != zip.Store {
			return fmt.Errorf("array %q is compressed by method %d: numpy.savez and savez_compressed are read", name, e.Method)
		}
		off, err := e.DataOffset()
		if err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
		size := int64(e.UncompressedSize64)
		if size < 0 || off < 0 || size > st.Size() || off > st.Size()-size {
			return fmt.Errorf("array %q lies behind the end of the file: it was cut short", name)
		}
		t, err := npy(io.NewSectionReader(fd, off, size), size)
		if err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
		t.Name = name
		t.pieces[0].off += off
		f.Tensors = append(f.Tensors, t)
	}
	if len(f.Tensors) == 0 {
		return errors.New("it holds no array")
	}
	return nil
}

// maxDeflate is a bound of the bytes that deflate makes of one.
const maxDeflate = 1032

// inflate reads the header of a compressed array, whose numbers go to the temporary file when they are read first.
func (f *File) inflate(e *zip.File) (Tensor, error) {
	size := int64(e.UncompressedSize64)
	if size < 0 || e.CompressedSize64 > 1<<50 || size > int64(e.CompressedSize64+1)*maxDeflate {
		return Tensor{}, fmt.Errorf("%d bytes cannot be %d when they are inflated", e.CompressedSize64, size)
	}
	r, err := e.Open()
	if err != nil {
		return Tensor{}, err
	}
	defer r.Close()
	t, err := npy(r, size)
	if err != nil {
		return t, err
	}
	head := size - int64(t.Len())*int64(t.DType.Size())
	return t, f.later(&t.pieces[0], size-head, func(to io.Writer) error {
		r, err := e.Open()
		if err != nil {
			return err
		}
		defer r.Close()
		if _, err := io.CopyN(io.Discard, r, head); err != nil {
			return err
		}
		n, err := io.Copy(to, r) // which compares the checksum at the end
		if err == nil && n != size-head {
			err = fmt.Errorf("%d bytes of numbers, want %d", n, size-head)
		}
		return err
	})
}

// later reserves room for a piece of size bytes in the temporary file, which fill writes when the piece is read first.
func (f *File) later(p *piece, size int64, fill func(to io.Writer) error) error {
	to, err := f.temporary()
	if err != nil {
		return err
	}
	if size > math.MaxInt64-f.inflated {
		return fmt.Errorf("arrays of more than %d bytes", int64(math.MaxInt64))
	}
	at := f.inflated
	f.inflated += size
	p.file, p.off = len(f.infos), at
	p.late = &late{fill: func() error {
		if err := fill(io.NewOffsetWriter(to, at)); err != nil {
			return fmt.Errorf("to %s: %w", filepath.Dir(to.Name()), err)
		}
		return nil
	}}
	return nil
}

// temporary is a file without a name in the folder of TMPDIR, or else in /var/tmp, which is on a disk.
func (f *File) temporary() (*os.File, error) {
	if len(f.files) > len(f.infos) {
		return f.files[len(f.infos)], nil
	}
	dir := os.Getenv("TMPDIR")
	if st, err := os.Stat("/var/tmp"); dir == "" && err == nil && st.IsDir() {
		dir = "/var/tmp"
	}
	fd, err := os.CreateTemp(dir, "rna-*")
	if err != nil {
		return nil, err
	}
	f.files = append(f.files, fd)
	if os.Remove(fd.Name()) != nil { // an open file, on Windows
		f.remove = fd.Name()
	}
	return fd, nil
}

var npyHeader = regexp.MustCompile(
	`^\{'descr': '([^']{2,8})', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \}\s*$`)

// npy reads the header of an array of size bytes.
func npy(r io.Reader, size int64) (Tensor, error) {
	var t Tensor
	var head [12]byte
	if _, err := io.ReadFull(r, head[:10]); err != nil || string(head[:6]) != "\x93NUMPY" {
		return t, errors.New("not numpy's .npy")
	}
	n, from := int64(binary.LittleEndian.Uint16(head[8:])), int64(10)
	if head[6] > 1 {
		if _, err := io.ReadFull(r, head[10:]); err != nil {
			return t, errors.New("the header is cut short")
		}
		n, from = int64(binary.LittleEndian.Uint32(head[8:])), 12
	}
	if n > maxNumpyHeader || n > size-from {
		return t, fmt.Errorf("a header of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return t, errors.New("the header is cut short")
	}
	m := npyHeader.FindSubmatch(b)
	if m == nil {
		return t, fmt.Errorf("header %.80q: not a plain array", b)
	}
	if t.DType = numpyTypes[string(m[1])]; t.DType == "" {
		return t, fmt.Errorf("elements of type %s: little-endian numbers are read", m[1])
	}
	t.Shape = []int{}
	for _, d := range strings.FieldsFunc(string(m[3]), func(r rune) bool { return r == ',' || r == ' ' }) {
		v, err := strconv.Atoi(d)
		if err != nil || len(t.Shape) == 32 {
			return t, fmt.Errorf("shape (%s)", m[3])
		}
		t.Shape = append(t.Shape, v)
	}
	if err := safetensors.Check(t.DType, t.Shape); err != nil {
		return t, err
	}
	if want := int64(t.Len()) * int64(t.DType.Size()); want != size-from-n {
		return t, fmt.Errorf("%s%v in %d bytes", t.DType, t.Shape, size-from-n)
	}
	p := piece{off: from + n}
	if string(m[2]) == "True" && len(t.Shape) > 1 {
		turned := slices.Clone(t.Shape)
		slices.Reverse(turned)
		p.at, p.size, p.strides = make([]int, len(t.Shape)), t.Shape, strides(turned)
		slices.Reverse(p.strides)
	}
	t.pieces = []piece{p}
	return t, nil
}
