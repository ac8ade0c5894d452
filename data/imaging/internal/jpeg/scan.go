package jpeg

import (
	"bytes"
	"errors"
	"fmt"

	"onlinerna/data/imaging/internal/kern"
)

var errData = errors.New("the entropy-coded data is invalid or too short")

// scan is one pass over some components.
type scan struct {
	bits
	comps  []scanComponent
	ss, se int // progressive: the first and last coefficient
	ah, al int // and the bits done before and left to do
	eobrun int
	step   func(s *scan, c *scanComponent, blk *[64]int16) bool // progressive

	list [4]scanComponent
}

type scanComponent struct {
	*component
	dc, ac *table
	pred   int32 // the last DC coefficient
}

// readScan decodes the scan whose header is seg and whose data begins at p. It returns the offset after it.
func (d *Decoder) readScan(seg []byte, p int) (int, error) {
	s := &d.scan
	if err := d.scanHeader(s, seg); err != nil {
		return 0, err
	}
	d.plain = s.open(d.plain, d.data, p)
	decode := (*Decoder).sequential
	if d.frame.progressive {
		s.step, decode = s.progression(), (*Decoder).progressive
	}
	f := &d.frame
	mcusX, mcusY := f.mcusX, f.mcusY
	single := len(s.comps) == 1
	if single {
		c := s.comps[0]
		mcusX, mcusY = ceilDiv(c.width, 8), ceilDiv(c.height, 8)
	}
	stop := d.lastRow(s)
	left, restarts := d.restart, 0
	for my := range mcusY {
		if my == stop {
			// Nothing below is wanted; an end marker must still follow.
			i := bytes.LastIndex(d.data[s.end:], []byte{0xff, markerEOI})
			if i < 0 {
				return 0, errShort
			}
			return s.end + i, nil
		}
		for mx := range mcusX {
			if d.restart > 0 {
				if left == 0 {
					if err := d.resume(s, restarts); err != nil {
						return 0, err
					}
					left, restarts = d.restart, restarts+1
				}
				left--
			}
			if single {
				if !decode(d, s, &s.comps[0], mx, my) {
					return 0, errData
				}
				continue
			}
			for i := range s.comps {
				c := &s.comps[i]
				for v := range c.v {
					for h := range c.h {
						if !decode(d, s, c, mx*c.h+h, my*c.v+v) {
							return 0, errData
						}
					}
				}
			}
		}
		if s.Overrun() {
			return 0, errData
		}
	}
	return s.end, nil
}

// lastRow returns the row of MCUs at which a sequential scan of all components may stop, −1 for others.
func (d *Decoder) lastRow(s *scan) int {
	f := &d.frame
	if f.progressive || len(s.comps) != len(f.comps) {
		return -1
	}
	stop := 0
	for _, c := range s.comps {
		stop = max(stop, ceilDiv(c.wanted.Max.Y, c.v))
	}
	return stop
}

func (d *Decoder) scanHeader(s *scan, seg []byte) error {
	f := &d.frame
	if f.comps == nil {
		return errors.New("a scan comes before the frame header")
	}
	if len(seg) < 1 || seg[0] < 1 || seg[0] > 4 || len(seg) < 4+2*int(seg[0]) {
		return errors.New("a scan header is invalid or cut short")
	}
	n := int(seg[0])
	end := seg[1+2*n:]
	s.comps, s.eobrun = s.list[:n], 0
	s.ss, s.se, s.ah, s.al = int(end[0]), int(end[1]), int(end[2]>>4), int(end[2]&15)
	if !f.progressive {
		s.ss, s.se, s.ah, s.al = 0, 63, 0, 0
	}
	if s.ss > s.se || s.se > 63 || s.ss == 0 && s.se > 0 && f.progressive || s.ss > 0 && n > 1 || s.ah > 13 || s.al > 13 {
		return fmt.Errorf("a scan of coefficients %d to %d, bits %d to %d of %d components is invalid", s.ss, s.se, s.ah, s.al, n)
	}
	blocks := 0
	for i := range n {
		id, td, ta := seg[1+2*i], seg[2+2*i]>>4, seg[2+2*i]&15
		if td > 3 || ta > 3 {
			return fmt.Errorf("a scan names the Huffman tables %d and %d", td, ta)
		}
		c := f.component(id)
		if c == nil {
			return fmt.Errorf("a scan names the component %d, which the frame header does not", id)
		}
		for _, other := range s.comps[:i] {
			if other.component == c {
				return fmt.Errorf("a scan names the component %d twice", id)
			}
		}
		s.comps[i] = scanComponent{component: c, dc: &d.dc[td], ac: &d.ac[ta]}
		if s.ss == 0 && s.ah == 0 && !d.dc[td].defined || s.se > 0 && !d.ac[ta].defined {
			return errors.New("a scan uses a Huffman table that has not been defined")
		}
		if !c.seen {
			if !d.known[c.tq] {
				return fmt.Errorf("component %d uses quantisation table %d, which has not been defined", id, c.tq)
			}
			for k := range 64 {
				c.quant[kern.Natural[k]] = int16(d.quant[c.tq][k])
			}
			c.seen = true
		}
		blocks += c.h * c.v
	}
	if n > 1 && blocks > 10 {
		return fmt.Errorf("a scan has %d blocks in a unit, the limit is 10", blocks)
	}
	return nil
}

func (f *frame) component(id uint8) *component {
	for i := range f.comps {
		if f.comps[i].id == id {
			return &f.comps[i]
		}
	}
	return nil
}

// resume goes past the restart marker that must come next.
func (d *Decoder) resume(s *scan, count int) error {
	if s.Overrun() {
		return errData
	}
	p := s.end
	for p+1 < len(d.data) && d.data[p+1] == 0xff {
		p++
	}
	if p+1 >= len(d.data) {
		return errShort
	}
	if want := uint8(markerRST0 + count&7); d.data[p+1] != want {
		return fmt.Errorf("marker %#02x instead of the restart marker %#02x", d.data[p+1], want)
	}
	d.plain = s.open(d.plain, d.data, p+2)
	s.eobrun = 0
	for i := range s.comps {
		s.comps[i].pred = 0
	}
	return nil
}

// sequential decodes one block and transforms it if it is wanted.
func (d *Decoder) sequential(s *scan, c *scanComponent, x, y int) bool {
	w := &c.wanted
	if !(w.Min.X <= x && x < w.Max.X && w.Min.Y <= y && y < w.Max.Y) {
		return s.skip(d.set, c)
	}
	blk := &d.block
	n := s.block(d.set, c, blk)
	if n <= 1 {
		if n == 1 {
			c.flat(blk[0], x, y)
		}
		return n == 1
	}
	c.transform(d.set, (*[64]int16)(blk[:]), x, y)
	clear(blk[:65])
	return true
}
