package imaging

import (
	"bytes"
	"image"
	"testing"
)

func TestCenterCropBox(t *testing.T) {
	for _, c := range []struct {
		w, h, cw, ch int
		want         image.Rectangle
	}{
		{341, 256, 224, 224, image.Rect(58, 16, 282, 240)}, // 58.5 rounds to 58
		{343, 256, 224, 224, image.Rect(60, 16, 284, 240)}, // 59.5 rounds to 60
		{224, 224, 224, 224, image.Rect(0, 0, 224, 224)},
		{3, 10, 6, 4, image.Rect(-1, 3, 5, 7)}, // padded by 1 and 2
		{4, 4, 8, 8, image.Rect(-2, -2, 6, 6)},
	} {
		if got := CenterCropBox(c.w, c.h, c.cw, c.ch); got != c.want {
			t.Errorf("%dx%d of %dx%d: %v, want %v", c.cw, c.ch, c.w, c.h, got, c.want)
		}
	}
}

func TestCropPads(t *testing.T) {
	src := &Image{Width: 3, Height: 2, Channels: 1, Pix: []uint8{1, 2, 3, 4, 5, 6}}
	for _, c := range []struct {
		box  image.Rectangle
		want []uint8
	}{
		{image.Rect(1, 0, 3, 2), []uint8{2, 3, 5, 6}},
		{image.Rect(-1, -1, 2, 2), []uint8{0, 0, 0, 0, 1, 2, 0, 4, 5}},
		{image.Rect(2, 1, 4, 3), []uint8{6, 0, 0, 0}},
		{image.Rect(7, 7, 9, 8), []uint8{0, 0}},
	} {
		dst := noise(9, 9, 3)
		if err := Crop(dst, src, c.box); err != nil || !bytes.Equal(dst.Pix, c.want) {
			t.Errorf("crop to %v: %v (%v), want %v", c.box, dst.Pix, err, c.want)
		}
	}
}

func TestFlipHorizontal(t *testing.T) {
	m := &Image{Width: 3, Height: 2, Channels: 1, Pix: []uint8{1, 2, 3, 4, 5, 6}}
	if m.FlipHorizontal(); !bytes.Equal(m.Pix, []uint8{3, 2, 1, 6, 5, 4}) {
		t.Errorf("gray: %v", m.Pix)
	}
	m = &Image{Width: 2, Height: 1, Channels: 3, Pix: []uint8{1, 2, 3, 4, 5, 6}}
	if m.FlipHorizontal(); !bytes.Equal(m.Pix, []uint8{4, 5, 6, 1, 2, 3}) {
		t.Errorf("rgb: %v", m.Pix)
	}
}

func TestConvert(t *testing.T) {
	src := &Image{Width: 2, Height: 1, Channels: 3, Pix: []uint8{255, 0, 0, 10, 20, 30}}
	var gray, rgb Image
	if err := Convert(&gray, src, 1); err != nil || !bytes.Equal(gray.Pix, []uint8{76, 18}) {
		t.Errorf("gray: %v (%v)", gray.Pix, err)
	}
	if err := Convert(&rgb, &gray, 3); err != nil || !bytes.Equal(rgb.Pix, []uint8{76, 76, 76, 18, 18, 18}) {
		t.Errorf("rgb: %v (%v)", rgb.Pix, err)
	}
}
