package statedict

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/bits"
	"slices"
	"sync"
)

// piece is a box of a tensor's elements in a file.
type piece struct {
	file     int   // index in File.files
	off      int64 // of the first element, in bytes
	at, size []int // the box's start in the tensor, and its extents
	strides  []int // in elements, nil if contiguous
	late     *late // nil unless the elements come to the file with the first reading
}

// late is the work that brings a piece's elements to the temporary file, when they are read first.
type late struct {
	once sync.Once
	fill func() error
	err  error
}

func (l *late) ready() error {
	if l == nil {
		return nil
	}
	l.once.Do(func() { l.err = l.fill() })
	return l.err
}

// strides are the strides of contiguous elements.
func strides(size []int) []int {
	s := make([]int, len(size))
	for i, n := len(s)-1, 1; i >= 0; i-- {
		s[i], n = n, n*size[i]
	}
	return s
}

func product(size []int) int {
	n := 1
	for _, d := range size {
		n *= d
	}
	return n
}

// Read fills b with little-endian elements from number off on, in the tensor's order.
func (f *File) Read(b []byte, t Tensor, off int) error {
	n := len(b) / t.DType.Size()
	if off < 0 || n > t.Len() || off > t.Len()-n {
		return fmt.Errorf("%s: tensor %q has %d elements, asked for %d to %d", f.Path, t.Name, t.Len(), off, off+n)
	}
	if err := f.read(b, t, off, n); err != nil {
		return fmt.Errorf("%s: tensor %q: %w", f.Path, t.Name, err)
	}
	return nil
}

func (f *File) read(b []byte, t Tensor, off, n int) error {
	if p := &t.pieces[0]; len(t.pieces) == 1 && p.strides == nil {
		if err := p.late.ready(); err != nil {
			return err
		}
		return f.readAt(p.file, b, p.off+int64(off)*int64(t.DType.Size()))
	}
	start := 0
	return boxes(t.Shape, off, n, func(at, size []int) error {
		for i := range t.pieces {
			if err := f.readBox(b, &t.pieces[i], t.DType.Size(), start, at, size); err != nil {
				return err
			}
		}
		start += product(size)
		return nil
	})
}

func (f *File) readAt(file int, b []byte, off int64) error {
	k, err := f.files[file].ReadAt(b, off)
	if k == len(b) {
		return nil
	}
	if err == io.EOF {
		return fmt.Errorf("%s ends before byte %d: it was cut short", f.files[file].Name(), off+int64(len(b)))
	}
	return err
}

// boxes splits the elements off to off+n, in row-major order, into boxes: each has one index in the first dimensions, a
// range in one dimension, and the full extent of the rest.
func boxes(shape []int, off, n int, visit func(at, size []int) error) error {
	inner := strides(shape)
	at, size := make([]int, len(shape)), make([]int, len(shape))
	for n > 0 {
		for i, rest := 0, off; i < len(shape); i++ {
			at[i], rest, size[i] = rest/inner[i], rest%inner[i], 1
		}
		took := 1
		for k := range shape {
			if off%inner[k] == 0 && n >= inner[k] {
				size[k] = min(shape[k]-at[k], n/inner[k])
				copy(size[k+1:], shape[k+1:])
				took = size[k] * inner[k]
				break
			}
		}
		if err := visit(at, size); err != nil {
			return err
		}
		off, n = off+took, n-took
	}
	return nil
}

// scratch holds elements between the file and the destination.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// readBox reads the elements common to a box of the tensor and a piece. The box lies contiguously in b, from element
// start on.
func (f *File) readBox(b []byte, p *piece, unit, start int, at, size []int) error {
	dims := len(at)
	count, from := make([]int, dims), make([]int, dims)
	for i := range dims {
		lo, hi := max(at[i], p.at[i]), min(at[i]+size[i], p.at[i]+p.size[i])
		if lo >= hi {
			return nil
		}
		from[i], count[i] = lo, hi-lo
	}
	if err := p.late.ready(); err != nil {
		return err
	}
	to, in := strides(size), p.strides
	if in == nil {
		in = strides(p.size)
	}
	src := 0 // the first element in the piece
	for i := range dims {
		start += (from[i] - at[i]) * to[i]
		src += (from[i] - p.at[i]) * in[i]
	}
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	if p.strides == nil {
		*buf = slices.Grow((*buf)[:0], product(count)*unit)[:product(count)*unit]
		if err := f.readAt(p.file, *buf, p.off+int64(src)*int64(unit)); err != nil {
			return err
		}
		spread(b[start*unit:], *buf, count, to, unit)
		return nil
	}
	run := -1 // the dimension with the smallest stride
	for i := range dims {
		if count[i] > 1 && in[i] > 0 && (run < 0 || in[i] < in[run]) {
			run = i
		}
	}
	length, step := 1, 0
	if run >= 0 && in[run] <= 8 {
		length, step = count[run], in[run]
		count[run] = 1
	}
	read := ((length-1)*step + 1) * unit
	*buf = slices.Grow((*buf)[:0], read)[:read]
	return each(count, func(k []int) error {
		s, d := src, start
		for i, v := range k {
			s, d = s+v*in[i], d+v*to[i]
		}
		if err := f.readAt(p.file, *buf, p.off+int64(s)*int64(unit)); err != nil {
			return err
		}
		for j := range length {
			copy(b[d*unit:(d+1)*unit], (*buf)[j*step*unit:])
			if j+1 < length {
				d += to[run]
			}
		}
		return nil
	})
}

// spread copies a contiguous box to the strides to.
func spread(dst, src []byte, size, to []int, unit int) {
	dims, run := len(size), 1
	for dims > 0 && (to[dims-1] == run || size[dims-1] == 1) { // dimensions that are contiguous in dst as well
		run *= size[dims-1]
		dims--
	}
	run *= unit
	each(size[:dims], func(k []int) error {
		d := 0
		for i, v := range k {
			d += v * to[i]
		}
		copy(dst[d*unit:d*unit+run], src[:run])
		src = src[run:]
		return nil
	})
}

// each calls visit for each index within the extents, in order.
func each(size []int, visit func(index []int) error) error {
	k := make([]int, len(size))
	for {
		if err := visit(k); err != nil {
			return err
		}
		i := len(k) - 1
		for ; i >= 0; i-- {
			if k[i]++; k[i] < size[i] {
				break
			}
			k[i] = 0
		}
		if i < 0 {
			return nil
		}
	}
}

var errCovered = errors.New("its parts overlap, or leave some of it out")

// maxPairs bounds the pieces that are compared in pairs, and the corners of a piece that covered adds otherwise.
const maxPairs = 4096

// covered checks that the pieces hold each element of a shape exactly once.
func covered(shape []int, pieces []piece) error {
	sum := 0
	cut := make([]bool, len(shape)) // the dimensions in which some piece is not whole
	for _, p := range pieces {
		if len(p.at) != len(shape) || len(p.size) != len(shape) {
			return fmt.Errorf("a part of shape %v at %v of a tensor of shape %v", p.size, p.at, shape)
		}
		for k, d := range p.size {
			if d < 0 || p.at[k] < 0 || p.at[k] > shape[k]-d {
				return fmt.Errorf("a part of shape %v at %v of a tensor of shape %v", p.size, p.at, shape)
			}
			cut[k] = cut[k] || d < shape[k]
		}
		sum += product(p.size)
	}
	if sum != product(shape) {
		return errCovered
	}
	var dims []int
	for k := range shape {
		if cut[k] {
			dims = append(dims, k)
		}
	}
	corners := maxPairs + 1
	if len(dims) <= 12 {
		corners = 1 << len(dims)
	}
	switch {
	case len(pieces) <= min(corners, maxPairs):
		for i, p := range pieces {
			for _, q := range pieces[:i] {
				if overlap(p, q) {
					return errCovered
				}
			}
		}
	case corners > maxPairs:
		return fmt.Errorf("%d parts that are cut in %d dimensions: too many to compare", len(pieces), len(dims))
	default:
		seed := maphash.MakeSeed()
		left := signed(seed, piece{at: make([]int, len(shape)), size: shape}, dims)
		for _, p := range pieces {
			left -= signed(seed, p, dims)
		}
		if left != 0 {
			return errCovered
		}
	}
	return nil
}

// signed is the sum over a box's corners, in some dimensions, of a random number for each point, negative where an odd
// number of coordinates is the upper one. A box is such a sum of orthants, so boxes that add up to another have its
// sum, and others have it with a probability of 2⁻⁶⁰ at most.
func signed(seed maphash.Seed, p piece, dims []int) (sum uint64) {
	point := make([]byte, 8*len(dims))
	for corner := range 1 << len(dims) {
		for i, k := range dims {
			at := p.at[k]
			if corner>>i&1 != 0 {
				at += p.size[k]
			}
			binary.LittleEndian.PutUint64(point[8*i:], uint64(at))
		}
		if x := maphash.Bytes(seed, point); bits.OnesCount(uint(corner))%2 == 0 {
			sum += x
		} else {
			sum -= x
		}
	}
	return sum
}

func overlap(p, q piece) bool {
	for k := range p.at {
		if p.at[k] >= q.at[k]+q.size[k] || q.at[k] >= p.at[k]+p.size[k] {
			return false
		}
	}
	return product(p.size) > 0 && product(q.size) > 0
}
