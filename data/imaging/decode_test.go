package imaging

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func inputs(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, pattern := range []string{"*.jpg", "*.png", "*.webp", "*.bmp", "*.gif", "*.tiff"} {
		names, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			base := filepath.Base(name)
			if strings.Count(base, ".") > 1 {
				continue // PIL's result for an input
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[base] = b
		}
	}
	if len(files) == 0 {
		t.Fatal("testdata is empty")
	}
	return files
}

// A reused decoder equals a fresh one, and any box is a crop of the whole.
func TestDecodeBoxIsCrop(t *testing.T) {
	var d Decoder
	var part, crop Image
	for name, b := range inputs(t) {
		for _, channels := range []int{1, 3} {
			whole := decodeTest(t, b, channels)
			w, h := whole.Width, whole.Height
			for _, box := range []image.Rectangle{
				whole.Bounds(),
				image.Rect(0, 0, (w+1)/2, (h+1)/2),
				image.Rect(w/2, h/2, w, h),
				image.Rect(w/3, h/3, w/3+1, h/3+1),
				image.Rect(w/4, h/5, max(w-w/5, w/4+1), max(h-h/3, h/5+1)),
				image.Rect(0, min(16, h-1), w, min(17, h)),
				image.Rect(min(17, w-1), 0, min(18, w), h),
			} {
				if err := d.DecodeBox(&part, b, channels, box); err != nil {
					t.Fatalf("%s, box %v: %v", name, box, err)
				}
				if err := Crop(&crop, whole, box); err != nil {
					t.Fatal(err)
				}
				if part.Bounds() != crop.Bounds() || !bytes.Equal(part.Pix, crop.Pix) {
					t.Errorf("%s, %d channels: box %v is not a crop of the whole", name, channels, box)
				}
			}
		}
	}
}

func TestDecodeGrayIsConvert(t *testing.T) {
	var want Image
	for name, b := range inputs(t) {
		if err := Convert(&want, decodeTest(t, b, 3), 1); err != nil {
			t.Fatal(err)
		}
		if got := decodeTest(t, b, 1); !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("%s: one channel is not the luma of three", name)
		}
	}
}

// Every proper prefix of a file is an error, whole boxes or not.
func TestDecodeTruncated(t *testing.T) {
	var d Decoder
	var m Image
	for _, name := range []string{"restart.jpg", "sampling-420.jpg", "sampling-422-progressive.jpg", "gray.jpg",
		"png-2-8.png"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		end := len(b)
		if strings.HasSuffix(name, ".png") {
			end -= 12 // the last chunk holds nothing
		}
		for n := range end {
			if err := d.Decode(&m, b[:n], 3); err == nil {
				t.Errorf("%s: no error of the first %d of %d bytes", name, n, len(b))
			}
			if err := d.DecodeBox(&m, b[:n], 3, image.Rect(0, 0, 1, 1)); err == nil {
				t.Errorf("%s: no error of a corner of the first %d of %d bytes", name, n, len(b))
			}
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	files := inputs(t)
	jpg, png := files["sampling-444.jpg"], files["png-2-8.png"]
	edit := func(b []byte, at int, with ...byte) []byte {
		b = bytes.Clone(b)
		copy(b[at:], with)
		return b
	}
	sof := bytes.Index(jpg, []byte{0xff, 0xc0})
	dqt := bytes.Index(jpg, []byte{0xff, 0xdb})
	dht := bytes.Index(jpg, []byte{0xff, 0xc4})
	sos := bytes.Index(jpg, []byte{0xff, 0xda})
	bomb := bytes.Clone(png)
	binary.BigEndian.PutUint32(bomb[16:], 20_000)
	binary.BigEndian.PutUint32(bomb[20:], 10_000)

	for _, c := range []struct {
		name, want string
		b          []byte
	}{
		{"nothing", "neither a JPEG nor a PNG", nil},
		{"text", "neither a JPEG nor a PNG", []byte("<html>not found</html>")},
		{"arithmetic coding", "frame type 0xc9", edit(jpg, sof+1, 0xc9)},
		{"12 bits", "samples of 12 bits", edit(jpg, sof+4, 12)},
		{"no height", "37x0 pixels", edit(jpg, sof+5, 0, 0)},
		{"JPEG bomb", "more than the limit of 178956970", edit(jpg, sof+5, 0xff, 0xff, 0xff, 0xff)},
		{"PNG bomb", "20000x10000 pixels, more than the limit of 178956970", bomb},
		{"PNG of width 0", "0x13 pixels", edit(png, 16, 0, 0, 0, 0)},
		{"two components", "2 components", edit(jpg, sof+9, 2)},
		{"sampling 0", "sampling factors 0x1", edit(jpg, sof+11, 0x01)},
		{"fractional sampling", "fractional ratios", edit(jpg, sof+11, 0x31, 0, 2, 0x21)},
		{"unknown table", "quantisation table 3, which has not been defined", edit(jpg, sof+12, 3)},
		{"bad table number", "quantisation table is invalid", edit(jpg, dqt+4, 0x09)},
		{"bad Huffman table", "Huffman table is invalid", edit(jpg, dht+5, 3)},
		{"unknown component", "names the component 9", edit(jpg, sos+5, 9)},
		{"component twice", "names the component 1 twice", edit(jpg, sos+7, 1)},
		{"corrupt PNG", "png: ", edit(png, len(png)-30, 1, 2, 3, 4, 5, 6)},
		{"corrupt data", "entropy-coded data", append(bytes.Clone(jpg[:len(jpg)-200]), 0xff, 0xd9)},
	} {
		_, err := Decode(c.b, 3)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Decode(jpg, 4); err == nil {
		t.Error("no error of 4 channels")
	}
	var d Decoder
	for _, box := range []image.Rectangle{{}, image.Rect(0, 0, 38, 1), image.Rect(-1, 0, 3, 3)} {
		if err := d.DecodeBox(new(Image), jpg, 3, box); err == nil {
			t.Errorf("no error of box %v", box)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range inputs(f) {
		f.Add(b)
	}
	f.Add(tiledTIFF(f, 300))
	f.Add(farTIFF(f, 300))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, h, err := Dimensions(b)
		if err != nil || w*h > 1<<16 {
			return
		}
		claim, err := Memory(b, 3, image.Rect(0, 0, w, h))
		if err != nil || claim > 64<<20 { // as a loader refuses it
			return
		}
		var d Decoder
		var whole, part, crop Image
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err = d.Decode(&whole, b, 3)
		runtime.ReadMemStats(&after)
		if total := int64(after.TotalAlloc - before.TotalAlloc); total > 16<<20+2*claim+64*int64(len(b)) {
			t.Fatalf("%d bytes took %d MB, and are counted as %d MB", len(b), total>>20, claim>>20)
		}
		if err != nil {
			return
		}
		if whole.check() != nil || whole.Width != w || whole.Height != h {
			t.Fatalf("decoded %v of %dx%d pixels", whole.Bounds(), w, h)
		}
		box := image.Rect(w/3, h/4, w-w/4, h-h/3)
		if err := d.DecodeBox(&part, b, 3, box); err != nil {
			t.Fatalf("box %v: %v", box, err)
		}
		if err := Crop(&crop, &whole, box); err != nil || !bytes.Equal(crop.Pix, part.Pix) {
			t.Fatalf("box %v is not a crop of the whole (%v)", box, err)
		}
		if err := d.Open(&part, b, 3, box); err != nil {
			t.Fatalf("open box %v: %v", box, err)
		}
		var resizer Resizer
		var apart, fused Image
		if err := errors.Join(resizer.Resize(&apart, &crop, crop.Bounds(), 9, 7),
			resizer.Resize(&fused, &part, part.Bounds(), 9, 7)); err != nil {
			t.Fatalf("box %v: %v", box, err)
		}
		if !bytes.Equal(apart.Pix, fused.Pix) {
			t.Fatalf("box %v opened and resized has other pixels", box)
		}
	})
}

// A sample allocates nothing once the memory is there.
func TestNoAllocations(t *testing.T) {
	var d Decoder
	var r Resizer
	var m, crop Image
	for _, name := range []string{"restart.jpg", "sampling-420.jpg", "sampling-420-progressive.jpg",
		"gray.jpg", "cmyk.jpg"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(10, func() {
			w, h, err := Dimensions(b)
			if err != nil {
				t.Fatal(err)
			}
			for _, decode := range []func(dst *Image, b []byte, channels int, box image.Rectangle) error{d.DecodeBox,
				d.Open} {
				if err := decode(&m, b, 3, image.Rect(w/4, h/4, w-w/4, h-h/4)); err != nil {
					t.Fatal(err)
				}
				if err := r.Resize(&crop, &m, m.Bounds(), 24, 24); err != nil {
					t.Fatal(err)
				}
			}
		}); n > 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
}
