package jpeg

import (
	"encoding/binary"
	"errors"
)

const (
	lookBits  = 11
	lookShift = 64 - lookBits
)

// table is one Huffman table.
type table struct {
	defined bool
	raw     [16 + 256]byte // what it was made of, so that the same table is not made again
	rawLen  int
	ac      bool
	// look, at the next lookBits bits, says what symbol they begin with; 0 where its code is longer.
	look [1 << lookBits]entry
	// pairs holds two symbols where the bits hold both whole; see makePairs.
	pairs    [1 << lookBits]pair
	hasPairs bool
	// skip does the same for all the coefficients that the bits hold whole; see makeSkip.
	skip    [1 << lookBits]uint16
	hasSkip bool
	// end[n] is one more than the last code of n bits, left-aligned to 16 bits; codes of n bits have the symbols from
	// value[n] on, counted from code first[n].
	end    [17]uint32
	first  [17]int32
	value  [17]int32
	symbol [256]uint8
}

// entry is a symbol: how many bits it takes, how many coefficients it goes on and the value of the last of them. Where
// the bits of the value are not all among those that were looked up, size is how many they are, and bits is the code alone.
//
//	bits 0–4 bits, 5–8 size, 9–15 advance, 16–31 value
type entry uint32

func (e entry) bits() int    { return int(e & 31) }
func (e entry) size() int    { return int(e >> 5 & 15) }
func (e entry) advance() int { return int(e >> 9 & 127) }
func (e entry) value() int16 { return int16(e >> 16) }

// Advances beyond a block. The end of a block goes so far that it can be told from a run that is too long.
const (
	endOfBlock = 96
	longestRun = 63 + 16
)

// symbolEntry is the entry of a symbol whose code has length bits. A symbol of a DC table is a size alone.
func symbolEntry(sym uint8, length int) entry {
	run, size := int(sym>>4), int(sym&15)
	advance := run + 1
	if sym&15 == 0 && sym != 0xf0 {
		advance = endOfBlock
	}
	return entry(length | size<<5 | advance<<9)
}

var errTable = errors.New("a Huffman table is invalid or cut short")

// read builds the table from its 16 counts and its symbols and returns their number of bytes.
func (t *table) read(b []byte, ac bool) (int, error) {
	counts := b[:16]
	total := 0
	for _, n := range counts {
		total += int(n)
	}
	if total > 256 || len(b) < 16+total {
		return 0, errTable
	}
	raw := b[:16+total]
	if t.rawLen == len(raw) && t.ac == ac && string(t.raw[:t.rawLen]) == string(raw) {
		t.defined = true
		return len(raw), nil
	}
	t.rawLen, t.hasSkip, t.hasPairs = 0, false, false
	copy(t.symbol[:], b[16:16+total])
	t.look = [1 << lookBits]entry{}
	code, k := 0, 0
	for i, n := range counts {
		length := i + 1
		t.first[length], t.value[length] = int32(code), int32(k)
		if code+int(n) > 1<<length {
			return 0, errTable
		}
		for range n {
			sym := t.symbol[k]
			if !ac && sym > 15 {
				return 0, errTable
			}
			if length <= lookBits {
				t.enter(code, length, symbolEntry(sym, length))
			}
			code++
			k++
		}
		t.end[length] = uint32(code) << (16 - length)
		code <<= 1
	}
	t.rawLen, t.ac = copy(t.raw[:], raw), ac
	t.defined = true
	return len(raw), nil
}

// enter fills what of look begins with a code.
func (t *table) enter(code, length int, e entry) {
	spare := lookBits - length
	part := t.look[code<<spare : (code+1)<<spare]
	size := e.size()
	if size == 0 || size > spare {
		for i := range part {
			part[i] = e
		}
		return
	}
	e = e&^(15<<5) + entry(size) // with the value
	each := 1 << (spare - size)
	for v := range 1 << size {
		e := e | entry(uint16(extend(uint32(v), size)))<<16
		for i := range part[v*each : (v+1)*each] {
			part[v*each+i] = e
		}
	}
}

// pair is one or two symbols: the bits of both, how far each goes on, and their values. A second one that goes no
// further repeats the value of the first. 0 where not even the first is whole.
//
//	bits 0–7 bits, 8–15 and 16–23 advances, 32–47 and 48–63 values
type pair uint64

// makePairs fills pairs. The end of a block is never the first of two.
func (t *table) makePairs() {
	t.hasPairs = true
	for i := range t.pairs {
		e := t.look[i]
		if e == 0 || e.size() > 0 {
			t.pairs[i] = 0
			continue
		}
		first := pair(e.bits()) | pair(e.advance())<<8 | pair(uint16(e.value()))<<32
		next := t.look[i<<e.bits()&(1<<lookBits-1)]
		if e.advance() == endOfBlock || next == 0 || next.size() > 0 || e.bits()+next.bits() > lookBits {
			t.pairs[i] = first | pair(uint16(e.value()))<<48
			continue
		}
		t.pairs[i] = first + pair(next.bits()) | pair(next.advance())<<16 | pair(uint16(next.value()))<<48
	}
}

// makeSkip fills skip: how many bits the coefficients take that the bits hold whole (bits 0–3), how far they
// go on (bits 4–10), and whether the end of the block follows, which the bits include then (bit 15). 0 where not even the
// first is whole.
func (t *table) makeSkip() {
	t.hasSkip = true
	for i := range t.skip {
		bits, advance, end := 0, 0, 0
		for end == 0 {
			e := t.look[i<<bits&(1<<lookBits-1)]
			if e == 0 || e.size() > 0 || bits+e.bits() > lookBits {
				break
			}
			bits += e.bits()
			if e.advance() == endOfBlock {
				end = 1
			} else {
				advance += e.advance()
			}
			if advance > 63 {
				break
			}
		}
		t.skip[i] = uint16(bits | advance<<4 | end<<15)
	}
}

// extend is the value of size bits, size at least 1: their first bit says whether it is positive.
func extend(v uint32, size int) int32 {
	if v>>(size-1) == 0 {
		return int32(v) - (1<<size - 1)
	}
	return int32(v)
}

// code decodes a code from the top 16 bits; length 0 means there is none.
func (t *table) code(top uint32) (sym uint8, length int) { return t.longer(top, 1) }

// longer decodes a code of at least n bits.
func (t *table) longer(top uint32, n int) (sym uint8, length int) {
	for ; n <= 16; n++ {
		if top < t.end[n] {
			return t.symbol[t.value[n]+int32(top>>(16-n))-t.first[n]], n
		}
	}
	return 0, 0
}

// bits reads entropy-coded data.
type bits struct {
	b   []byte
	p   int
	acc uint64 // the next bits, from the top
	n   int    // how many of them are valid
	pad int    // how many zeros have been put after the data's end
}

// fill tops up acc, which has n < 57 bits, to 56 at least.
func (r *bits) fill(acc uint64, n int) (uint64, int) {
	if r.p+8 <= len(r.b) {
		v := binary.BigEndian.Uint64(r.b[r.p:])
		if x := ^v; (x-0x0101010101010101)&^x&0x8080808080808080 == 0 { // no byte is 0xff
			r.p += (63 - n) >> 3
			return acc | v>>(n&63), n | 56
		}
	}
	for n <= 56 {
		c, ok := r.next()
		if !ok {
			r.pad += 8
		}
		acc |= uint64(c) << (56 - n)
		n += 8
	}
	return acc, n
}

// next returns the next byte of the data; at a marker and at the end there is none.
func (r *bits) next() (c uint8, ok bool) {
	if r.p >= len(r.b) {
		return 0, false
	}
	if c = r.b[r.p]; c != 0xff {
		r.p++
		return c, true
	}
	p := r.p + 1
	for p < len(r.b) && r.b[p] == 0xff {
		p++
	}
	if p < len(r.b) && r.b[p] == 0 {
		r.p = p + 1
		return c, true
	}
	return 0, false
}

// overrun reports whether more bits were read than there are.
func (r *bits) overrun() bool { return r.n < r.pad }

func (r *bits) need() {
	if r.n < 32 {
		r.acc, r.n = r.fill(r.acc, r.n)
	}
}

// take returns the next count bits, 0 to 16 of them.
func (r *bits) take(count int) uint32 {
	r.need()
	v := uint32(r.acc >> 32 >> (32 - count))
	r.acc <<= count
	r.n -= count
	return v
}

// decode returns the next symbol.
func (r *bits) decode(t *table) (sym uint8, ok bool) {
	r.need()
	length := 0
	if sym, length = t.code(uint32(r.acc >> 48)); length == 0 {
		return 0, false
	}
	r.acc <<= length
	r.n -= length
	return sym, true
}

// receive returns a value of size bits, 0 to 15.
func (r *bits) receive(size int) int32 {
	if size == 0 {
		return 0
	}
	return extend(r.take(size), size)
}
