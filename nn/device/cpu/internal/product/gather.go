package product

import (
	"onlinerna/nn/device/cpu/internal/work"
)

// tap is one position of a convolution's window.
type tap struct {
	row, col int // source pixel, relative to the grid pixel's
	weight   int // position in the kernel, row-major
}

// grid is a set of pixels, N×height×width, with the location of their source pixels: tap t of pixel (n, i, j) reads (n,
// i·rowStep + t.row, j·colStep + t.col). Pixels outside the source are 0.
type grid struct {
	images, height, width int
	rowStep, colStep      int
	taps                  []tap
	srcH, srcW, srcC      int // the source, NHWC
	channels              int // the channels that are read: those of one group
	most                  int // pixels of a block, or 0 for blockPixels
}

func (g *grid) pixels() int { return g.images * g.height * g.width }

// direct reports whether the source itself, read in steps of srcC, is the matrix of pixels × channels.
func (g *grid) direct() bool {
	return len(g.taps) == 1 && g.taps[0].row == 0 && g.taps[0].col == 0 &&
		g.rowStep == 1 && g.colStep == 1 && g.height == g.srcH && g.width == g.srcW
}

// run is a row of taps whose source pixels are contiguous.
type run struct{ row, col, count int }

// chunk is a part of a grid's taps: a range of the inner dimension of the matrix product.
type chunk struct {
	taps []tap
	runs []run
	k    int // taps × channels
	ld   int // k rounded up to whole vectors, so that rows are aligned
}

// chunkDepth is about the part of the inner dimension that is gathered at a time, to stay in the second level cache.
const chunkDepth = 1024

// chunks cuts the taps into chunks.
func (g *grid) chunks() []chunk {
	var list []chunk
	size := max(1, chunkDepth/g.channels)
	for rest := g.taps; len(rest) > 0; {
		n := min(size, len(rest))
		c := chunk{taps: rest[:n], k: n * g.channels}
		c.ld = (c.k + 3) / 4 * 4
		for _, t := range c.taps {
			if i := len(c.runs) - 1; i >= 0 && g.channels == g.srcC &&
				c.runs[i].row == t.row && c.runs[i].col+c.runs[i].count == t.col {
				c.runs[i].count++
				continue
			}
			c.runs = append(c.runs, run{t.row, t.col, 1})
		}
		list = append(list, c)
		rest = rest[n:]
	}
	return list
}

// at is the position of pixel p.
func (g *grid) at(p int) (n, i, j int) {
	return p / (g.height * g.width), p / g.width % g.height, p % g.width
}

// next moves on by one pixel.
func (g *grid) next(n, i, j int) (int, int, int) {
	if j++; j < g.width {
		return n, i, j
	}
	if i++; i < g.height {
		return n, i, 0
	}
	return n + 1, 0, 0
}

// rows writes a matrix to dst: m pixels from p on × the chunk's taps and channels from first on. Its rows are c.ld
// apart and padded with zeros.
func (g *grid) rows(dst []float32, c *chunk, src []float32, first, p, m int) {
	for m > 0 {
		n, i, j := g.at(p)
		w := min(m, g.width-j)
		g.line(dst, c, src[first:], n, i, j, w)
		dst = dst[w*c.ld:]
		p += w
		m -= w
	}
}

// line is rows for w pixels of a line.
func (g *grid) line(dst []float32, c *chunk, src []float32, n, i, j, w int) {
	at := 0
	for _, r := range c.runs {
		size := r.count * g.channels
		row, col := i*g.rowStep+r.row, j*g.colStep+r.col
		if row < 0 || row >= g.srcH {
			for q := range w {
				clear(dst[q*c.ld+at:][:size])
			}
			at += size
			continue
		}
		source := src[(n*g.srcH+row)*g.srcW*g.srcC:]
		lo := min(w, work.Ceil(max(0, -col), g.colStep))                   // the run begins inside from pixel lo on
		hi := max(lo, min(w, work.Floor(g.srcW-r.count-col, g.colStep)+1)) // and ends inside before pixel hi
		g.clipped(dst[at:], c.ld, source, r, col, 0, lo)
		g.inside(dst[at:], c.ld, source, size, col, lo, hi)
		g.clipped(dst[at:], c.ld, source, r, col, hi, w)
		at += size
	}
	if at < c.ld {
		for q := range w {
			clear(dst[q*c.ld+at : (q+1)*c.ld])
		}
	}
}

// clipped writes run r of pixels lo to hi of a line, which begins at column col for pixel 0, with zeros outside the
// source.
func (g *grid) clipped(dst []float32, ld int, source []float32, r run, col, lo, hi int) {
	for q := lo; q < hi; q++ {
		d := dst[q*ld:][:r.count*g.channels]
		clear(d)
		at := col + q*g.colStep
		if from, to := max(0, -at), min(r.count, g.srcW-at); from < to {
			copy(d[from*g.channels:to*g.channels], source[(at+from)*g.srcC:])
		}
	}
}

// inside writes a run of size elements that lies inside the source for all pixels from lo to hi.
func (g *grid) inside(dst []float32, ld int, source []float32, size, col, lo, hi int) {
	if lo >= hi {
		return
	}
	step := g.colStep * g.srcC
	dst, source = dst[lo*ld:], source[col*g.srcC+lo*step:]
	const short = 8 // elements for which a call takes too long
	if size > short {
		for q := range hi - lo {
			copy(dst[q*ld:][:size], source[q*step:])
		}
		return
	}
	for t := range size {
		d, s := dst[t:], source[t:]
		for q := range hi - lo {
			d[q*ld] = s[q*step]
		}
	}
}

// gather writes the transpose of the matrix of rows: taps × channels, rows k to k+kn of them, by m pixels from p on,
// with rows ld apart. offsets is scratch for m numbers, zeros are g.channels zeros.
func (g *grid) gather(dst []float32, ld int, src []float32, first, p, m, k, kn int, offsets []int32, zeros []float32) {
	for kn > 0 {
		t, c := g.taps[k/g.channels], k%g.channels
		cn := min(kn, g.channels-c)
		g.offsets(offsets[:m], t, p)
		transpose(dst, ld, src[first+c:], g.srcC, zeros[:cn], offsets[:m])
		dst = dst[cn*ld:]
		k += cn
		kn -= cn
	}
}

// offsets lists, for each pixel from p on, the start of the source pixel under t, or -1 outside.
func (g *grid) offsets(dst []int32, t tap, p int) {
	n, i, j := g.at(p)
	for q := range dst {
		row, col := i*g.rowStep+t.row, j*g.colStep+t.col
		dst[q] = -1
		if uint(row) < uint(g.srcH) && uint(col) < uint(g.srcW) {
			dst[q] = int32((n*g.srcH+row)*g.srcW + col)
		}
		n, i, j = g.next(n, i, j)
	}
}

// transpose writes one column for each source pixel: its len(zeros) channels. Pixels are stride elements long; a
// negative number stands for a pixel of zeros.
func transpose(dst []float32, ld int, src []float32, stride int, zeros []float32, pixels []int32) {
	row := func(pixel int32) []float32 {
		if pixel < 0 {
			return zeros
		}
		return src[int(pixel)*stride:][:len(zeros)]
	}
	q := 0
	for ; q+4 <= len(pixels); q += 4 {
		s0 := row(pixels[q])
		s1, s2, s3 := row(pixels[q+1])[:len(s0)], row(pixels[q+2])[:len(s0)], row(pixels[q+3])[:len(s0)]
		d := dst[q:]
		for c, v := range s0 {
			e := d[c*ld:][:4]
			e[0], e[1], e[2], e[3] = v, s1[c], s2[c], s3[c]
		}
	}
	for ; q < len(pixels); q++ {
		for c, v := range row(pixels[q]) {
			dst[c*ld+q] = v
		}
	}
}
