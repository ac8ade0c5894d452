package kern

import "encoding/binary"

const (
	// LookBits is the number of bits that index the lookup tables of AC coefficients.
	LookBits = 10
	// FirstBits is the same for the differences of DC coefficients.
	FirstBits = 9
	// Room is the length of a block with padding for stores past its coefficients; an 8-bit index is always in range.
	Room = 256
	// EndOfBlock is the advance of an end of block, which distinguishes it from a run that is too long.
	EndOfBlock = 96
	// Pad is the number of bytes that follow the data.
	Pad = 8

	// A block takes fewer bytes than this, including read-ahead.
	mostBytes = 264
	// notWhole is the advance of a symbol that does not fit an entry of Symbols.
	notWhole = 255
	// longFirst is returned by Block and Skip at a DC code longer than FirstBits.
	longFirst = ^Room
)

// Bits reads the bits of entropy-coded data, from which stuffed bytes have been removed.
type Bits struct {
	At   int    // in Data
	Acc  uint64 // the next bits, from the top
	N    int    // number of valid bits: at most 63, and at least LookBits before Block and Skip
	Data []byte // and Pad bytes of zero
}

// Fill raises N to at least 56. Zeros follow the data.
func (r *Bits) Fill() {
	if r.At+8 <= len(r.Data) {
		r.Acc |= binary.BigEndian.Uint64(r.Data[r.At:]) >> (r.N & 63)
	}
	r.At += (63 - r.N) >> 3
	r.N |= 56
}

// Overrun reports whether more bits were taken than the data has.
func (r *Bits) Overrun() bool { return 8*r.At-r.N > 8*(len(r.Data)-Pad) }

// Firsts maps the next FirstBits bits to the DC code that they begin with: its length, and the size of its value in
// the upper 8 bits. 0 if the code is longer.
type Firsts [1 << FirstBits]uint16

// Symbols maps the next LookBits bits to the one or two symbols that they hold, with their values:
//
//	bits 0–7 bits of all, 8–15 advance of the first, 16–23 of all, 24–31 bits of the first,
//	32–47 value of the first, 48–63 of the last
//
// A symbol with more bits than LookBits has notWhole at 16–23, the bits of its code at 0–7 (0: longer than LookBits)
// and those of its value at 24–31. The end of a block is never the first of two.
type Symbols [1 << LookBits]uint64

// Runs maps the next LookBits bits to the number of bits of the symbols that begin there (bits 0–7) and their
// advance, including the end of a block (8–15).
type Runs [1 << LookBits]uint16

// A Symbol describes a code: its length, the bits of the value after it, and its advance in coefficients. Length 0 is
// no code.
type Symbol struct{ Length, Size, Advance uint8 }

// Make fills the table from the symbols that LookBits bits begin with.
func (t *Symbols) Make(codes *[1 << LookBits]Symbol) {
	for i := range t {
		a := codes[i]
		used := int(a.Length + a.Size)
		if a.Length == 0 || used > LookBits {
			t[i] = uint64(a.Length) | uint64(a.Advance)<<8 | notWhole<<16 | uint64(a.Size)<<24
			continue
		}
		v := valueAt(i, int(a.Length), int(a.Size))
		b := codes[i<<used&(1<<LookBits-1)]
		if both := used + int(b.Length+b.Size); b.Length > 0 && both <= LookBits && a.Advance != EndOfBlock {
			w := valueAt(i, used+int(b.Length), int(b.Size))
			t[i] = uint64(both) | uint64(a.Advance)<<8 | uint64(a.Advance+b.Advance)<<16 | uint64(used)<<24 | v<<32 | w<<48
			continue
		}
		t[i] = uint64(used) | uint64(a.Advance)<<8 | uint64(a.Advance)<<16 | uint64(used)<<24 | v<<32 | v<<48
	}
}

// valueAt is the value of size bits behind the first `from` of LookBits bits, as 16 bits.
func valueAt(bits, from, size int) uint64 {
	v := uint32(bits >> (LookBits - from - size) & (1<<size - 1))
	return uint64(uint16(Extend(v, size)))
}

// Make fills the table from the symbols that LookBits bits begin with.
func (t *Runs) Make(codes *[1 << LookBits]Symbol) {
	const most = 90 // below EndOfBlock
	for i := range t {
		bits, advance := 0, 0
		for {
			s := codes[i<<bits&(1<<LookBits-1)]
			if s.Length == 0 || bits+int(s.Length) > LookBits || s.Advance != EndOfBlock &&
				advance+int(s.Advance) > most {
				break
			}
			advance += int(s.Advance)
			if bits += int(s.Length + s.Size); bits >= LookBits || s.Advance == EndOfBlock {
				break
			}
		}
		if bits == 0 {
			advance = notWhole
		}
		t[i] = uint16(bits | advance<<8)
	}
}

// Extend is the value of size bits: their first bit says whether it is positive.
func Extend(v uint32, size int) int32 {
	if size > 0 && v>>(size-1) == 0 {
		return int32(v) - (1<<size - 1)
	}
	return int32(v)
}

// Natural is the natural index of the coefficients in the order of the file. Indices past the block are stored after
// it.
var Natural = func() (list [Room]uint8) {
	for k := range list {
		list[k] = 64
		if k < len(zigzag) {
			list[k] = zigzag[k]
		}
	}
	return list
}()

var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

// LongFirst reports whether the result of Block or Skip means a long DC code.
func LongFirst(k int) bool { return k == longFirst }

func block(r *Bits, first *Firsts, rest *Symbols, blk *[Room]int16, pred *int32, k int) int {
	if k < 0 {
		if !difference(r, first, pred) {
			return longFirst
		}
		k = 0
	}
	acc, n := r.Acc, r.N
	for k < 63 {
		if n < 32 { // a code and a value are 31 bits at most
			r.Acc, r.N = acc, n
			r.Fill()
			acc, n = r.Acc, r.N
		}
		e := rest[acc>>(64-LookBits)]
		if next := k + int(e>>16&255); next < 63 {
			acc <<= e & 63
			n -= int(e & 63)
			blk[Natural[uint8(k+int(e>>8&255))]] = int16(e >> 32)
			blk[Natural[uint8(next)]] = int16(e >> 48)
			k = next
			continue
		}
		advance, all, bits, size := int(e>>8&255), int(e>>16&255), int(e&63), int(e>>24&63)
		v := int16(e >> 32)
		switch {
		case all == notWhole && bits == 0:
			r.Acc, r.N = acc, n
			return ^k
		case all == notWhole:
			v = int16(Extend(uint32(acc<<bits>>(64-size)), size))
			bits += size
		case all > advance && k+advance < 63: // two symbols; the second ends the block
			blk[Natural[uint8(k+advance)]] = v
			v, advance = int16(e>>48), all
		case all > advance: // the first ends the block; the second is another block's
			bits = size
		}
		acc <<= bits
		n -= bits
		k += advance
		blk[Natural[uint8(k)]] = v
	}
	r.Acc, r.N = acc, n
	blk[0] = int16(*pred)
	return k
}

// difference adds the difference of a DC coefficient to pred, unless its code is long.
func difference(r *Bits, first *Firsts, pred *int32) bool {
	if r.N < 32 {
		r.Fill()
	}
	e := first[r.Acc>>(64-FirstBits)]
	if e == 0 {
		return false
	}
	length, size := int(e&255), int(e>>8)
	v := Extend(uint32(r.Acc<<length>>1>>(63-size)), size)
	r.Acc <<= length + size
	r.N -= length + size
	*pred += v
	return true
}

func skip(r *Bits, first *Firsts, rest *Symbols, runs *Runs, pred *int32, k int) int {
	if k < 0 {
		if !difference(r, first, pred) {
			return longFirst
		}
		k = 0
	}
	for k < 63 {
		if r.N < 32 {
			r.Fill()
		}
		i := r.Acc >> (64 - LookBits)
		e := runs[i]
		bits, advance := int(e&255), int(e>>8)
		next := k + advance
		switch {
		case next <= 63: // whole
		case EndOfBlock <= advance && advance < notWhole && next-EndOfBlock < 63:
			next = EndOfBlock
		default: // the block may end among them: one at a time
			s := rest[i]
			if s>>16&255 != notWhole {
				bits = int(s >> 24 & 63)
			} else if bits = int(s & 63); bits == 0 {
				return ^k
			} else {
				bits += int(s >> 24 & 63)
			}
			next = k + int(s>>8&255)
		}
		r.Acc <<= bits
		r.N -= bits
		k = next
	}
	return k
}
