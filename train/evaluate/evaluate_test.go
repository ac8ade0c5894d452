package evaluate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/data/gallery"
	"onlinerna/train/network"
)

// TestWorst keeps the images with the highest losses, the first of equals first, and NaN losses before all.
func TestWorst(t *testing.T) {
	w, best := worst{most: 3, classes: 2}, worst{most: 3, classes: 2, lowest: true}
	nan := float32(math.NaN())
	for i, margins := range [][]float32{{1, 4, 2}, {3, 4, nan}} { // of the wrong class
		b := &data.Batch{N: 3, Labels: []int32{0, 1, 0}, Index: []int{3 * i, 3*i + 1, 3*i + 2}}
		var logits []float32
		for k, m := range margins {
			x := []float32{m, m}
			x[b.Labels[k]] = 0
			logits = append(logits, x...)
		}
		w.add(b, logits)
		best.add(b, logits)
	}
	if l := best.list; len(l) != 3 || l[0].Index != 0 || l[1].Index != 2 || l[2].Index != 3 {
		t.Errorf("lowest first: %+v", l)
	}
	list := w.images(func(class int) gallery.Guess {
		return gallery.Guess{Class: class, Name: fmt.Sprint("class ",
			class)}
	})
	if len(list) != 3 || list[0].Index != 5 || list[1].Index != 1 || list[2].Index != 4 {
		t.Fatalf("%+v", list)
	}
	if len(list[0].Guesses) != 0 || list[0].Label != 0 || list[1].Label != 1 || list[1].Guesses[0].Name != "class 0" {
		t.Errorf("%+v", list)
	}
	if p := list[1].Guesses[0].Probability; math.Abs(p-1/(1+math.Exp(-4))) > 1e-6 {
		t.Errorf("probability %g", p)
	}
	if x := w.list[1].Loss; math.Abs(x-math.Log(1+math.Exp(4))) > 1e-6 {
		t.Errorf("loss %g", x)
	}
	best.add(&data.Batch{N: 1, Labels: []int32{0}, Index: []int{9}}, []float32{1000, 0})
	if x := best.list[0]; x.Index != 9 || x.Loss != 0 || math.Signbit(x.Loss) { // not -0
		t.Errorf("a sure image: %+v", x)
	}
}

func TestPredictionNames(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		row  []float32
		want int
	}{{[]float32{1, 3, 3}, 1}, {[]float32{-1}, 0}, {[]float32{2, nan}, -1}, {nil, -1}} {
		if got := largest(c.row); got != c.want {
			t.Errorf("largest of %v is %d, want %d", c.row, got, c.want)
		}
	}
}

// TestReport computes a report of four images by hand.
func TestReport(t *testing.T) {
	r := newReport([]string{"a", "b"}, 3)
	r.ranking = true
	l3 := float32(math.Log(3))
	b := &data.Batch{N: 4, Labels: []int32{0, 0, 1, 1}, Index: []int{0, 1, 2, 3}}
	inf := float32(math.Inf(-1))
	r.add(b, []float32{l3, 0, inf, 0, l3, inf, 0, l3, inf, 0, l3, inf}) // confidence 3/4 each
	r.finish("x", network.Score{Top1: 75, Images: 4})
	if r.Calibration > 1e-7 { // three of four are right
		t.Errorf("calibration error %g", r.Calibration)
	}
	if len(r.Classes) != 2 || r.Classes[0].Top1 != 50 || r.Classes[1].Top1 != 100 || r.Classes[1].Images != 2 {
		t.Errorf("%+v", r.Classes)
	}
	var printed strings.Builder
	if err := r.Print(&printed, true); err != nil || !strings.HasPrefix(printed.String(), `
class  images       recall %    precision %           F1 %      ROC-AUC %           AP %
a           2  50.00 ± 35.36  100.00 ± 0.00  66.67 ± 31.43  75.00 ± 25.00  75.00 ± 21.65
b           2  100.00 ± 0.00  66.67 ± 27.22  80.00 ± 19.60  75.00 ± 25.00  66.67 ± 27.22
balanced accuracy 75.00 ± 17.68 %`[1:]) {
		t.Errorf("%v\n%s", err, &printed)
	}
	var csv strings.Builder
	if err := r.writeConfusion(&csv); err != nil || csv.String() != "label,a,b,2\na,1,1,0\nb,0,2,0\n" {
		t.Errorf("%q, %v", csv.String(), err)
	}
	// 3 of 4, by Wilson's formula.
	if got := r.Interval; math.Abs(got[0]-30.0642) > 1e-3 || math.Abs(got[1]-95.4413) > 1e-3 {
		t.Errorf("interval %v", got)
	}
}

// TestOdds: log odds differ where probabilities of float32 are equal.
func TestOdds(t *testing.T) {
	inf := math.Inf(-1)
	for _, c := range []struct {
		logits []float32
		want   []float64
	}{
		{[]float32{0, 0}, []float64{0, 0}},
		{[]float32{-30, 20, -31}, []float64{-50, 49.68673831, -51}},
		{[]float32{1, 2, 3}, []float64{-2.31326169, -1.12692801, .68673831}},
		{[]float32{float32(inf), 2, 2}, []float64{inf, 0, 0}},
	} {
		got := newOdds(0, 0, c.logits).Odds
		for k, w := range c.want {
			if d := math.Abs(got[k] - w); !(d <= 1e-8) && got[k] != w {
				t.Errorf("odds of %v: %v, want %v", c.logits, got, c.want)
				break
			}
		}
	}
}

func TestTookNamesWeights(t *testing.T) {
	r := &Run{File: "best.safetensors"}
	for kind, want := range map[network.Kind]string{network.SGD: "SGD",
		network.SGDStats: "SGD with BatchNorm recalibrated", network.Average: "the average"} {
		if got := r.took(network.Meta{Kind: kind, Epoch: 5}); got != "best.safetensors: "+want+" of epoch 5" {
			t.Error(got)
		}
	}
}

// The ends of the interval stay within 0 and 100.
func TestWilson(t *testing.T) {
	for n := 1; n < 100; n++ {
		if lo := wilson(0, n)[0]; lo < 0 || lo > 1e-9 || math.Signbit(lo) {
			t.Errorf("none of %d: from %g on", n, lo)
		}
		if hi := wilson(1, n)[1]; hi > 100 {
			t.Errorf("all of %d: up to %g", n, hi)
		}
	}
}

// A first argument is weights, or an image.
func TestNamesWeights(t *testing.T) {
	dir := t.TempDir()
	at := func(name, content string) string {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	const zip, jpeg, avif = "PK\x03\x04", "\xff\xd8\xff\xe0\x00\x10JFIF", "\x00\x00\x00\x20ftypavif"
	weights := []string{at("a.pth", zip), at("b", "\x02\x00\x00\x00\x00\x00\x00\x00{}"), at("hub.index.json", "{}"),
		filepath.Dir(at("hub/model.safetensors", "")), filepath.Dir(at("shards/model.safetensors.index.json", "")),
		"../statedict/testdata/flat.dcp", "../statedict/testdata/plain.orbax", "../statedict/testdata/plain.npz",
		"../statedict/testdata/plain.h5", "../statedict/testdata/plain.gguf", "resnet18"}
	images := []string{at("a.png", zip), at("c", jpeg), at("d.avif", avif), at("e.txt", "text"), "-", "nowhere.jpg", "cifar10",
		os.DevNull, filepath.Dir(at("photos/x/a.jpg", jpeg)), dir}
	for _, path := range weights {
		if !NamesWeights(path) {
			t.Errorf("%s is weights", path)
		}
	}
	for _, path := range images {
		if NamesWeights(path) {
			t.Errorf("%s is no weights", path)
		}
	}
}
