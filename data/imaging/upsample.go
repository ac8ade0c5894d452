package imaging

import (
	"onlinerna/data/imaging/internal/jpeg"
	"onlinerna/data/imaging/internal/kern"
)

// planeRow returns columns [x0, x1) of row y of the image, upsampled as libjpeg's "fancy" upsampling does: a triangle
// filter where the plane is halved across, down or both, repetition otherwise. A full plane's row is returned
// unchanged; others are written to *scratch, which grows; plain skips the filters.
//
// libjpeg repeats the samples at the borders of the image, not those of the padded blocks, so neighbours are clamped.
func planeRow(set *kern.Set, c *jpeg.Plane, plain bool, scratch *[]uint8, y, x0, x1 int) []uint8 {
	if c.HX == 1 && c.VX == 1 {
		return c.Pix[y*c.Stride+x0 : y*c.Stride+x1]
	}
	// Samples that cover the columns; the row below starts at first*HX.
	first, last := x0/c.HX, ceilDiv(x1, c.HX)
	*scratch = kern.Grow(*scratch, (last-first)*c.HX)
	out := *scratch
	near := samples(c, y/c.VX)
	other := y/c.VX - 1 // the second nearest row
	if y&1 == 1 {
		other += 2
	}
	far := samples(c, min(max(other, 0), c.Height-1))

	// libjpeg has no triangle filter across planes of one or two columns.
	switch {
	case plain:
		repeat(out, near[first:last], c.HX)
	case c.HX == 2 && c.VX == 1 && c.Width > 2:
		set.UpsampleH2V1(out, near, first, last)
	case c.HX == 1 && c.VX == 2:
		bias := uint16(1 + y&1)
		for i := range out {
			out[i] = uint8((3*uint16(near[first+i]) + uint16(far[first+i]) + bias) >> 2)
		}
	case c.HX == 2 && c.VX == 2 && c.Width > 2:
		set.UpsampleH2V2(out, near, far, first, last)
	default:
		repeat(out, near[first:last], c.HX)
	}
	return out[x0-first*c.HX : x1-first*c.HX]
}

// repeat writes each sample n times.
func repeat(out, in []uint8, n int) {
	for i, v := range in {
		for j := range n {
			out[i*n+j] = v
		}
	}
}

func samples(c *jpeg.Plane, y int) []uint8 { return c.Pix[y*c.Stride : y*c.Stride+c.Width] }

func ceilDiv(a, b int) int { return (a + b - 1) / b }
