package data

import (
	"bytes"
	"fmt"
	"testing"

	"onlinerna/data/augment"
	"onlinerna/data/internal/datatest"
)

// FastDecode changes the pixels of images that are reduced by two or more, equally for any number of workers, and of no
// others.
func TestFastDecode(t *testing.T) {
	dir := t.TempDir()
	sides := []int{200, 63, 127, 64, 128, 300}
	for i, side := range sides {
		datatest.Write(t, dir, fmt.Sprintf("train/a/%d.jpg", i), datatest.JPEG(t, side, side, i))
	}
	set, err := OpenEval(dir+"/train", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	const size = 56 // evaluation resizes the shorter side to 64
	load := func(opt LoaderOptions) []Batch {
		opt.Batch = len(sides)
		return collect(t, newLoader(t, set, augment.Eval(size), opt), 0, 0)
	}
	whole, fast, more := load(LoaderOptions{Workers: 1}), load(LoaderOptions{Workers: 1, FastDecode: true}),
		load(LoaderOptions{Workers: 3, FastDecode: true})
	if !bytes.Equal(fast[0].Images, more[0].Images) {
		t.Error("pixels depend on the workers")
	}
	for i, side := range sides {
		a, b := whole[0].image(i), fast[0].image(i)
		if got, want := !bytes.Equal(a, b), side >= 128; got != want {
			t.Errorf("side %d: other pixels: %v, want %v", side, got, want)
		}
		sum := 0
		for k, v := range a {
			sum += max(int(v)-int(b[k]), int(b[k])-int(v))
		}
		if mean := float64(sum) / float64(len(a)); mean > 16 {
			t.Errorf("side %d: samples differ by %.1f on average", side, mean)
		}
	}
}
