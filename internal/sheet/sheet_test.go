package sheet

import (
	"image"
	"image/color"
	"image/draw"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
)

func fonts(t *testing.T) *Fonts {
	t.Helper()
	f, err := LoadFonts("")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// ink counts the pixels in a box that are not white.
func ink(m image.Image, box image.Rectangle) (n int) {
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			if m.At(x, y) != (color.RGBA{255, 255, 255, 255}) {
				n++
			}
		}
	}
	return n
}

// TestDraw: pictures, frames and captions stand where they belong, and captions stay below their own tile.
func TestDraw(t *testing.T) {
	blue := image.NewRGBA(image.Rect(0, 0, Side, Side/2))
	draw.Draw(blue, blue.Bounds(), image.NewUniform(color.RGBA{0, 0, 255, 255}), image.Point{}, draw.Src)
	tile := Tile{Pictures: []image.Image{blue}, Frame: Wrong,
		Caption: []Line{{Name: "cat"}, {Before: "file: ", Name: strings.Repeat("very long ", 40), After: "!"}}}
	m, err := Draw(fonts(t), "a title", []Group{{Title: Line{Name: "group"}, Tiles: []Tile{tile, tile, tile}},
		{Tiles: []Tile{tile}}})
	if err != nil {
		t.Fatal(err)
	}
	const width = Side + 2*frame
	if w := m.Bounds().Dx(); w != 3*(width+gap)+gap {
		t.Errorf("%d pixels wide", w)
	}
	top := gap + 2*(line+gap)
	for i := range 3 {
		left := gap + i*(width+gap)
		if m.At(left, top) != Wrong || m.At(left+width-1, top) != Wrong {
			t.Errorf("tile %d has no frame", i)
		}
		if m.At(left+width/2, top+Side/2) != (color.RGBA{0, 0, 255, 255}) ||
			m.At(left+width/2, top+frame+2) == (color.RGBA{0, 0, 255, 255}) {
			t.Errorf("tile %d has no picture in its middle", i)
		}
		text := image.Rect(left, top+Side+2*frame+2, left+width, top+Side+2*frame+2+2*line)
		if n := ink(m, text); n < 300 {
			t.Errorf("tile %d: %d pixels of text", i, n)
		}
		if n := ink(m, image.Rect(left+width, text.Min.Y, left+width+gap, text.Max.Y)); n > 0 {
			t.Errorf("tile %d: %d pixels of text beside it", i, n)
		}
	}
	if n := ink(m, image.Rect(0, 0, m.Bounds().Dx(), gap+line)); n < 50 {
		t.Errorf("%d pixels of the title", n)
	}
	if _, err := Draw(fonts(t), "", []Group{{Tiles: make([]Tile, Most+1)}}); err == nil {
		t.Error("too many tiles are drawn")
	}
	if m, err := Draw(fonts(t), "", []Group{{Tiles: []Tile{{}}}}); err != nil || m.Bounds().Dx() < narrow {
		t.Errorf("an empty tile: %v", err)
	}
}

// TestText: the fonts' characters, the order of text, and composed accents.
func TestText(t *testing.T) {
	f := fonts(t)
	for text, want := range map[string]bool{"cat, Füchse": true, "собака": true, "γάτα": true, "כלב": true, "猫": false,
		"e\u0301": true, "🐈": false, "": true} {
		if f.Has(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	for text, want := range map[string]string{"cat": "cat", "אבג": "גבא", "val/אב/3.png": "val/בא/3.png",
		"a\nb": "a\uFFFDb", "e\u0301": "\u00e9"} {
		if got := visual(text); got != want {
			t.Errorf("%q is drawn as %q, want %q", text, got, want)
		}
	}
	if f.Width("iiii") >= f.Width("WWWW") || f.Width("") != 0 {
		t.Error("widths are not those of the text")
	}
}

// TestOtherFont reads a font from a file, and refuses other files.
func TestOtherFont(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.ttf"), filepath.Join(dir, "bad.ttf")
	for path, b := range map[string][]byte{good: liberationsansregular.TTF, bad: []byte("no font")} {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := LoadFonts(good)
	if err != nil || !f.Has("cat") || f.Has("猫") {
		t.Error(err)
	}
	for _, path := range []string{bad, filepath.Join(dir, "none.ttf")} {
		if _, err := LoadFonts(path); err == nil || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
