package jpeg

import "encoding/binary"

// room is the length of a block with room for what is stored beyond its coefficients, one of them; an index of 8 bits is
// always within.
const room = 256

// order is zigzag, continued: what goes on beyond the block is stored behind it.
var order = func() (list [256]uint8) {
	for k := range list {
		list[k] = 64
		if k < len(zigzag) {
			list[k] = zigzag[k]
		}
	}
	return list
}()

// firstCoefficient decodes the difference of a block's first coefficient.
func (s *scan) firstCoefficient(c *scanComponent) bool {
	if s.n < 32 {
		s.acc, s.n = s.fill(s.acc, s.n)
	}
	e := c.dc.look[s.acc>>lookShift]
	if e == 0 || e.size() > 0 {
		size, ok := s.decode(c.dc)
		if !ok {
			return false
		}
		c.pred += s.receive(int(size))
		return true
	}
	s.acc <<= e & 31
	s.n -= e.bits()
	c.pred += int32(e.value())
	return true
}

// block decodes the coefficients of a sequential block into blk, which is zero. It returns one more than the position of
// the last coefficient that may not be 0, or 0 if the data is invalid.
func (s *scan) block(c *scanComponent, blk *[room]int16) int {
	if !s.firstCoefficient(c) {
		return 0
	}
	acc, n, table := s.acc, s.n, c.ac
	if !table.hasPairs {
		table.makePairs()
	}
	k := 0
	for k < 63 {
		if n < 32 { // a code and a value are 31 bits at most
			if s.p+8 <= len(s.b) {
				v := binary.BigEndian.Uint64(s.b[s.p:])
				if x := ^v; (x-0x0101010101010101)&^x&0x8080808080808080 == 0 { // no byte is 0xff
					s.p += (63 - n) >> 3
					acc |= v >> (n & 63)
					n |= 56
					goto filled
				}
			}
			acc, n = s.fill(acc, n)
		}
	filled:
		top := acc >> lookShift
		two := table.pairs[top]
		first := k + int(two>>8&255)
		if two == 0 || first >= 63 && two>>16&255 != 0 {
			// A symbol that is not whole, or the last of the block with one of the next behind it.
			e := table.look[top]
			acc <<= e & 31
			n -= int(e & 31)
			k += int(e >> 9 & 127)
			v := int16(e >> 16)
			if e&(15<<5) != 0 || e == 0 {
				if acc, n, k, v = s.slow(acc, n, k, e, table); n < 0 {
					return 0
				}
			}
			blk[order[uint8(k)]] = v
			continue
		}
		acc <<= two & 63
		n -= int(two & 63)
		k = first + int(two>>16&255)
		blk[order[uint8(first)]] = int16(two >> 32)
		blk[order[uint8(k)]] = int16(two >> 48)
	}
	s.acc, s.n = acc, n
	blk[0] = int16(c.pred)
	switch {
	case k >= endOfBlock:
		return k - endOfBlock + 1
	case k == 63:
		return 64
	}
	return 0 // a run beyond the block
}

// slow finishes a symbol of which look has not all: a long code, or a value whose bits come next. n is −1 if there is none.
func (s *scan) slow(acc uint64, n, k int, e entry, table *table) (uint64, int, int, int16) {
	if e == 0 {
		sym, length := table.longer(uint32(acc>>48), lookBits+1)
		if length == 0 {
			return acc, -1, k, 0
		}
		e = symbolEntry(sym, length)
		acc <<= length & 31
		n -= length
		k += e.advance()
	}
	size := e.size()
	if size == 0 {
		return acc, n, k, 0
	}
	v := int16(extend(uint32(acc>>(64-size)), size))
	return acc << size, n - size, k, v
}

// skip goes over a block that nobody wants.
func (s *scan) skip(c *scanComponent) bool {
	if !s.firstCoefficient(c) {
		return false
	}
	acc, n, table := s.acc, s.n, c.ac
	if !table.hasSkip {
		table.makeSkip()
	}
	k := 0
	for k < 63 {
		if n < 32 {
			acc, n = s.fill(acc, n)
		}
		top := acc >> lookShift
		// Several symbols at once, unless the block may end among them.
		if e := table.skip[top]; e != 0 {
			if next := k + int(e>>4&127); next < 63 {
				acc <<= e & 15
				n -= int(e & 15)
				if k = next; e>>15 != 0 {
					k = endOfBlock
				}
				continue
			}
		}
		e := table.look[top]
		acc <<= e & 31
		n -= int(e & 31)
		k += int(e >> 9 & 127)
		if e&(15<<5) != 0 || e == 0 {
			if acc, n, k, _ = s.slow(acc, n, k, e, table); n < 0 {
				return false
			}
		}
	}
	s.acc, s.n = acc, n
	return k == 63 || k >= endOfBlock
}
