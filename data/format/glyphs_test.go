package format

import (
	"math"
	"testing"

	"onlinerna/data/random"
)

func newGlyphs(t *testing.T, split GlyphSplit) *Glyphs {
	t.Helper()
	set, err := NewGlyphs(split, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestGlyphsAreTheSameEverywhere(t *testing.T) {
	for split, want := range map[GlyphSplit]struct {
		n    int
		hash uint64
	}{
		GlyphTrain: {8000, 0x91a93511559fd148},
		GlyphVal:   {1000, 0x59f283f52e29d119},
		GlyphTest:  {4000, 0x4a4b5956a5c89b34},
	} {
		ds := newGlyphs(t, split)
		if got := fingerprint(t, ds); ds.Len() != want.n || got != want.hash {
			t.Errorf("split %d: %d images with hash %#x, want %d, %#x", split, ds.Len(), got, want.n, want.hash)
		}
	}
}

func TestGlyphsStatistics(t *testing.T) {
	ds := newGlyphs(t, GlyphTrain)
	var s Buffer
	count := make([]int, len(ds.Classes()))
	sum, sum2, n := 0., 0., 0.
	for i := range ds.Len() {
		img, err := decode(ds, i, &s)
		if err != nil {
			t.Fatal(err)
		}
		count[ds.Label(i)]++
		for _, p := range img.Pix {
			v := float64(p) / 255
			sum, sum2, n = sum+v, sum2+v*v, n+1
		}
	}
	// A class has 800 images in the mean, with a standard deviation of 27.
	for class, c := range count {
		if c < 700 || c > 900 {
			t.Errorf("class %s has %d images", ds.Classes()[class], c)
		}
	}
	mean := sum / n
	std := math.Sqrt(sum2/n - mean*mean)
	if math.Abs(mean-0.216) > 0.003 || math.Abs(std-0.194) > 0.003 { // as NumPy's rendering of the same shapes
		t.Errorf("mean %.3f, standard deviation %.3f", mean, std)
	}
}

func TestSincos(t *testing.T) {
	for x := -12.; x < 12; x += 0.01 {
		sin, cos := sincos(x)
		if math.Abs(sin-math.Sin(x)) > 1e-13 || math.Abs(cos-math.Cos(x)) > 1e-13 {
			t.Fatalf("sincos(%g) = %.17g, %.17g, want %.17g, %.17g", x, sin, cos, math.Sin(x), math.Cos(x))
		}
	}
}

func BenchmarkGlyph(b *testing.B) {
	var pix [glyphSize * glyphSize]uint8
	for i := range b.N {
		r := random.New(uint64(i))
		drawGlyph(pix[:], i%10, &r)
	}
}
