package canvas

import (
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgpdf"
)

// pdf is vgpdf's canvas, whose strings are bytes of Windows-1252: characters outside this code page are drawn as
// outlines.
type pdf struct{ *vgpdf.Canvas }

func (c pdf) FillString(f font.Face, at vg.Point, s string) {
	if in, err := charmap.Windows1252.NewEncoder().String(s); err == nil {
		c.Canvas.FillString(f, at, in)
		return
	}
	var b sfnt.Buffer
	em := f.Face.UnitsPerEm()
	scale := f.Font.Size / vg.Length(em)
	for _, r := range s {
		glyph, err := f.Face.GlyphIndex(&b, r) // 0, a box, for a missing character
		if err != nil {
			continue
		}
		segments, err := f.Face.LoadGlyph(&b, glyph, fixed.I(int(em)), nil)
		if err != nil {
			continue
		}
		c.fill(segments, at, scale)
		if step, err := f.Face.GlyphAdvance(&b, glyph, fixed.I(int(em)), 0); err == nil {
			at.X += vg.Length(step) / 64 * scale
		}
	}
}

// fill draws an outline in font units.
func (c pdf) fill(segments sfnt.Segments, at vg.Point, scale vg.Length) {
	point := func(p fixed.Point26_6) vg.Point {
		return vg.Point{X: at.X + vg.Length(p.X)/64*scale, Y: at.Y - vg.Length(p.Y)/64*scale}
	}
	var path vg.Path
	for i, s := range segments {
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			if i > 0 {
				path.Close()
			}
			path.Move(point(s.Args[0]))
		case sfnt.SegmentOpLineTo:
			path.Line(point(s.Args[0]))
		case sfnt.SegmentOpQuadTo:
			path.QuadTo(point(s.Args[0]), point(s.Args[1]))
		case sfnt.SegmentOpCubeTo:
			path.CubeTo(point(s.Args[0]), point(s.Args[1]), point(s.Args[2]))
		}
	}
	if len(path) > 0 {
		path.Close()
		c.Fill(path)
	}
}
