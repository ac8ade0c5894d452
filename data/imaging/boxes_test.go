package imaging

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"testing"

	"onlinerna/data/imaging/internal/kern"
	"onlinerna/internal/simd"
)

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return fmt.Sprintf("%x", sum[:16])
}

// Boxes that are resized, also of JPEGs that are decoded at a part of their size, have PIL's pixels: see
// testdata/boxes.py.
func TestBoxes(t *testing.T) {
	for _, l := range simd.All() {
		t.Run(l.String(), func(t *testing.T) {
			list, err := os.Open(filepath.Join("testdata", "boxes.txt"))
			if err != nil {
				t.Fatal(err)
			}
			defer list.Close()
			var d Decoder
			d.jpeg.Kernels = kern.For(l)
			var m, small Image
			r := Resizer{kernels: kern.For(l)}
			seen := 0
			for lines := bufio.NewScanner(list); lines.Scan(); seen++ {
				var name, draft, resized string
				var by, w, h, tw, th int
				var box image.Rectangle
				if _, err := fmt.Sscan(lines.Text(), &name, &by, &w, &h, &draft, &box.Min.X, &box.Min.Y, &box.Max.X, &box.Max.Y,
					&tw, &th, &resized); err != nil {
					t.Fatal(err)
				}
				b, err := os.ReadFile(filepath.Join("testdata", name))
				if err != nil {
					t.Fatal(err)
				}
				r.Fast = by > 1
				if err := d.Open(&m, b, 3, box); err != nil {
					t.Fatal(err)
				}
				if err := r.Resize(&small, &m, m.Bounds(), tw, th); err != nil {
					t.Fatalf("%s at 1/%d: %v", name, by, err)
				}
				if digest(small.Pix) != resized {
					t.Errorf("%s at 1/%d: box %v resized to %dx%d has other pixels than PIL's", name, by, box, tw, th)
				}
				if err := d.openJPEG(b, box); err != nil {
					t.Fatal(err)
				}
				d.jpeg.Scale(by)
				m.Reset(d.planes.Width, d.planes.Height, 3)
				for y := range m.Height {
					if err := d.rowJPEG(m.row(y), y, 0, m.Width, 3); err != nil {
						t.Fatal(err)
					}
				}
				if m.Width != w || m.Height != h || digest(m.Pix) != draft {
					t.Errorf("%s at 1/%d: %dx%d pixels are not the %dx%d of PIL's draft", name, by, m.Width, m.Height, w, h)
				}
			}
			if seen < 200 {
				t.Errorf("%d lines", seen)
			}
		})
	}
}
