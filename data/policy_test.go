package data

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"onlinerna/data/imaging"
)

var operations = map[string]operation{
	"Identity": opIdentity, "ShearX": opShearX, "ShearY": opShearY, "TranslateX": opTranslateX, "TranslateY": opTranslateY, "Rotate": opRotate,
	"Brightness": opBrightness, "Color": opColor, "Contrast": opContrast, "Sharpness": opSharpness, "Posterize": opPosterize,
	"Solarize": opSolarize, "AutoContrast": opAutoContrast, "Equalize": opEqualize, "Invert": opInvert, "SolarizeAdd": opSolarizeAdd,
}

func operationsImage(t *testing.T) *imaging.Image {
	b, err := os.ReadFile("imaging/testdata/operations.png")
	if err != nil {
		t.Fatal(err)
	}
	var d imaging.Decoder
	m := new(imaging.Image)
	if err := d.Decode(m, b, 3); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPolicyOperations compares operations at their magnitudes with those of torchvision and timm, bit for bit: see testdata/policies.py.
func TestPolicyOperations(t *testing.T) {
	b, err := os.ReadFile("testdata/policies.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string][][5]any
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	rgb := operationsImage(t)
	for kind, cases := range golden {
		if len(cases) < 100 {
			t.Errorf("%s: %d cases", kind, len(cases))
		}
		for _, c := range cases {
			m := *rgb
			m.Pix = slices.Clone(rgb.Pix)
			a := artist{}
			name := c[0].(string)
			level, negative := c[2].(float64), c[3].(bool)
			var err error
			if kind == "timm" {
				a.fill = []uint8{124, 116, 104}
				how := imaging.Bilinear
				if c[1].(float64) == 3 {
					how = imaging.Bicubic
				}
				op := operations[strings.TrimSuffix(strings.TrimSuffix(name, "Increasing"), "Rel")]
				err = timmApply(&m, &a, op, level/10, negative, how)
			} else {
				if a.how, err = imaging.ParseInterpolation(c[1].(string)); err != nil {
					t.Fatal(err)
				}
				list, n := levels, 31
				if kind == "wide" {
					list = wideLevels
				} else if kind == "auto" {
					n = 10
				}
				i := slices.IndexFunc(list, func(s space) bool { return s.op == operations[name] })
				err = list[i].do(&m, &a, int(level), n, negative)
			}
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha1.Sum(m.Pix); hex.EncodeToString(sum[:]) != c[4] {
				t.Errorf("%s %v differs", kind, c[:4])
			}
		}
	}
}

func TestParsePolicy(t *testing.T) {
	p, err := parsePolicy("rand-m7-mstd0.5-inc1")
	if err != nil || p != (timmRandom{7, .5, .5, 2}) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, name := range []string{"ta", "rand-m7", "rand-m77-inc1", "rand-x3-inc1", "rand-inc1-m", "rand-n0-inc1"} {
		if _, err := parsePolicy(name); err == nil {
			t.Errorf("%s is a policy", name)
		}
	}
}

// TestPolicyChoices looks at how often operations change an image: that all of them come.
func TestPolicyChoices(t *testing.T) {
	rgb := operationsImage(t)
	for _, name := range []string{"ra", "ta_wide", "imagenet", "cifar10", "rand-m7-mstd0.5-inc1"} {
		p, err := parsePolicy(name)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]bool{}
		for i := range 400 {
			r := NewRand(1, uint64(i))
			m := *rgb
			m.Pix = slices.Clone(rgb.Pix)
			if err := p.apply(&m, &artist{}, &r); err != nil {
				t.Fatal(err)
			}
			kinds[string(m.Pix)] = true
		}
		if len(kinds) < 40 {
			t.Errorf("%s: %d images out of 400", name, len(kinds))
		}
	}
}

// augmentedLoader gives batches with everything on.
func augmentedLoader(t *testing.T, opt LoaderOptions) *Loader {
	t.Helper()
	a := Augment{Policy: "rand-m7-mstd0.5-inc1", Jitter: []float64{.4, .4, .4, .1}, FlipVertical: .5, Erase: .5,
		Mean: []float64{.5, .5, .5}, Scale: [2]float64{.3, 1}, Interpolation: "random", Whole: true}
	tr, err := a.With(TrainImageNet(24))
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
		c.Images, c.Labels, c.Other, c.Crops = slices.Clone(b.Images), slices.Clone(b.Labels), slices.Clone(b.Other), slices.Clone(b.Crops)
		c.Index = slices.Clone(b.Index)
		list = append(list, c)
	}
	return list
}

// Augmented and mixed batches are the same with any number of workers and of ranks.
func TestAugmentedBatchesAreFunctions(t *testing.T) {
	opt := LoaderOptions{Batch: 6, Workers: 1, Mix: Mix{Mixup: .2, Cutmix: 1}, Repeat: 3}
	want := batchesOf(t, augmentedLoader(t, opt), 3)
	opt.Workers = 4
	same := func(a, b Batch) bool {
		return slices.Equal(a.Images, b.Images) && slices.Equal(a.Labels, b.Labels) && slices.Equal(a.Other, b.Other) && a.Share == b.Share
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

// With repetition an epoch has a third of the images, each three times in turn, and each time another picture.
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
	for name, mix := range map[string]Mix{"mixup": {Mixup: .4}, "cutmix": {Cutmix: 1}} {
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

// The usual mean of λ is a half, and λ of a small parameter is near 0 or 1.
func TestBeta(t *testing.T) {
	sum, ends := 0., 0
	const n = 2000
	b := Batch{N: 2, Height: 1, Width: 1, Channels: 1, Images: []uint8{0, 255}, Labels: []int32{0, 1}}
	var spare []uint8
	for i := range n {
		r := NewRand(9, uint64(i))
		Mix{Mixup: .2}.apply(&b, &r, &spare)
		sum += b.Share
		if math.Abs(b.Share-.5) > .4 {
			ends++
		}
	}
	if mean := sum / n; math.Abs(mean-.5) > .04 || ends < n/2 {
		t.Errorf("mean %g, %d of %d near the ends", mean, ends, n)
	}
}
