// Package hdf5 finds the arrays of numbers in HDF5 files, as h5py and Keras write them: groups of symbol tables or of
// links in their headers, and arrays that lie in the file in one piece. Work and memory are bounded by the number of
// objects; references in circles are errors.
//
// Format: the HDF5 File Format Specification 3.0. Chunks, compression, virtual arrays and external files are errors
// that name them.
package hdf5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"onlinerna/internal/text"
)

// Bounds of a file.
const (
	maxObjects = 1 << 18
	maxDepth   = 64
	maxHeader  = 1 << 20 // bytes of the messages of an object
	maxName    = 1 << 10
	maxRank    = 32
	maxHeap    = 16 << 20 // bytes of the names in a group
)

// Kind is a kind of elements.
type Kind string

// The kinds of elements.
const (
	Float  Kind = "float" // IEEE 754's of 2, 4 and 8 bytes
	Brain  Kind = "bfloat16"
	Int    Kind = "int"
	Uint   Kind = "uint"
	Bool   Kind = "bool"   // an enumeration of bytes of FALSE and TRUE
	Opaque Kind = "opaque" // bytes whose type an attribute may tell
)

// Array is an array with its place in the file.
type Array struct {
	Path  string // of groups, without a leading slash
	Kind  Kind
	Size  int // bytes of an element, little-endian
	Shape []int
	Off   int64             // of the first element
	Text  map[string]string // attributes of text
}

// undefined is the address of nothing.
const undefined = math.MaxUint64

// Read finds the arrays of a file of size bytes, in the order of their paths within each group.
func Read(r io.ReaderAt, size int64) ([]Array, error) {
	f := &file{r: r, size: uint64(size), seen: map[uint64]bool{}}
	root, err := f.superblock()
	if err != nil {
		return nil, err
	}
	if err := f.object(root, "", 0); err != nil {
		return nil, err
	}
	return f.arrays, nil
}

type file struct {
	r      io.ReaderAt
	size   uint64
	base   uint64
	seen   map[uint64]bool // addresses of groups above and beside
	arrays []Array
	links  int
}

// at reads n bytes from an address on.
func (f *file) at(addr, n uint64) (*reader, error) {
	if addr > f.size || f.base > f.size-addr || n > f.size-addr-f.base {
		return nil, fmt.Errorf("%d bytes at %d of %d: it was cut short, or it is damaged", n, addr, f.size)
	}
	b := make([]byte, n)
	if _, err := f.r.ReadAt(b, int64(addr+f.base)); err != nil {
		return nil, err
	}
	return &reader{b: b}, nil
}

// superblock finds the header of the root group.
func (f *file) superblock() (uint64, error) {
	r, err := f.at(0, min(96, f.size))
	if err != nil {
		return 0, err
	}
	if string(r.bytes(8)) != "\x89HDF\r\n\x1a\n" {
		return 0, errors.New("not HDF5")
	}
	version := r.byte()
	var sizes []byte
	switch version {
	case 0, 1:
		r.bytes(4)
		sizes = r.bytes(2)
		r.bytes(9) // ranks of trees, flags
		if version == 1 {
			r.bytes(4)
		}
	case 2, 3:
		sizes = r.bytes(2)
		r.byte()
	default:
		return 0, fmt.Errorf("HDF5 with a superblock of version %d: 0 to 3 are read", version)
	}
	if r.err == nil && (sizes[0] != 8 || sizes[1] != 8) {
		return 0, fmt.Errorf("HDF5 with addresses of %d and lengths of %d bytes: 8 are read", sizes[0], sizes[1])
	}
	f.base = r.u64()
	r.bytes(8) // of free space, or of the superblock's extension
	end := r.u64()
	if version < 2 {
		r.bytes(16) // of a driver; the root's name
	}
	root := r.u64()
	if r.err == nil && (f.base > f.size || end > f.size-f.base) {
		return 0, fmt.Errorf("%d bytes of %d: it was cut short", f.size, end)
	}
	return root, r.err
}

// A message is a part of an object's header.
type message struct {
	kind int
	data []byte
}

// The kinds of messages.
const (
	msgSpace        = 0x01
	msgLinkInfo     = 0x02
	msgType         = 0x03
	msgLink         = 0x06
	msgExternal     = 0x07
	msgLayout       = 0x08
	msgFilters      = 0x0b
	msgAttribute    = 0x0c
	msgContinuation = 0x10
	msgSymbols      = 0x11
)

// header reads an object's messages.
func (f *file) header(addr uint64) ([]message, error) {
	r, err := f.at(addr, 16)
	if err != nil {
		return nil, err
	}
	type block struct{ at, n uint64 }
	var blocks []block
	newer, order := string(r.b[:4]) == "OHDR", false
	if newer {
		if r, err = f.at(addr, min(64, f.size-addr-f.base)); err != nil {
			return nil, err
		}
		r.bytes(4)
		if v := r.byte(); v != 2 {
			return nil, fmt.Errorf("an object header of version %d", v)
		}
		flags := r.byte()
		order = flags&4 != 0
		if flags&0x20 != 0 {
			r.bytes(16)
		}
		if flags&0x10 != 0 {
			r.bytes(4)
		}
		n := r.uint(1 << (flags & 3))
		blocks = append(blocks, block{addr + uint64(r.off), n})
	} else {
		if v := r.byte(); v != 1 {
			return nil, fmt.Errorf("an object header of version %d", v)
		}
		r.bytes(7)
		blocks = append(blocks, block{addr + 16, uint64(r.u32())})
	}
	var list []message
	head := 8 // bytes of a message's header
	if newer {
		head = 4
	}
	if order {
		head += 2
	}
	total := uint64(0)
	for len(blocks) > 0 {
		b := blocks[0]
		blocks = blocks[1:]
		if total += b.n; total > maxHeader {
			return nil, fmt.Errorf("an object header of more than %d bytes", maxHeader)
		}
		r, err := f.at(b.at, b.n)
		if err != nil {
			return nil, err
		}
		for len(r.b) >= head && r.err == nil {
			var m message
			var size int
			if newer {
				m.kind, size = int(r.byte()), int(r.u16())
			} else {
				m.kind, size = int(r.u16()), int(r.u16())
			}
			flags := r.byte()
			if !newer {
				r.bytes(3)
			} else if order {
				r.bytes(2)
			}
			m.data = r.bytes(size)
			if m.kind == msgContinuation {
				c := &reader{b: m.data}
				next := block{c.u64(), c.u64()}
				if newer { // a signature and a checksum
					next.at, next.n = next.at+4, next.n-8
				}
				if c.err != nil || next.n > maxHeader {
					return nil, errors.New("a continuation of an object header is damaged")
				}
				blocks = append(blocks, next)
			} else if flags&2 != 0 && m.kind != 0 {
				m.data = nil // shared, in another header
			}
			list = append(list, m)
		}
		if r.err != nil {
			return nil, fmt.Errorf("object header: %w", r.err)
		}
	}
	return list, nil
}

func find(list []message, kind int) []byte {
	for _, m := range list {
		if m.kind == kind {
			return m.data
		}
	}
	return nil
}

func has(list []message, kind int) bool {
	for _, m := range list {
		if m.kind == kind {
			return true
		}
	}
	return false
}

// object adds the arrays of an object: an array, or a group.
func (f *file) object(addr uint64, name string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: more than %d groups in one another", name, maxDepth)
	}
	list, err := f.header(addr)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if has(list, msgLayout) {
		a, err := f.array(list)
		if err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
		a.Path = name
		f.arrays = append(f.arrays, a)
		return nil
	}
	if !has(list, msgSymbols) && !has(list, msgLinkInfo) {
		return nil // a type with a name
	}
	if f.seen[addr] {
		return fmt.Errorf("group %q has two paths", name)
	}
	f.seen[addr] = true
	links, err := f.group(list)
	if err != nil {
		return fmt.Errorf("group %q: %w", name, err)
	}
	for _, l := range links {
		if f.links++; f.links > maxObjects {
			return fmt.Errorf("more than %d objects", maxObjects)
		}
		if l.name == "" || len(l.name) > maxName || strings.Contains(l.name, "/") || text.Printable(l.name) != l.name {
			return fmt.Errorf("group %q: an object named %.100q", name, l.name)
		}
		if err := f.object(l.addr, path.Join(name, l.name), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// reader reads numbers from front to back; the first mistake stays.
type reader struct {
	b   []byte
	off int
	err error
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.err = errors.New("it is damaged: a part ends too early")
		r.b = nil
		return make([]byte, min(max(n, 0), 16))
	}
	b := r.b[:n]
	r.b, r.off = r.b[n:], r.off+n
	return b
}

func (r *reader) byte() byte  { return r.bytes(1)[0] }
func (r *reader) u16() uint16 { return binary.LittleEndian.Uint16(r.bytes(2)) }
func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.bytes(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.bytes(8)) }

// uint reads a number of 1, 2, 4 or 8 bytes.
func (r *reader) uint(size int) uint64 {
	var b [8]byte
	copy(b[:], r.bytes(size))
	return binary.LittleEndian.Uint64(b[:])
}
