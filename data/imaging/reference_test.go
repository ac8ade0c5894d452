package imaging

import (
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/internal/testdata"
)

// A folder of references has NAME.jpg (or NAME.png), NAME.rgb.png and sometimes NAME.l.png, which PIL made of it, and
// NAME.eval.png, torchvision's Resize(256) and CenterCrop(224).
func TestReferenceImages(t *testing.T) { compareReferences(t, "testdata") }

func TestMoreReferenceImages(t *testing.T) {
	compareReferences(t, testdata.Shared(t, "reference/images"))
}

func compareReferences(t *testing.T, dir string) {
	names, _ := filepath.Glob(filepath.Join(dir, "*.rgb.png"))
	if len(names) == 0 {
		t.Fatalf("%s holds no references", dir)
	}
	for _, want := range names {
		base := strings.TrimSuffix(want, ".rgb.png")
		t.Run(filepath.Base(base), func(t *testing.T) {
			var input []byte
			for _, extension := range []string{".jpg", ".png", ".webp", ".bmp", ".gif", ".tiff"} {
				if b, err := os.ReadFile(base + extension); err == nil {
					input = b
					break
				}
			}
			rgb := decodeTest(t, input, 3)
			compare(t, "rgb", rgb, want, 0)
			if _, err := os.Stat(base + ".l.png"); err == nil {
				compare(t, "l", decodeTest(t, input, 1), base+".l.png", 0)
			}
			if _, err := os.Stat(base + ".eval.png"); err != nil {
				return
			}
			var r Resizer
			var eval Image
			if err := r.ResizeCenterCrop(&eval, rgb, 256, 224, 224); err != nil {
				t.Fatal(err)
			}
			compare(t, "eval", &eval, base+".eval.png", 0)
		})
	}
}

func decodeTest(t *testing.T, b []byte, channels int) *Image {
	t.Helper()
	m, err := Decode(b, channels)
	if err != nil {
		t.Fatal(err)
	}
	w, h, err := Dimensions(b)
	if err != nil || image.Rect(0, 0, w, h) != m.Bounds() || m.Channels != channels {
		t.Fatalf("Dimensions gives %dx%d (%v) of an image of %v", w, h, err, m.Bounds())
	}
	return m
}

// compare fails where m differs from the PNG file by more than tolerance levels.
func compare(t *testing.T, what string, m *Image, file string, tolerance int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := decodeTest(t, b, m.Channels)
	if m.Bounds() != want.Bounds() {
		t.Fatalf("%s: %v, want %v", what, m.Bounds(), want.Bounds())
	}
	worst, at, sum := 0, 0, 0
	for i, v := range m.Pix {
		d := int(v) - int(want.Pix[i])
		d = max(d, -d)
		sum += d
		if d > worst {
			worst, at = d, i
		}
	}
	t.Logf("%s: deviation at most %d, %.4f on average", what, worst, float64(sum)/float64(len(m.Pix)))
	if worst > tolerance {
		p := at / m.Channels
		t.Errorf("%s: deviation %d at (%d, %d), channel %d: got %d, want %d", what, worst, p%m.Width, p/m.Width,
			at%m.Channels, m.Pix[at], want.Pix[at])
	}
}
