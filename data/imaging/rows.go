package imaging

import (
	"image"

	"onlinerna/data/imaging/internal/kern"
)

// rows are the rows of a part of an image, padded for vector reads.
type rows struct {
	src    *Image
	origin image.Point     // origin of the part; in an opened image, relative to the file's
	needed image.Rectangle // of the part; an opened image has no other pixels
	row    []uint8
}

func rowsOf(src *Image, origin image.Point, width int, needed image.Rectangle, buffer *[]uint8) rows {
	*buffer = kern.Grow(*buffer, src.Channels*width+kern.Slack)
	if d := src.later; d != nil {
		d.jpeg.Want(needed.Add(origin))
	}
	return rows{src, origin, needed, *buffer}
}

// at returns row y of the part, valid until the next call.
func (r *rows) at(y int) ([]uint8, error) {
	ch := r.src.Channels
	if d := r.src.later; d != nil {
		x0, x1 := r.needed.Min.X, r.needed.Max.X
		return r.row, d.rowJPEG(r.row[ch*x0:ch*x1], r.origin.Y+y, r.origin.X+x0, r.origin.X+x1, ch)
	}
	b := r.src.Pix[((r.origin.Y+y)*r.src.Width+r.origin.X)*ch:]
	if len(b) < len(r.row) {
		copy(r.row, b)
		b = r.row
	}
	return b, nil
}

// close checks the end of an opened image's file.
func (r *rows) close() error {
	if d := r.src.later; d != nil {
		return d.closeJPEG()
	}
	return nil
}
