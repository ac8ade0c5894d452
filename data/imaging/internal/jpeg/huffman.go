package jpeg

import (
	"bytes"
	"errors"

	"onlinerna/data/imaging/internal/kern"
)

// table is one Huffman table.
type table struct {
	defined bool
	raw     [16 + 256]byte // its definition, so that the same table is not built again
	rawLen  int
	ac      bool
	// firsts belongs to a DC table; symbols and, once it is needed, runs belong to an AC table.
	firsts  kern.Firsts
	codes   [1 << kern.LookBits]kern.Symbol // the symbol at the start of the bits
	symbols kern.Symbols
	runs    kern.Runs
	hasRuns bool
	// end[n] is one more than the last code of n bits, left-aligned to 16 bits; codes of n bits have the symbols from
	// value[n] on, counted from code first[n].
	end    [17]uint32
	first  [17]int32
	value  [17]int32
	symbol [256]uint8
}

// symbolOf decodes a symbol of an AC table after a code of length bits.
func symbolOf(sym uint8, length int) kern.Symbol {
	s := kern.Symbol{Length: uint8(length), Size: sym & 15, Advance: sym>>4 + 1}
	if s.Size == 0 && sym != 0xf0 {
		s.Advance = kern.EndOfBlock
	}
	return s
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
	t.rawLen, t.hasRuns = 0, false
	copy(t.symbol[:], b[16:16+total])
	clear(t.codes[:])
	clear(t.firsts[:])
	code, k := 0, 0
	for i, n := range counts {
		length := i + 1
		t.first[length], t.value[length] = int32(code), int32(k)
		if code+int(n) > 1<<length {
			return 0, errTable
		}
		for range n {
			sym := t.symbol[k]
			switch {
			case !ac && sym > 15:
				return 0, errTable
			case !ac:
				fill(t.firsts[:], code, length, uint16(length)|uint16(sym)<<8)
			default:
				fill(t.codes[:], code, length, symbolOf(sym, length))
			}
			code++
			k++
		}
		t.end[length] = uint32(code) << (16 - length)
		code <<= 1
	}
	if ac {
		t.symbols.Make(&t.codes)
	}
	t.rawLen, t.ac = copy(t.raw[:], raw), ac
	t.defined = true
	return len(raw), nil
}

// fill sets every lookup entry with this prefix; codes longer than the index are skipped.
func fill[E any](list []E, code, length int, e E) {
	each := len(list) >> length
	for i := range each {
		list[code*each+i] = e
	}
}

// code decodes a code from the top 16 bits; length 0 means there is none.
func (t *table) code(top uint32) (sym uint8, length int) {
	for n := 1; n <= 16; n++ {
		if top < t.end[n] {
			return t.symbol[t.value[n]+int32(top>>(16-n))-t.first[n]], n
		}
	}
	return 0, 0
}

// bits reads a segment of entropy-coded data.
type bits struct {
	kern.Bits
	end int // where it ends in the file: at a marker, if the file is whole
}

// open starts reading at p of the file b. It uses and returns the memory of buf.
func (r *bits) open(buf, b []byte, p int) []byte {
	buf = kern.Grow(buf, len(b)-p+kern.Pad)[:0]
	for {
		i := bytes.IndexByte(b[p:], 0xff)
		if i < 0 {
			buf = append(buf, b[p:]...)
			p = len(b)
			break
		}
		buf = append(buf, b[p:p+i]...)
		p += i
		next := p + 1
		for next < len(b) && b[next] == 0xff { // fill
			next++
		}
		if next == len(b) || b[next] != 0 {
			break
		}
		buf = append(buf, 0xff)
		p = next + 1
	}
	buf = append(buf, make([]byte, kern.Pad)...)
	*r = bits{kern.Bits{Data: buf}, p}
	r.Fill()
	return buf
}

func (r *bits) need() {
	if r.N < 32 {
		r.Fill()
	}
}

// take returns the next count bits, 0 to 16 of them.
func (r *bits) take(count int) uint32 {
	r.need()
	v := uint32(r.Acc >> 32 >> (32 - count))
	r.Acc <<= count
	r.N -= count
	return v
}

// decode returns the next symbol.
func (r *bits) decode(t *table) (sym uint8, ok bool) {
	r.need()
	length := 0
	if sym, length = t.code(uint32(r.Acc >> 48)); length == 0 {
		return 0, false
	}
	r.Acc <<= length
	r.N -= length
	return sym, true
}

// receive returns a value of size bits, 0 to 15.
func (r *bits) receive(size int) int32 { return kern.Extend(r.take(size), size) }
