package jpeg

import (
	"bytes"
	"errors"
	"fmt"

	"onlinerna/data/imaging/internal/kern"
)

var errData = errors.New("the entropy-coded data is invalid or too short")

// maxScans bounds the passes over an image, which may take a few bytes each. Encoders write about ten.
const maxScans = 100

// scan is one pass over some components.
type scan struct {
	bits
	comps  []scanComponent
	ss, se int // progressive: the first and last coefficient
	ah, al int // and the bits decoded before and those left
	eobrun int
	step   func(s *scan, c *scanComponent, blk *[64]int16) bool // of a progressive scan

	mcusX, mcusY   int // of this scan
	row            int // the next row of MCUs
	left, restarts int // MCUs until the next restart marker, and how many of those came

	list [4]scanComponent
}

type scanComponent struct {
	*component
	dc, ac *table
	pred   int32 // the last DC coefficient
}

// beginScan reads the scan header seg, whose data begins at p.
func (d *Decoder) beginScan(seg []byte, p int) error {
	s, f := &d.scan, &d.frame
	if err := d.scanHeader(s, seg); err != nil {
		return err
	}
	d.plain = s.open(d.plain, d.data, p)
	s.step = nil
	if f.progressive {
		s.step = s.progression()
	}
	s.mcusX, s.mcusY, s.row, s.left, s.restarts = f.mcusX, f.mcusY, 0, d.restart, 0
	if len(s.comps) == 1 {
		c := s.comps[0]
		s.mcusX, s.mcusY = ceilDiv(ceilDiv(f.width*c.h, f.hmax), 8), ceilDiv(ceilDiv(f.height*c.v, f.vmax), 8)
	}
	return nil
}

// whole reports whether a scan has all data of the image, so that rows are complete once their MCUs are.
func (d *Decoder) whole(s *scan) bool {
	return !d.frame.progressive && len(s.comps) == len(d.frame.comps)
}

// scanTo decodes the rows of MCUs before the given one.
func (d *Decoder) scanTo(s *scan, row int) error {
	for ; s.row < min(row, s.mcusY); s.row++ {
		for mx := range s.mcusX {
			if d.restart > 0 {
				if s.left == 0 {
					if err := d.resume(s, s.restarts); err != nil {
						return err
					}
					s.left, s.restarts = d.restart, s.restarts+1
				}
				s.left--
			}
			for i := range s.comps {
				c := &s.comps[i]
				h, v := c.h, c.v
				if len(s.comps) == 1 {
					h, v = 1, 1
				}
				for y := s.row * v; y < (s.row+1)*v; y++ {
					for x := mx * h; x < (mx+1)*h; x++ {
						if !d.decodeBlock(s, c, x, y) {
							return errData
						}
					}
				}
			}
		}
		if s.Overrun() {
			return errData
		}
	}
	return nil
}

// decodeBlock decodes one block; a sequential one is transformed if it is wanted.
func (d *Decoder) decodeBlock(s *scan, c *scanComponent, x, y int) bool {
	if s.step != nil {
		return s.step(s, c, (*[64]int16)(c.coef[(y*c.blocksX+x)*64:]))
	}
	if w := &c.wanted; uint(x-w.Min.X) >= uint(w.Max.X-w.Min.X) || uint(y-w.Min.Y) >= uint(w.Max.Y-w.Min.Y) {
		return s.skip(d.set, c)
	}
	if c.size == 1 { // only the first coefficient counts
		ok := s.skip(d.set, c)
		c.flat(int16(c.pred), x, y)
		return ok
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

// endScan decodes the rest of a scan, and returns the offset after it. In a whole scan it skips the data below the
// wanted box, but checks for an end marker.
func (d *Decoder) endScan(s *scan) (int, error) {
	stop := s.mcusY
	if d.whole(s) {
		stop = 0
		for _, c := range s.comps {
			stop = max(stop, ceilDiv(c.wanted.Max.Y, c.v))
		}
	}
	if err := d.scanTo(s, stop); err != nil {
		return 0, err
	}
	if s.row >= s.mcusY {
		return s.end, nil
	}
	i := bytes.LastIndex(d.data[s.end:], []byte{0xff, markerEOI})
	if i < 0 {
		return 0, errShort
	}
	return s.end + i, nil
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
	if s.ss > s.se || s.se > 63 || s.ss == 0 && s.se > 0 && f.progressive || s.ss > 0 && n > 1 ||
		s.ah > 13 || s.al > 13 {
		return fmt.Errorf("a scan of coefficients %d to %d, bits %d to %d of %d components is invalid", s.ss, s.se,
			s.ah, s.al, n)
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
