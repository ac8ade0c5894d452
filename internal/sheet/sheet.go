// Package sheet draws sheets of images with captions.
package sheet

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"

	"onlinerna/internal/files"
	"onlinerna/internal/text"
)

// Side is the height and width in pixels of the box into which a tile's picture is fitted; the picture's longer side
// has at least Least.
const (
	Side  = 192
	Least = 128
)

// Most is the maximal number of tiles on a sheet.
const Most = 2000

const (
	gap      = 8  // pixels between tiles, and around them
	frame    = 3  // pixels of a tile's frame
	line     = 16 // pixels from one line of text to the next
	narrow   = 480
	perGroup = 8   // tiles beside each other in a group
	longest  = 400 // characters of a name, before its width is looked at
)

// A Tile is one or more pictures beside each other, with lines of text below.
type Tile struct {
	Pictures []image.Image // of FitSize
	Caption  []Line        // the first in bold
	Frame    color.Color   // nil for none
}

// A Line is a line of a caption. Where it is too long, the middle of Name is left out.
type Line struct{ Before, Name, After string }

// A Group is tiles under a title.
type Group struct {
	Title Line // may be empty
	Tiles []Tile
}

// The colours of frames.
var (
	Right = color.RGBA{0x2c, 0x8c, 0x3c, 0xff}
	Wrong = color.RGBA{0xd0, 0x30, 0x30, 0xff}
)

// FitSize is the size at which a picture of w×h pixels fills a box of Side×Side pixels: whole reports that it is a
// whole multiple of w×h, so that the pixels of a small picture show.
func FitSize(w, h int) (width, height int, whole bool) {
	side := max(w, h)
	if k := Side / side; k*side >= Least {
		return k * w, k * h, true
	}
	by := float64(Side) / float64(side)
	return max(1, int(math.Round(by*float64(w)))), max(1, int(math.Round(by*float64(h)))), false
}

// Draw draws groups below each other, under a title that may be empty.
func Draw(f *Fonts, title string, groups []Group) (image.Image, error) {
	all, widest, lines, pictures := 0, 0, 0, 1
	for _, g := range groups {
		all += len(g.Tiles)
		widest = max(widest, len(g.Tiles))
		for _, t := range g.Tiles {
			lines = max(lines, len(t.Caption))
			pictures = max(pictures, len(t.Pictures))
		}
	}
	if all > Most {
		return nil, fmt.Errorf("%d images are too many for a sheet: %d at most", all, Most)
	}
	d := &drawing{fonts: f, width: pictures*(Side+frame) + frame, lines: lines}
	d.height = Side + 2*frame + lines*line + 4
	d.columns = min(widest, perGroup)
	if len(groups) == 1 {
		d.columns = max(1, min(widest,
			int(math.Round(math.Sqrt(1.4*float64(widest)*float64(d.height)/float64(d.width))))))
	}
	height := gap
	if title != "" {
		height += line + gap
	}
	for _, g := range groups {
		height += d.groupHeight(g)
	}
	width := max(narrow, d.columns*(d.width+gap)+gap)
	d.to = image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(d.to, d.to.Bounds(), image.White, image.Point{}, draw.Src)
	y := gap
	if title != "" {
		d.text(gap, y, width-2*gap, Line{Name: title}, f.bold)
		y += line + gap
	}
	for _, g := range groups {
		d.group(y, g)
		y += d.groupHeight(g)
	}
	return d.to, nil
}

type drawing struct {
	fonts                         *Fonts
	to                            *image.RGBA
	width, height, lines, columns int // of a tile; columns counts the columns of the sheet
}

func (d *drawing) groupHeight(g Group) int {
	h := (len(g.Tiles) + d.columns - 1) / d.columns * (d.height + gap)
	if g.Title != (Line{}) {
		h += line + gap
	}
	return h
}

func (d *drawing) group(y int, g Group) {
	if g.Title != (Line{}) {
		d.text(gap, y, d.to.Bounds().Dx()-2*gap, g.Title, d.fonts.bold)
		y += line + gap
	}
	for i, t := range g.Tiles {
		d.tile(gap+i%d.columns*(d.width+gap), y+i/d.columns*(d.height+gap), t)
	}
}

func (d *drawing) tile(x, y int, t Tile) {
	box := image.Rect(x, y, x+d.width, y+Side+2*frame)
	ground := image.NewUniform(color.Gray{0xe8})
	if t.Frame != nil {
		draw.Draw(d.to, box, image.NewUniform(t.Frame), image.Point{}, draw.Src)
		draw.Draw(d.to, box.Inset(frame), ground, image.Point{}, draw.Src)
	} else {
		draw.Draw(d.to, box, ground, image.Point{}, draw.Src)
	}
	for i, m := range t.Pictures {
		b := m.Bounds()
		at := image.Pt(x+frame+i*(Side+frame)+(Side-b.Dx())/2, y+frame+(Side-b.Dy())/2)
		draw.Draw(d.to, b.Sub(b.Min).Add(at), m, b.Min, draw.Over)
	}
	y += Side + 2*frame + 2
	for i, l := range t.Caption {
		face := d.fonts.regular
		if i == 0 {
			face = d.fonts.bold
		}
		d.text(x, y+i*line, d.width, l, face)
	}
}

// text writes a line with its upper left corner at (x, y) in the given number of pixels.
func (d *drawing) text(x, y, width int, l Line, face font.Face) {
	whole := func(name string) string { return visual(l.Before) + visual(name) + visual(l.After) }
	name := text.Middle(text.Shorten(longest, l.Name),
		func(short string) bool { return font.MeasureString(face, whole(short)).Ceil() <= width })
	w := font.Drawer{Dst: d.to.SubImage(image.Rect(x, y, x+width, y+line)).(*image.RGBA), Src: image.Black, Face: face,
		Dot: fixed.P(x, y+face.Metrics().Ascent.Ceil())}
	w.DrawString(whole(name))
}

// Write writes a picture as a JPEG if the name says so, else as a PNG.
func Write(path string, m image.Image) error {
	return files.WriteTo(path, func(w io.Writer) error {
		if ext := strings.ToLower(filepath.Ext(path)); ext == ".jpg" || ext == ".jpeg" {
			return jpeg.Encode(w, m, &jpeg.Options{Quality: 92})
		}
		return png.Encode(w, m)
	})
}
