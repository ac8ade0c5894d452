package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/train/network"
)

// TestEvalReport computes a report of four images by hand.
func TestEvalReport(t *testing.T) {
	r := newEvalReport([]string{"a", "b"}, 3)
	l3 := float32(math.Log(3))
	b := &data.Batch{N: 4, Labels: []int32{0, 0, 1, 1}}
	inf := float32(math.Inf(-1))
	r.add(b, []float32{l3, 0, inf, 0, l3, inf, 0, l3, inf, 0, l3, inf}) // confidence 3/4 each
	r.finish("x", network.Score{Top1: 75, Images: 4})
	if r.Calibration > 1e-7 { // three of four are right
		t.Errorf("calibration error %g", r.Calibration)
	}
	if len(r.Classes) != 2 || r.Classes[0] != (classScore{"a", 2, 50}) || r.Classes[1] != (classScore{"b", 2, 100}) {
		t.Errorf("%+v", r.Classes)
	}
	var csv strings.Builder
	if err := r.writeConfusion(&csv); err != nil || csv.String() != "label,a,b,2\na,1,1,0\nb,0,2,0\n" {
		t.Errorf("%q, %v", csv.String(), err)
	}
	// 3 of 4, by Wilson's formula.
	if got := r.Interval; math.Abs(got[0]-30.0642) > 1e-3 || math.Abs(got[1]-95.4413) > 1e-3 {
		t.Errorf("interval %v", got)
	}
	dir := t.TempDir()
	mustRun(t, append([]string{"train", "--epochs", "1", "-o", filepath.Join(dir, "run"), "-q", "--rna", "off"}, quick[:6]...)...)
	confusion := filepath.Join(dir, "c.csv")
	_, out, _ := runRNA(t, "eval", "--weights", filepath.Join(dir, "run", "final.safetensors"), "--json", "--confusion", confusion)
	var got evalReport
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Score.Images == 0 || len(got.Classes) != 10 {
		t.Errorf("%v: %.300s", err, out)
	}
	if b, err := os.ReadFile(confusion); err != nil || strings.Count(string(b), "\n") != 11 {
		t.Errorf("%q, %v", b, err)
	}
	svg, sheet, list := filepath.Join(dir, "c.svg"), filepath.Join(dir, "worst.png"), filepath.Join(dir, "p.csv")
	out = mustRun(t, "eval", "--weights", filepath.Join(dir, "run", "final.safetensors"), "--confusion", svg, "--worst", sheet, "--worst-count", "5", "--predictions", list)
	if !strings.Contains(out, sheet+": 5 images with losses from ") {
		t.Error(out)
	}
	if b, err := os.ReadFile(svg); err != nil || !strings.Contains(string(b), ">predicted<") {
		t.Errorf("%.300s, %v", b, err)
	}
	if width, height := sizeOf(t, sheet); width < 3*128 || height < 2*128 {
		t.Errorf("a sheet of %d×%d", width, height)
	}
	if out := mustRun(t, "eval", "--weights", filepath.Join(dir, "run", "final.safetensors"), "--val-split", "0.01"); !strings.Contains(out, "on 40 images: ") {
		t.Errorf("the part of a validation split: %s", out)
	}
	for arg, want := range map[string]string{"--worst=x.gif": "it is written as .png", "--worst-count=0": "want 1 to 2000", "--confusion=x.gif": "x.gif"} {
		if status, _, err := runRNA(t, "eval", "--weights", "x", arg); status != 2 || !strings.Contains(err, want) {
			t.Errorf("%s: status %d, %q", arg, status, err)
		}
	}
}

// TestJSONAlone has eval --json say on the standard error which of several state dicts it takes: the standard output is JSON, or nothing.
func TestJSONAlone(t *testing.T) {
	several := filepath.Join("..", "..", "train", "torchfile", "testdata", "timm.pth.tar")
	_, out, said := runRNA(t, "eval", "--json", "--weights", several, "--model", "lenet", "--data", "glyphs", "--device", "cpu")
	if out != "" || !strings.Contains(said, "the state dict under state_dict") {
		t.Errorf("output %q, error %q", out, said)
	}
}

// TestWorst keeps the images of the highest losses, the first of equals first, and those without a number before all.
func TestWorst(t *testing.T) {
	w := worst{most: 3, classes: 2}
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
	}
	list := w.images(func(class int) guess { return guess{Class: class, Name: fmt.Sprint("class ", class)} })
	if len(list) != 3 || list[0].index != 5 || list[1].index != 1 || list[2].index != 4 {
		t.Fatalf("%+v", list)
	}
	if len(list[0].guesses) != 0 || list[0].label != 0 || list[1].label != 1 || list[1].guesses[0].Name != "class 0" {
		t.Errorf("%+v", list)
	}
	if p := list[1].guesses[0].Probability; math.Abs(p-1/(1+math.Exp(-4))) > 1e-6 {
		t.Errorf("probability %g", p)
	}
	if x := w.list[1].Loss; math.Abs(x-math.Log(1+math.Exp(4))) > 1e-6 {
		t.Errorf("loss %g", x)
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
