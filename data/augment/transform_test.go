package augment

import (
	"image"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/imaging"
	"onlinerna/data/random"
)

func TestRandomResizedCropRegions(t *testing.T) {
	const width, height, n = 500, 375, 20000
	tr := TrainImageNet(224)
	sumArea, sumLogRatio, fallbacks := 0., 0., 0
	for i := range n {
		r := random.New(uint64(i))
		box := tr.Region(width, height, &r)
		if !box.In(image.Rect(0, 0, width, height)) || box.Empty() {
			t.Fatalf("box %v leaves the image", box)
		}
		area := float64(box.Dx()*box.Dy()) / (width * height)
		ratio := float64(box.Dx()) / float64(box.Dy())
		if area < 0.078 || ratio < 0.73 || ratio > 1.37 { // rounding of both sides included
			t.Fatalf("box %v has %.3f of the area and ratio %.3f", box, area, ratio)
		}
		if box == image.Rect(0, 0, width, height) {
			fallbacks++
		}
		sumArea += area
		sumLogRatio += math.Log(ratio)
	}
	// Uniform areas have the mean 0.54; boxes that do not fit are drawn again, which favours small ones, and ratios near
	// the image's own. The values come from a simulation of torchvision's code.
	if mean := sumArea / n; math.Abs(mean-0.4327) > 0.008 {
		t.Errorf("mean area %.4f", mean)
	}
	if mean := sumLogRatio / n; math.Abs(mean-0.0307) > 0.006 {
		t.Errorf("mean logarithm of the ratio %.4f", mean)
	}
	if fallbacks > n/1000 {
		t.Errorf("%d of %d boxes are the whole image", fallbacks, n)
	}
}

func TestRandomResizedCropFallback(t *testing.T) {
	// No box fits: the largest central one whose ratio is allowed.
	for _, c := range []struct {
		width, height int
		want          image.Rectangle
	}{
		{10000, 100, image.Rect(4933, 0, 5066, 100)},
		{100, 10000, image.Rect(0, 4933, 100, 5066)},
		{1, 1, image.Rect(0, 0, 1, 1)},
		{50, 1, image.Rect(24, 0, 25, 1)},
	} {
		r := random.New(0)
		if got := TrainImageNet(8).Region(c.width, c.height, &r); got != c.want {
			t.Errorf("%d×%d: %v, want %v", c.width, c.height, got, c.want)
		}
	}
}

func TestTrainTransformsFlipHalf(t *testing.T) {
	const n = 2000
	img := imaging.New(4, 4, 1)
	var s Scratch
	dst := make([]uint8, 16)
	for _, tr := range []Transform{TrainImageNet(4), TrainCIFAR(4)} {
		flips := 0
		offsets := map[[2]int]int{}
		for i := range n {
			r := random.New(uint64(i))
			tr.Region(4, 4, &r)
			c, err := tr.Apply(dst, img, &r, &s)
			if err != nil {
				t.Fatal(err)
			}
			if c.Flip {
				flips++
			}
			offsets[[2]int{c.Top, c.Left}]++
		}
		if flips < n/2-120 || flips > n/2+120 {
			t.Errorf("%v: %d of %d images are flipped", tr, flips, n)
		}
		want := 1
		if strings.Contains(tr.String(), "padded") {
			want = 81
		}
		if len(offsets) != want {
			t.Errorf("%v: %d offsets, want %d", tr, len(offsets), want)
		}
		for o := range offsets {
			if max(o[0], -o[0]) > 4 || max(o[1], -o[1]) > 4 {
				t.Errorf("%v: offset %v", tr, o)
			}
		}
	}
}

func TestSmallImagesAreCopied(t *testing.T) {
	img := imaging.New(8, 8, 3)
	for i := range img.Pix {
		img.Pix[i] = uint8(i)
	}
	var s Scratch
	for _, tr := range []Transform{TrainCIFAR(8), EvalSmall(8)} {
		dst := make([]uint8, 8*8*3)
		r := random.New(0)
		if _, err := tr.Apply(dst, img, &r, &s); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(dst, img.Pix) {
			t.Errorf("%v changes pixels", tr)
		}
	}
	// On large images the rim is cut off even if the size happens to be right.
	dst := make([]uint8, 8*8*3)
	if _, err := Eval(8).Apply(dst, img, nil, &s); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(dst, img.Pix) {
		t.Error("Eval copies an image of its size")
	}
}

func TestTransformsResizeSmallImages(t *testing.T) {
	img := imaging.New(20, 10, 1)
	for i := range img.Pix {
		img.Pix[i] = uint8(i % 20 * 10) // a ramp from left to right
	}
	var s Scratch
	for _, tr := range []Transform{TrainCIFAR(5), EvalSmall(5)} {
		dst := make([]uint8, 25)
		r := random.New(0)
		if _, err := tr.Apply(dst, img, &r, &s); err != nil {
			t.Fatal(err)
		}
		// Halved, then the five columns from the third (round half to even of 2.5 is 2) on.
		for x, want := range []int{45, 65, 85, 105, 125} {
			if got := int(dst[10+x]); got < want-1 || got > want+1 {
				t.Errorf("%v: column %d is %d, want %d", tr, x, got, want)
			}
		}
	}
}
