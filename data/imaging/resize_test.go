package imaging

import (
	"bytes"
	"image"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

func noise(w, h, channels int) *Image {
	rng := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	m := New(w, h, channels)
	for i := range m.Pix {
		m.Pix[i] = uint8(rng.Uint32())
	}
	return m
}

// A box resizes as the crop of it, and a centre crop of a resized image is the same computed at once, padding included.
func TestResizeOfParts(t *testing.T) {
	var r Resizer
	var crop, got, want, resized Image
	for _, channels := range []int{1, 3} {
		for _, size := range [][2]int{{61, 43}, {43, 61}, {16, 16}, {5, 90}, {1, 1}} {
			src := noise(size[0], size[1], channels)
			w, h := src.Width, src.Height
			for _, box := range []image.Rectangle{src.Bounds(), image.Rect(w/3, h/4, w, h),
				image.Rect(0, h/2, w/2+1, h)} {
				if err := Crop(&crop, src, box); err != nil {
					t.Fatal(err)
				}
				for _, to := range [][2]int{{24, 24}, {7, 50}, {box.Dx(), 9}, {9, box.Dy()}, {1, 1}} {
					if err := r.Resize(&got, src, box, to[0], to[1]); err != nil {
						t.Fatal(err)
					}
					if err := r.Resize(&want, &crop, crop.Bounds(), to[0], to[1]); err != nil {
						t.Fatal(err)
					}
					if got.Width != to[0] || got.Height != to[1] || !bytes.Equal(got.Pix, want.Pix) {
						t.Errorf("%v of %v to %v differs from the crop resized", box, src.Bounds(), to)
					}
				}
			}
			for _, shorter := range []int{32, 16, 10} {
				if err := r.ResizeShorter(&resized, src, shorter); err != nil {
					t.Fatal(err)
				}
				if err := Crop(&want, &resized, CenterCropBox(resized.Width, resized.Height, 28, 13)); err != nil {
					t.Fatal(err)
				}
				if err := r.ResizeCenterCrop(&got, src, shorter, 28, 13); err != nil {
					t.Fatal(err)
				}
				if got.Bounds() != want.Bounds() || !bytes.Equal(got.Pix, want.Pix) {
					t.Errorf("%v to %d, centre crop: differs from the two in turn", src.Bounds(), shorter)
				}
			}
		}
	}
}

// PIL's crop((7, 3, 58, 41)).resize((23, 29), BILINEAR).
func TestResizeReference(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "restart.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	var r Resizer
	var got Image
	if err := r.Resize(&got, decodeTest(t, b, 3), image.Rect(7, 3, 58, 41), 23, 29); err != nil {
		t.Fatal(err)
	}
	compare(t, "resized", &got, filepath.Join("testdata", "restart.resized.png"), 0)
}

func TestResizeSameSizeCopies(t *testing.T) {
	src := noise(19, 7, 3)
	var r Resizer
	var got Image
	if err := r.Resize(&got, src, src.Bounds(), 19, 7); err != nil || !bytes.Equal(got.Pix, src.Pix) {
		t.Errorf("a resize to the same size changes pixels (%v)", err)
	}
}

// As PIL's Image.resize, BILINEAR, of one row.
func TestResizeRow(t *testing.T) {
	for _, c := range []struct{ in, want []uint8 }{
		{[]uint8{0, 255}, []uint8{0, 64, 191, 255}},  // weights 1/4 and 3/4, edges repeat
		{[]uint8{0, 100, 200, 40}, []uint8{71, 117}}, // (3·0 + 3·100 + 200)/7 and (100 + 3·200 + 3·40)/7
		{[]uint8{10, 10, 10, 10, 10, 10}, []uint8{10, 10, 10, 10}},
	} {
		var r Resizer
		var got Image
		src := &Image{Width: len(c.in), Height: 1, Channels: 1, Pix: c.in}
		if err := r.Resize(&got, src, src.Bounds(), len(c.want), 1); err != nil || !bytes.Equal(got.Pix, c.want) {
			t.Errorf("%v becomes %v (%v), want %v", c.in, got.Pix, err, c.want)
		}
	}
}

func TestShorterSize(t *testing.T) {
	for _, c := range [][5]int{ // width, height, size, and torchvision's width and height
		{500, 375, 256, 341, 256},
		{375, 500, 256, 256, 341},
		{32, 32, 256, 256, 256},
		{1200, 1600, 256, 256, 341},
		{301, 203, 256, 379, 256},
		{256, 300, 256, 256, 300},
		{3, 1000, 2, 2, 666},
	} {
		if w, h := ShorterSize(c[0], c[1], c[2]); w != c[3] || h != c[4] {
			t.Errorf("%dx%d to %d: %dx%d, want %dx%d", c[0], c[1], c[2], w, h, c[3], c[4])
		}
	}
}

func TestResizeErrors(t *testing.T) {
	var r Resizer
	var dst Image
	src := noise(5, 4, 3)
	for name, err := range map[string]error{
		"box outside":   r.Resize(&dst, src, image.Rect(0, 0, 6, 4), 2, 2),
		"empty box":     r.Resize(&dst, src, image.Rect(2, 2, 2, 3), 2, 2),
		"size 0":        r.Resize(&dst, src, src.Bounds(), 0, 2),
		"huge":          r.Resize(&dst, src, src.Bounds(), 1<<20, 1<<20),
		"shorter 0":     r.ResizeShorter(&dst, src, 0),
		"crop 0":        r.ResizeCenterCrop(&dst, src, 4, 0, 3),
		"short pixels":  r.Resize(&dst, &Image{Width: 5, Height: 4, Channels: 3, Pix: src.Pix[1:]}, src.Bounds(), 2, 2),
		"two channels":  r.Resize(&dst, &Image{Width: 5, Height: 6, Channels: 2, Pix: src.Pix}, src.Bounds(), 2, 2),
		"empty crop":    Crop(&dst, src, image.Rectangle{}),
		"convert to 2":  Convert(&dst, src, 2),
		"convert empty": Convert(&dst, &Image{}, 3),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
