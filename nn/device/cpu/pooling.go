package cpu

// pooling is the window of a pooling op, from x to y.
type pooling struct {
	kernel, stride, pad [2]int
	x, y                image
}

// newPooling fills in what a zero stride means: the kernel's size.
func newPooling(kernel, stride, pad [2]int, x, y []int) *pooling {
	for d := range 2 {
		if stride[d] == 0 {
			stride[d] = kernel[d]
		}
	}
	return &pooling{kernel, stride, pad, imageOf(x), imageOf(y)}
}

// span is the part of the window of position i that lies in an input of extent n, in dimension d.
func (p *pooling) span(d, i, n int) (lo, hi int) {
	lo = i*p.stride[d] - p.pad[d]
	return max(lo, 0), min(lo+p.kernel[d], n)
}

// scatter calls f for each image, tile of channels from lo to hi, and pixel of y, with the window under
// it: rows r0 to r1 and columns c0 to c1 of x. Before that it clears the tile of dx. Windows overlap, so what
// belongs to one image and tile is one block.
func (p *pooling) scatter(dx []float32, f func(n, i, j, r0, r1, c0, c1, lo, hi int)) phase {
	tiles := ceil(p.x.c, channelTile)
	return phase{p.x.n * tiles, func(_, block int) {
		n, lo := block/tiles, block%tiles*channelTile
		hi := min(lo+channelTile, p.x.c)
		for q := n * p.x.h * p.x.w; q < (n+1)*p.x.h*p.x.w; q++ {
			clear(dx[q*p.x.c+lo : q*p.x.c+hi])
		}
		for i := range p.y.h {
			r0, r1 := p.span(0, i, p.x.h)
			for j := range p.y.w {
				c0, c1 := p.span(1, j, p.x.w)
				f(n, i, j, r0, r1, c0, c1, lo, hi)
			}
		}
	}}
}
