package imaging

import (
	"image"

	"onlinerna/data/imaging/internal/kern"
)

// rows are those of a box of an image, with room behind them for vectors to read.
type rows struct {
	src    *Image
	box    image.Rectangle
	needed image.Rectangle // of the box; an image that is open has no other pixels
	row    []uint8
}

func rowsOf(src *Image, box, needed image.Rectangle, buffer *[]uint8) rows {
	*buffer = grow(*buffer, src.Channels*box.Dx()+kern.Slack)
	if d := src.later; d != nil {
		d.jpeg.Want(needed.Add(box.Min).Add(d.box.Min))
	}
	return rows{src, box, needed, *buffer}
}

// at returns row y of the box, valid until the next call.
func (r *rows) at(y int) ([]uint8, error) {
	ch := r.src.Channels
	if d := r.src.later; d != nil {
		from := r.box.Min.Add(d.box.Min)
		x0, x1 := r.needed.Min.X, r.needed.Max.X
		return r.row, d.rowJPEG(r.row[ch*x0:ch*x1], from.Y+y, from.X+x0, from.X+x1, ch)
	}
	b := r.src.Pix[((r.box.Min.Y+y)*r.src.Width+r.box.Min.X)*ch:]
	if len(b) < len(r.row) {
		copy(r.row, b)
		b = r.row
	}
	return b, nil
}

// close says whether the file of an open image ends as it should.
func (r *rows) close() error {
	if d := r.src.later; d != nil {
		return d.closeJPEG()
	}
	return nil
}
