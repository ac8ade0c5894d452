package convex

import "onlinerna/rna/convex/internal/kern"

// strips are the values of a compressed matrix in the order in which package kern reads them: tiles of some rows
// after one another, the strips of columns of a tile, the rows of a strip. The part of four vectors that a strip uses
// stays in the L1 cache for all rows of a tile.
type strips struct {
	width  int // columns of a strip, and one that fills up rows
	number int // of strips
	tile   int // rows of a tile; the last one of a block of the team may have fewer

	steps   []float64 // the one value of each column, or nil
	values  []float64 // nil with steps
	columns []uint16
	counts  []uint32 // fours of values: of the rows of a strip, of the strips of a tile
	starts  []int    // of values, for the strips of a tile, by first row of the tile
}

const (
	tileRows     = 64
	stripColumns = 512
	stripRow     = 32 // wanted mean number of values of a row in a strip
	mostStripped = 1 << 14
)

// stripped returns the strips of a compressed matrix that is large enough to gain by them, or nil.
func (m *Matrix) stripped(t *team) *strips {
	if m.index == nil || m.NonZeros() < serialWork || m.d > mostStripped || m.NonZeros() < stripRow/2*m.n {
		return nil
	}
	m.encoded.Do(func() { m.strips = m.strip(t) })
	return m.strips
}

func (m *Matrix) strip(t *team) *strips {
	s := &strips{width: min(m.d, max(stripColumns, stripRow*m.n*m.d/m.NonZeros())), tile: tileRows}
	s.number = (m.d + s.width - 1) / s.width
	s.counts, s.starts = make([]uint32, 0, m.n*s.number), make([]int, m.n*s.number)
	s.columns = make([]uint16, 0, m.NonZeros()+m.n*s.number)
	if s.steps = m.single(); s.steps == nil {
		s.values = make([]float64, 0, cap(s.columns))
	}
	next := make([]int, m.n) // value of each row
	copy(next, m.start)
	for b := range t.blocks() {
		for lo := t.bounds[b]; lo < t.bounds[b+1]; lo += s.tile {
			hi := min(lo+s.tile, t.bounds[b+1])
			for strip := range s.number {
				s.starts[lo*s.number+strip] = len(s.columns)
				first, end := strip*s.width, (strip+1)*s.width
				for i := lo; i < hi; i++ {
					k, from := next[i], len(s.columns)
					for ; k < m.start[i+1] && int(m.index[k]) < end; k++ {
						s.add(int(m.index[k])-first, m.values[k])
					}
					next[i] = k
					for (len(s.columns)-from)%4 != 0 {
						s.add(s.width, 0)
					}
					s.counts = append(s.counts, uint32((len(s.columns)-from)/4))
				}
			}
		}
	}
	return s
}

func (s *strips) add(column int, value float64) {
	s.columns = append(s.columns, uint16(kern.Quad*column))
	if s.steps == nil {
		s.values = append(s.values, value)
	}
}

// single returns the value of each column, if every column has only one.
func (m *Matrix) single() []float64 {
	steps, seen := make([]float64, m.d), make([]bool, m.d)
	for k, j := range m.index {
		if seen[j] && steps[j] != m.values[k] {
			return nil
		}
		steps[j], seen[j] = m.values[k], true
	}
	return steps
}

// size is the elements of four vectors as kernels want them.
func (s *strips) size() int { return kern.Quad * s.number * (s.width + 1) }

// each calls f with the strips of vectors and the first elements of them.
func (s *strips) each(d int, f func(from, n, at int)) {
	for strip := range s.number {
		from := strip * s.width
		f(from, min(s.width, d-from), kern.Quad*strip*(s.width+1))
	}
}

// pack puts vectors side by side, strip by strip, with zeros in the columns that fill up.
func (s *strips) pack(dst []float64, vectors [][]float64) {
	clear(dst[:s.size()])
	for k, w := range vectors {
		s.each(len(w), func(from, n, at int) {
			for j, v := range w[from : from+n] {
				if s.steps != nil {
					v *= s.steps[from+j]
				}
				dst[at+kern.Quad*j+k] = v
			}
		})
	}
}

// unpack adds vector k of a packed sum to dst.
func (s *strips) unpack(dst, packed []float64, k int) {
	s.each(len(dst), func(from, n, at int) {
		to := dst[from : from+n]
		for j := range to {
			v := packed[at+kern.Quad*j+k]
			if s.steps != nil {
				v *= s.steps[from+j]
			}
			to[j] += v
		}
	})
}

// dots sets out[4*i+k] to the product of row lo+i, of a tile of rows rows, and vector k.
func (s *strips) dots(k *kern.Set, out, packed []float64, lo, rows int) {
	clear(out[:kern.Quad*rows])
	for strip := range s.number {
		values, columns, counts := s.at(strip, lo, rows)
		w := &packed[kern.Quad*strip*(s.width+1)]
		if s.steps != nil {
			k.StripSums(&out[0], columns, counts, w, rows)
		} else {
			k.StripDots(&out[0], values, columns, counts, w, rows)
		}
	}
}

// addRows adds row lo+i of a tile, times a[4*i+k], to vector k of packed sums.
func (s *strips) addRows(k *kern.Set, packed, a []float64, lo, rows int) {
	for strip := range s.number {
		values, columns, counts := s.at(strip, lo, rows)
		dst := &packed[kern.Quad*strip*(s.width+1)]
		if s.steps != nil {
			k.StripAdds(dst, columns, counts, &a[0], rows)
		} else {
			k.StripAddRows(dst, values, columns, counts, &a[0], rows)
		}
	}
}

// at points to a strip of a tile. Its pointers are nil if the strip is empty.
func (s *strips) at(strip, lo, rows int) (values *float64, columns *uint16, counts *uint32) {
	start := s.starts[lo*s.number+strip]
	if start < len(s.columns) {
		columns = &s.columns[start]
		if s.steps == nil {
			values = &s.values[start]
		}
	}
	return values, columns, &s.counts[lo*s.number+strip*rows]
}
