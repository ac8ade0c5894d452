package jpeg

import "onlinerna/data/imaging/internal/kern"

// block decodes the coefficients of a sequential block into blk, which is zero. It returns one more than the position
// of the last coefficient that may not be 0, or 0 if the data is invalid.
func (s *scan) block(set *kern.Set, c *scanComponent, blk *[kern.Room]int16) int {
	k := set.Block(&s.Bits, &c.dc.firsts, &c.ac.symbols, blk, &c.pred, -1)
	if k < 0 {
		k = s.finishBlock(set, c, blk, k)
	}
	switch {
	case k >= kern.EndOfBlock:
		return k - kern.EndOfBlock + 1
	case k == 63:
		return 64
	}
	return 0 // a run beyond the block
}

// finishBlock decodes the rest of a block after a long code at k.
func (s *scan) finishBlock(set *kern.Set, c *scanComponent, blk *[kern.Room]int16, k int) int {
	for k < 0 {
		var v int16
		var ok bool
		if k, v, ok = s.long(c, k); !ok {
			break
		}
		blk[kern.Natural[uint8(k)]] = v // the first coefficient is written last
		k = set.Block(&s.Bits, &c.dc.firsts, &c.ac.symbols, blk, &c.pred, k)
	}
	return k
}

// skip skips an unneeded block.
func (s *scan) skip(set *kern.Set, c *scanComponent) bool {
	if !c.ac.hasRuns {
		c.ac.runs.Make(&c.ac.codes)
		c.ac.hasRuns = true
	}
	k := set.Skip(&s.Bits, &c.dc.firsts, &c.ac.symbols, &c.ac.runs, &c.pred, -1)
	for k < 0 {
		var ok bool
		if k, _, ok = s.long(c, k); !ok {
			return false
		}
		k = set.Skip(&s.Bits, &c.dc.firsts, &c.ac.symbols, &c.ac.runs, &c.pred, k)
	}
	return k == 63 || k >= kern.EndOfBlock
}

// long decodes a symbol whose code is longer than the lookup index, at which Block and Skip return k. It returns the
// symbol's advance and value.
func (s *scan) long(c *scanComponent, k int) (int, int16, bool) {
	defer s.need()
	if kern.LongFirst(k) {
		size, ok := s.decode(c.dc)
		if ok {
			c.pred += s.receive(int(size))
		}
		return 0, 0, ok
	}
	sym, ok := s.decode(c.ac)
	if !ok {
		return 0, 0, false
	}
	symbol := symbolOf(sym, 0)
	return ^k + int(symbol.Advance), int16(s.receive(int(symbol.Size))), true
}
