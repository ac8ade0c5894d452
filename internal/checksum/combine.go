package checksum

import (
	"encoding/binary"
	"hash/crc32"
)

// Combine returns the checksum of two concatenated texts from the checksum of each and the length of the second, for
// the polynomials [crc32.Castagnoli] and [crc32.IEEE].
func Combine(polynomial, first, second uint32, length int64) uint32 {
	p := uint32(1) << 31 // x^0
	x := uint32(1) << 30 // x^1, then squared again and again
	for n := uint64(length) * 8; n > 0; n >>= 1 {
		if n&1 != 0 {
			p = times(polynomial, x, p)
		}
		x = times(polynomial, x, x)
	}
	return times(polynomial, p, first) ^ second
}

// times multiplies polynomials over GF(2), the highest bit being that of x^0.
func times(polynomial, a, b uint32) uint32 {
	p := uint32(0)
	for m := uint32(1) << 31; m != 0; m >>= 1 {
		if a&m != 0 {
			p ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ polynomial
		} else {
			b >>= 1
		}
	}
	return p
}

// A Sum adds up the checksum of a text whose parts come in any order. Its methods must not be called concurrently.
type Sum struct {
	polynomial uint32
	parts      map[int64]partSum // by start
}

type partSum struct {
	sum uint32
	n   int64
}

// NewSum begins a sum for a polynomial of [Combine].
func NewSum(polynomial uint32) *Sum { return &Sum{polynomial, map[int64]partSum{}} }

// Add takes the checksum of the n bytes from off on.
func (s *Sum) Add(off, n int64, sum uint32) {
	if n > 0 {
		s.parts[off] = partSum{sum, n}
	}
}

// Of returns the checksum of bytes from to to. All parts inside must have been added, none across the borders.
func (s *Sum) Of(from, to int64) (sum uint32, ok bool) {
	for at := from; at < to; {
		p, ok := s.parts[at]
		if !ok {
			return 0, false
		}
		sum = Combine(s.polynomial, sum, p.sum, p.n)
		at += p.n
	}
	return sum, true
}

// AppendTo appends the parts to b, for [Sum.AddParts].
func (s *Sum) AppendTo(b []byte) []byte {
	le := binary.LittleEndian
	for off, p := range s.parts {
		b = le.AppendUint32(le.AppendUint64(le.AppendUint64(b, uint64(off)), uint64(p.n)), p.sum)
	}
	return b
}

// AddParts adds the parts of another sum, and returns their number of bytes.
func (s *Sum) AddParts(b []byte) (total int64) {
	le := binary.LittleEndian
	for ; len(b) >= 20; b = b[20:] {
		n := int64(le.Uint64(b[8:]))
		s.Add(int64(le.Uint64(b)), n, le.Uint32(b[16:]))
		total += n
	}
	return total
}

var tables = map[uint32]*crc32.Table{crc32.Castagnoli: table, crc32.IEEE: crc32.IEEETable}

// Part is the checksum of bytes, for a polynomial.
func Part(polynomial uint32, b []byte) uint32 { return crc32.Checksum(b, tables[polynomial]) }
