package data

import (
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/augment"
	"onlinerna/data/imaging"
	"onlinerna/data/internal/datatest"
	"onlinerna/internal/testdata"
)

// augmentedLoader yields batches with all augmentations on.
func augmentedLoader(t *testing.T, opt LoaderOptions) *Loader {
	t.Helper()
	a := augment.Options{Policy: "rand-m7-mstd0.5-inc1", Jitter: []float64{.4, .4, .4, .1}, FlipVertical: .5, Erase: .5,
		Mean: []float64{.5, .5, .5}, Scale: [2]float64{.3, 1}, Interpolation: "random", Whole: true}
	tr, err := a.With(augment.TrainImageNet(24))
	if err != nil {
		t.Fatal(err)
	}
	opt.Shuffle, opt.Seed, opt.Substitute = true, 5, true
	l, err := NewLoader(painted{}, tr, opt)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// painted is a set of 40 images of random colours.
type painted struct{}

func (painted) Len() int          { return 40 }
func (painted) Classes() []string { return []string{"a", "b", "c", "d"} }
func (painted) Channels() int     { return 3 }
func (painted) Label(i int) int   { return i % 4 }
func (painted) Name(int) string   { return "painted" }
func (painted) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	m := imaging.New(40, 30, 3)
	for k := range m.Pix {
		m.Pix[k] = uint8(i*37 + k*(i+3)/40)
	}
	return s.pixels(m.Pix, 40, 30, 3, region)
}

func batchesOf(t *testing.T, l *Loader, epoch int) (list []Batch) {
	t.Helper()
	for b, err := range l.Epoch(t.Context(), epoch, 0) {
		if err != nil {
			t.Fatal(err)
		}
		c := *b
		c.Images, c.Labels, c.Other, c.Crops = slices.Clone(b.Images), slices.Clone(b.Labels), slices.Clone(b.Other),
			slices.Clone(b.Crops)
		c.Index = slices.Clone(b.Index)
		list = append(list, c)
	}
	return list
}

// Augmented and mixed batches are the same with any number of workers and of ranks.
func TestAugmentedBatchesAreFunctions(t *testing.T) {
	opt := LoaderOptions{Batch: 6, Workers: 1, Mix: augment.Mix{Mixup: .2, Cutmix: 1}, Repeat: 3}
	want := batchesOf(t, augmentedLoader(t, opt), 3)
	opt.Workers = 4
	same := func(a, b Batch) bool {
		return slices.Equal(a.Images, b.Images) && slices.Equal(a.Labels, b.Labels) && slices.Equal(a.Other, b.Other) &&
			a.Share == b.Share
	}
	if got := batchesOf(t, augmentedLoader(t, opt), 3); !slices.EqualFunc(got, want, same) {
		t.Error("four workers make other batches than one")
	}
	if got := batchesOf(t, augmentedLoader(t, opt), 4); slices.EqualFunc(got, want, same) {
		t.Error("two epochs have the same batches")
	}
	opt.Ranks = 3
	for rank := range 3 {
		opt.Rank = rank
		for k, b := range batchesOf(t, augmentedLoader(t, opt), 3) {
			if !same(b, want[3*k+rank]) {
				t.Errorf("batch %d of rank %d differs", k, rank)
			}
		}
	}
}

// With repetition an epoch has a third of the images, each three times in turn, and each time augmented differently.
func TestRepeat(t *testing.T) {
	list := batchesOf(t, augmentedLoader(t, LoaderOptions{Batch: 6, Repeat: 3}), 0)
	var order []int
	pictures := map[string]bool{}
	for _, b := range list {
		order = append(order, b.Index...)
		for n := range b.N {
			pictures[string(b.image(n))] = true
		}
	}
	if len(order) != 40 || len(pictures) != 40 {
		t.Fatalf("%d images, %d pictures", len(order), len(pictures))
	}
	for i, at := range order {
		if at != order[i/3*3] || i%3 == 0 && slices.Contains(order[:i], at) {
			t.Errorf("the order is %v", order)
			break
		}
	}
}

// TestMix undoes mixup and cutmix.
func TestMix(t *testing.T) {
	plain := batchesOf(t, augmentedLoader(t, LoaderOptions{Batch: 6}), 0)
	for name, mix := range map[string]augment.Mix{"mixup": {Mixup: .4}, "cutmix": {Cutmix: 1}} {
		shares := 0.
		for k, b := range batchesOf(t, augmentedLoader(t, LoaderOptions{Batch: 6, Mix: mix}), 0) {
			p := plain[k]
			if b.Share < 0 || b.Share > 1 || !slices.Equal(b.Labels, p.Labels) {
				t.Fatalf("%s: share %g", name, b.Share)
			}
			shares += b.Share
			for n := range b.N {
				before := (n + b.N - 1) % b.N
				if b.Other[n] != p.Labels[before] {
					t.Errorf("%s: labels %v and %v of %v", name, b.Labels, b.Other, p.Labels)
				}
				own, other, got := p.image(n), p.image(before), b.image(n)
				same := 0
				for i := range got {
					if name == "mixup" {
						if want := b.Share*float64(own[i]) + (1-b.Share)*float64(other[i]); math.Abs(want-float64(got[i])) > .51 {
							t.Fatalf("mixup of %d and %d by %g is %d", own[i], other[i], b.Share, got[i])
						}
					} else if got[i] == own[i] {
						same++
					} else if got[i] != other[i] {
						t.Fatalf("cutmix of %d and %d is %d", own[i], other[i], got[i])
					}
				}
				if name == "cutmix" && float64(same) < b.Share*float64(len(got))-.5 {
					t.Errorf("%d of %d values stayed, the share is %g", same, len(got), b.Share)
				}
			}
		}
		if shares == 0 {
			t.Errorf("%s: nothing was mixed", name)
		}
	}
}

func TestEvalMatchesTorchvision(t *testing.T) {
	dir := testdata.Shared(t, "reference/images")
	refs, err := filepath.Glob(filepath.Join(dir, "n*.eval.png"))
	if err != nil || len(refs) == 0 {
		t.Fatalf("no reference images in %s (%v)", dir, err)
	}
	root := t.TempDir()
	for _, ref := range refs {
		name := strings.TrimSuffix(filepath.Base(ref), ".eval.png")
		b, err := os.ReadFile(filepath.Join(dir, name+".jpg"))
		if err != nil {
			t.Fatal(err)
		}
		datatest.Write(t, root, "class/"+name+".jpg", b)
	}
	ds, err := OpenEval(root, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	l := newLoader(t, ds, augment.Eval(224), LoaderOptions{Batch: 3})
	for _, b := range collect(t, l, 0, 0) {
		for n, i := range b.Index {
			ref := refs[slices.IndexFunc(refs, func(r string) bool {
				return strings.HasPrefix(filepath.Base(r), strings.TrimSuffix(filepath.Base(ds.Name(i)), "jpg"))
			})]
			if d := maxDifference(t, b.image(n), ref); d > 3 {
				t.Errorf("%s: differs by %d levels from torchvision", ds.Name(i), d)
			}
		}
	}
}

// maxDifference compares RGB pixels with a PNG.
func maxDifference(t *testing.T, pix []uint8, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	worst, k := 0, 0
	size := want.Bounds()
	if len(pix) != size.Dx()*size.Dy()*3 {
		t.Fatalf("%d samples, the reference has %v pixels", len(pix), size)
	}
	for y := range size.Dy() {
		for x := range size.Dx() {
			r, g, b, _ := want.At(x, y).RGBA()
			for _, v := range []uint32{r, g, b} {
				d := int(pix[k]) - int(v>>8)
				worst = max(worst, d, -d)
				k++
			}
		}
	}
	return worst
}
