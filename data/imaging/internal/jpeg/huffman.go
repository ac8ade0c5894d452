package jpeg

import (
	"encoding/binary"
	"errors"
)

const (
	lookBits  = 9
	lookShift = 64 - lookBits
)

// table is one Huffman table.
type table struct {
	defined bool
	// look, at the next lookBits bits, is length<<8 | symbol of the code they begin with, 0 where that is longer.
	look [1 << lookBits]uint16
	// short, of AC tables, is value<<8 | run<<4 | length where the bits hold code and value of a coefficient, else 0.
	short [1 << lookBits]int16
	// end[n] is one more than the last code of n bits, left-aligned to 16 bits; codes of n bits have the symbols from
	// value[n] on, counted from code first[n].
	end    [17]uint32
	first  [17]int32
	value  [17]int32
	symbol [256]uint8
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
	copy(t.symbol[:], b[16:16+total])
	t.look = [1 << lookBits]uint16{}
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
				from := code << (lookBits - length)
				for j := range 1 << (lookBits - length) {
					t.look[from+j] = uint16(length)<<8 | uint16(sym)
				}
			}
			code++
			k++
		}
		t.end[length] = uint32(code) << (16 - length)
		code <<= 1
	}
	if ac {
		t.shorten()
	}
	t.defined = true
	return 16 + total, nil
}

// shorten fills short from look.
func (t *table) shorten() {
	for i, e := range t.look {
		t.short[i] = 0
		length, run, size := int(e>>8), int(e>>4&15), int(e&15)
		if size == 0 || length+size > lookBits {
			continue
		}
		v := extend(uint32(i>>(lookBits-length-size))&(1<<size-1), size)
		if -128 <= v && v <= 127 {
			t.short[i] = int16(v<<8 | int32(run)<<4 | int32(length+size))
		}
	}
}

// extend is the value of size bits, size at least 1: their first bit says whether it is positive.
func extend(v uint32, size int) int32 {
	if v>>(size-1) == 0 {
		return int32(v) - (1<<size - 1)
	}
	return int32(v)
}

// long decodes a code of more than lookBits bits from the top 16 bits; length 0 means there is none.
func (t *table) long(top uint32) (sym uint8, length int) {
	for n := lookBits + 1; n <= 16; n++ {
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
	if e := t.look[r.acc>>lookShift]; e != 0 {
		sym, length = uint8(e), int(e>>8)
	} else if sym, length = t.long(uint32(r.acc >> 48)); length == 0 {
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
