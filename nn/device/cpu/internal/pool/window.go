package pool

import (
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
)

// pooling is the window of a pooling op, from x to y.
type pooling struct {
	kernel, stride, pad [2]int
	x, y                nhwc.Image
}

// newPooling replaces a zero stride by the kernel's size.
func newPooling(kernel, stride, pad [2]int, x, y []int) *pooling {
	for d := range 2 {
		if stride[d] == 0 {
			stride[d] = kernel[d]
		}
	}
	return &pooling{kernel, stride, pad, nhwc.ImageOf(x), nhwc.ImageOf(y)}
}

// span is the part of the window of position i that lies inside an input of extent n, in dimension d.
func (p *pooling) span(d, i, n int) (lo, hi int) {
	lo = i*p.stride[d] - p.pad[d]
	return max(lo, 0), min(lo+p.kernel[d], n)
}

// under is the lines of x, in image n, under line i of y. take makes k take x in pieces of at most that size.
func (p *pooling) under(x *work.Pieces, worker, n, i int) []float32 {
	r0, r1 := p.span(0, i, p.x.H)
	line := p.x.W * p.x.C
	return x.Read(worker, (n*p.x.H+r0)*line, (n*p.x.H+r1)*line)
}

func (p *pooling) take(k *work.Kernel, x int) { k.Take(min(p.kernel[0], p.x.H)*p.x.W*p.x.C, x) }

// windows calls f for the windows of line i of y, in runs of windows that cover equal parts of x: from column j on, the
// first one at row r and column c of x. The given number of channels of each pixel take part.
func (p *pooling) windows(i, channels int, f func(j, r, c int, w vec.Windows)) {
	r0, r1 := p.span(0, i, p.x.H)
	w := vec.Windows{
		Channels: channels, Pitch: p.y.C,
		Rows: r1 - r0, Line: p.x.W * p.x.C, Pixel: p.x.C, Step: p.stride[1] * p.x.C,
	}
	for j := 0; j < p.y.W; j += w.Count {
		c0, c1 := p.span(1, j, p.x.W)
		w.Count, w.Columns = 1, c1-c0
		if w.Columns == p.kernel[1] {
			w.Count = min((p.x.W-c1)/p.stride[1]+1, p.y.W-j)
		}
		f(j, r0, c0, w)
	}
}

// apart reports that no two windows share a pixel of x.
func (p *pooling) apart() bool { return p.kernel[0] <= p.stride[0] && p.kernel[1] <= p.stride[1] }

// covers reports that each pixel of x lies in a window.
func (p *pooling) covers() bool {
	for d, e := range [2][2]int{{p.x.H, p.y.H}, {p.x.W, p.y.W}} {
		if _, end := p.span(d, e[1]-1, e[0]); p.kernel[d] < p.stride[d] || end < e[0] {
			return false
		}
	}
	return true
}

// scatter calls f for each image, tile of channels from lo to hi, and line i of y. If reset is set, it first clears
// that tile in the lines of dx under line i. Windows overlap, so an image and a tile form one block.
func (p *pooling) scatter(dx []float32, reset bool, f func(n, i, lo, hi int)) work.Phase {
	tiles := work.Ceil(p.x.C, nhwc.ChannelTile)
	return work.Phase{Blocks: p.x.N * tiles, Run: func(_, block int) {
		n, lo := block/tiles, block%tiles*nhwc.ChannelTile
		hi := min(lo+nhwc.ChannelTile, p.x.C)
		next := n * p.x.H // the first line of dx that is not yet clear
		zero := func(to int) {
			for ; reset && next < to; next++ {
				line := dx[next*p.x.W*p.x.C:][:p.x.W*p.x.C]
				if tiles == 1 {
					clear(line)
					continue
				}
				for q := 0; q < len(line); q += p.x.C {
					clear(line[q+lo : q+hi])
				}
			}
		}
		for i := range p.y.H {
			_, r1 := p.span(0, i, p.x.H)
			zero(n*p.x.H + r1)
			f(n, i, lo, hi)
		}
		zero((n + 1) * p.x.H)
	}}
}
