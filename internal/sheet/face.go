package sheet

import (
	"fmt"
	"image"
	"os"
	"strings"
	"unicode"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

const fontSize = 13 // pixels

// Fonts draw the text of a sheet: Liberation Sans, and for characters that it lacks another font.
type Fonts struct {
	regular, bold faces
}

// LoadFonts loads the fonts; other is a file with a TrueType or OpenType font or a collection of them, or empty.
func LoadFonts(other string) (*Fonts, error) {
	var more []*sfnt.Font
	if other != "" {
		b, err := os.ReadFile(other)
		if err != nil {
			return nil, err
		}
		collection, err := opentype.ParseCollection(b)
		if err != nil {
			return nil, fmt.Errorf("%s: no TrueType or OpenType font: %w", other, err)
		}
		for i := range collection.NumFonts() {
			f, err := collection.Font(i)
			if err != nil {
				return nil, fmt.Errorf("%s: font %d: %w", other, i, err)
			}
			more = append(more, f)
		}
	}
	own := func(ttf []byte) (faces, error) {
		f, err := opentype.Parse(ttf)
		if err != nil {
			return nil, err
		}
		return newFaces(append([]*sfnt.Font{f}, more...))
	}
	regular, err := own(liberationsansregular.TTF)
	if err != nil {
		return nil, err
	}
	bold, err := own(liberationsansbold.TTF)
	return &Fonts{regular, bold}, err
}

// Has reports whether there are glyphs for all of text.
func (f *Fonts) Has(text string) bool {
	for _, r := range norm.NFC.String(text) {
		if !unicode.IsSpace(r) && f.regular.of(r) == nil {
			return false
		}
	}
	return true
}

// Width is the width of text in pixels, set as a caption's line that is not bold.
func (f *Fonts) Width(text string) int { return font.MeasureString(f.regular, visual(text)).Ceil() }

// faces is a face of several fonts: each character is drawn by the first that has it.
type faces []*member

type member struct {
	font.Face
	font *sfnt.Font
	buf  sfnt.Buffer
}

var _ font.Face = faces(nil)

func newFaces(fonts []*sfnt.Font) (list faces, err error) {
	for _, f := range fonts {
		face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: fontSize, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			return nil, err
		}
		list = append(list, &member{Face: face, font: f})
	}
	return list, nil
}

// of is the face that has r, nil if none has.
func (f faces) of(r rune) font.Face {
	for _, m := range f {
		if i, err := m.font.GlyphIndex(&m.buf, r); err == nil && i != 0 {
			return m.Face
		}
	}
	return nil
}

// or is of, and else the first face, which draws a box.
func (f faces) or(r rune) font.Face {
	if face := f.of(r); face != nil {
		return face
	}
	return f[0].Face
}

// visual is text as it stands on a line: composed, control characters visible, and right to left where it is written
// so.
func visual(text string) string {
	text = norm.NFC.String(text)
	runes := []rune(text)
	for i, r := range runes {
		if unicode.IsControl(r) {
			runes[i] = '\uFFFD'
		}
	}
	parts := strings.Split(string(runes), "/") // those of a path keep their order
	for i, part := range parts {
		parts[i] = ordered(part)
	}
	return strings.Join(parts, "/")
}

// ordered is text with its right-to-left runs reversed.
func ordered(text string) string {
	var p bidi.Paragraph
	if _, err := p.SetString(text); err != nil {
		return text
	}
	order, err := p.Order()
	if err != nil {
		return text
	}
	s := ""
	for i := range order.NumRuns() {
		run := order.Run(i)
		if run.Direction() == bidi.RightToLeft {
			s += bidi.ReverseString(run.String())
		} else {
			s += run.String()
		}
	}
	return s
}

// Glyph, GlyphBounds and GlyphAdvance implement font.Face by the face that has the character.

func (f faces) Glyph(dot fixed.Point26_6, r rune) (image.Rectangle, image.Image, image.Point, fixed.Int26_6, bool) {
	return f.or(r).Glyph(dot, r)
}

func (f faces) GlyphBounds(r rune) (fixed.Rectangle26_6, fixed.Int26_6, bool) {
	return f.or(r).GlyphBounds(r)
}

func (f faces) GlyphAdvance(r rune) (fixed.Int26_6, bool) { return f.or(r).GlyphAdvance(r) }

// Kern implements font.Face: characters of two fonts have none.
func (f faces) Kern(a, b rune) fixed.Int26_6 {
	if face := f.or(a); face == f.or(b) {
		return face.Kern(a, b)
	}
	return 0
}

// Metrics implements font.Face by the first font.
func (f faces) Metrics() font.Metrics { return f[0].Metrics() }

// Close implements font.Face.
func (f faces) Close() error { return nil }
