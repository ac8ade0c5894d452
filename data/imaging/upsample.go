package imaging

import "onlinerna/data/imaging/internal/jpeg"

// planeRow returns columns [x0, x1) of row y of the image, upsampled as libjpeg's "fancy" upsampling does: a triangle filter
// where the plane is halved across, down or both, repetition otherwise. A full plane's row is returned as it is;
// others are written to *scratch, which is grown.
//
// libjpeg repeats the samples at the borders of the image, not those of the padded blocks, so neighbours are clamped.
func planeRow(c *jpeg.Plane, scratch *[]uint8, y, x0, x1 int) []uint8 {
	if c.HX == 1 && c.VX == 1 {
		return c.Pix[y*c.Stride+x0 : y*c.Stride+x1]
	}
	// Samples that cover the columns; the row below starts at first*HX.
	first, last := x0/c.HX, ceilDiv(x1, c.HX)
	*scratch = grow(*scratch, (last-first)*c.HX)
	out := *scratch
	near := samples(c, y/c.VX)
	other := y/c.VX - 1 // the second nearest row
	if y&1 == 1 {
		other += 2
	}
	far := samples(c, min(max(other, 0), c.Height-1))

	// libjpeg has no triangle filter across planes of one or two columns.
	switch {
	case c.HX == 2 && c.VX == 1 && c.Width > 2:
		upsampleH2V1(out, near, first, last)
	case c.HX == 1 && c.VX == 2:
		bias := uint16(1 + y&1)
		for i := range out {
			out[i] = uint8((3*uint16(near[first+i]) + uint16(far[first+i]) + bias) >> 2)
		}
	case c.HX == 2 && c.VX == 2 && c.Width > 2:
		upsampleH2V2(out, near, far, first, last)
	default:
		for i := first; i < last; i++ {
			for j := range c.HX {
				out[(i-first)*c.HX+j] = near[i]
			}
		}
	}
	return out[x0-first*c.HX : x1-first*c.HX]
}

func samples(c *jpeg.Plane, y int) []uint8 { return c.Pix[y*c.Stride : y*c.Stride+c.Width] }

// upsampleH2V1 writes two pixels for each sample in [first, last): 3/4 of it and 1/4 of its neighbour.
func upsampleH2V1(out, in []uint8, first, last int) {
	prev, this := uint16(in[max(first-1, 0)]), uint16(in[first])
	for i := range last - first {
		next := this
		if j := first + i + 1; j < len(in) {
			next = uint16(in[j])
		}
		p := out[2*i : 2*i+2 : 2*i+2]
		p[0] = uint8((3*this + prev + 1) >> 2)
		p[1] = uint8((3*this + next + 2) >> 2)
		prev, this = this, next
	}
}

// upsampleH2V2 does the same on column sums of 3/4 of the nearer row and 1/4 of the farther.
func upsampleH2V2(out, near, far []uint8, first, last int) {
	far = far[:len(near)]
	sum := func(i int) uint16 { return 3*uint16(near[i]) + uint16(far[i]) }
	prev, this := sum(max(first-1, 0)), sum(first)
	for i := range last - first {
		next := this
		if j := first + i + 1; j < len(near) {
			next = 3*uint16(near[j]) + uint16(far[j])
		}
		p := out[2*i : 2*i+2 : 2*i+2]
		p[0] = uint8((3*this + prev + 8) >> 4)
		p[1] = uint8((3*this + next + 7) >> 4)
		prev, this = this, next
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
