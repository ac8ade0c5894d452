package jpeg

import "onlinerna/data/imaging/internal/kern"

// progression returns the decoding of a block in a progressive scan: spectral selection and successive approximation,
// ITU-T T.81, G.1.2.
func (s *scan) progression() func(s *scan, c *scanComponent, blk *[64]int16) bool {
	switch {
	case s.ss == 0 && s.ah == 0:
		return (*scan).firstDC
	case s.ss == 0:
		return (*scan).refineDC
	case s.ah == 0:
		return (*scan).firstAC
	}
	return (*scan).refineAC
}

func (s *scan) firstDC(c *scanComponent, blk *[64]int16) bool {
	size, ok := s.decode(c.dc)
	if !ok {
		return false
	}
	c.pred += s.receive(int(size))
	blk[0] = int16(c.pred << s.al)
	return true
}

func (s *scan) refineDC(_ *scanComponent, blk *[64]int16) bool {
	blk[0] |= int16(s.take(1) << s.al)
	return true
}

func (s *scan) firstAC(c *scanComponent, blk *[64]int16) bool {
	if s.eobrun > 0 {
		s.eobrun--
		return true
	}
	for k := s.ss; k <= s.se; k++ {
		sym, ok := s.decode(c.ac)
		if !ok {
			return false
		}
		run, size := int(sym>>4), int(sym&15)
		if size == 0 {
			if run < 15 {
				s.eobrun = 1<<run - 1 + int(s.take(run))
				break
			}
			k += 15
			continue
		}
		if k += run; k > s.se {
			return false
		}
		blk[kern.Natural[k]] = int16(s.receive(size) << s.al)
	}
	return true
}

func (s *scan) refineAC(c *scanComponent, blk *[64]int16) bool {
	bit := int16(1) << s.al
	k := s.ss
	if s.eobrun == 0 {
		for ; k <= s.se; k++ {
			sym, ok := s.decode(c.ac)
			if !ok {
				return false
			}
			run, size := int(sym>>4), int(sym&15)
			var v int16
			if size > 0 {
				if v = bit; s.take(1) == 0 {
					v = -bit
				}
			} else if run < 15 {
				s.eobrun = 1<<run + int(s.take(run))
				break
			}
			k = s.refine(blk, k, run, bit)
			if v != 0 {
				if k > s.se {
					return false
				}
				blk[kern.Natural[k]] = v
			}
		}
	}
	if s.eobrun > 0 {
		s.refine(blk, k, 64, bit)
		s.eobrun--
	}
	return true
}

// refine reads a bit for each coefficient from k on that is not zero, until it has passed zeros coefficients that are
// zero, and returns the index of the next zero.
func (s *scan) refine(blk *[64]int16, k, zeros int, bit int16) int {
	for ; k <= s.se; k++ {
		p := &blk[kern.Natural[k]]
		if *p == 0 {
			if zeros == 0 {
				break
			}
			zeros--
			continue
		}
		if s.take(1) == 0 || *p&bit != 0 {
			continue
		}
		if *p > 0 {
			*p += bit
		} else {
			*p -= bit
		}
	}
	return k
}
