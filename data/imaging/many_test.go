package imaging

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"onlinerna/data/imaging/internal/kern"
	"onlinerna/internal/simd"
)

// Files over all ways to code, and the SHA-256 of PIL's pixels: see testdata/many.py. ONLINERNA_JPEGS names the folder
// with all 500; a part of them is in testdata/many.
func TestManyFiles(t *testing.T) {
	dir, all := os.Getenv("ONLINERNA_JPEGS"), true
	if dir == "" {
		dir, all = filepath.Join("testdata", "many"), false
	}
	list, err := os.Open(filepath.Join("testdata", "many.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for _, l := range simd.All() {
		if _, err := list.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		var d Decoder
		d.jpeg.Kernels = kern.For(l)
		var whole, part, crop, opened, fused, apart Image
		resizer := Resizer{kernels: kern.For(l)}
		rng := rand.New(rand.NewPCG(1, 2))
		seen := 0
		for lines := bufio.NewScanner(list); lines.Scan(); {
			var name, want string
			if _, err := fmt.Sscan(lines.Text(), &name, &want); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(dir, name))
			if os.IsNotExist(err) && !all {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			seen++
			if err := d.Decode(&whole, b, 3); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if sum := sha256.Sum256(whole.Pix); fmt.Sprintf("%x", sum[:16]) != want {
				t.Errorf("%v: %s: other pixels than PIL's", l, name)
			}
			for range 4 {
				x, y := rng.IntN(whole.Width), rng.IntN(whole.Height)
				box := image.Rect(x, y, x+1+rng.IntN(whole.Width-x), y+1+rng.IntN(whole.Height-y))
				if err := d.DecodeBox(&part, b, 3, box); err != nil {
					t.Fatalf("%s: box %v: %v", name, box, err)
				}
				if err := Crop(&crop, &whole, box); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(part.Pix, crop.Pix) {
					t.Errorf("%v: %s: box %v is not a crop of the whole", l, name, box)
				}
				// Opened and resized at once is the same as decoded and resized.
				channels, resizer := 1+2*rng.IntN(2), &resizer
				resizer.Interpolation = Interpolation(rng.IntN(3))
				w, h := 1+rng.IntN(90), 1+rng.IntN(90)
				resize := func(dst, src *Image) error { return resizer.Resize(dst, src, src.Bounds(), w, h) }
				if rng.IntN(2) == 0 {
					resize = func(dst, src *Image) error { return resizer.ResizeCenterCrop(dst, src, max(w, h), w, h) }
				}
				if err := errors.Join(d.DecodeBox(&part, b, channels, box), resize(&apart, &part),
					d.Open(&opened, b, channels, box), resize(&fused, &opened)); err != nil {
					t.Fatalf("%s: box %v: %v", name, box, err)
				}
				if !bytes.Equal(fused.Pix, apart.Pix) {
					t.Errorf("%v: %s: box %v opened and resized to %dx%d (%v) has other pixels", l, name, box, w, h,
						resizer.Interpolation)
				}
			}
		}
		if seen < 25 || all && seen != 500 {
			t.Errorf("%d files", seen)
		}
	}
}
