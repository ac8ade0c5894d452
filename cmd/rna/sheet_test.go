package main

import (
	"fmt"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/data/imaging"
	"onlinerna/internal/sheet"
)

// sizeOf is the width and the height of a PNG.
func sizeOf(t *testing.T, path string) (width, height int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := png.DecodeConfig(f)
	if err != nil {
		t.Fatal(err)
	}
	return c.Width, c.Height
}

// TestSheets draws sheets of images whose class has a name that the font lacks, which is told, and one that cannot be read.
func TestSheets(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, c := range []string{"猫", "dog"} {
		for k := range 6 {
			picture(t, filepath.Join("photos", c, fmt.Sprint(k, ".png")), color.RGBA{uint8(200 * i), 50, 90, 255}, 40)
		}
	}
	runRNA(t, "train", "--data", "photos", "--val-split", "0.3", "--model", "conv6", "--image-size", "16", "--epochs", "1", "--batch", "2", "--rna", "off", "-o", "run", "-q")
	out := mustRun(t, "eval", "--weights", "run/best.safetensors", "--data", "photos", "--all-images", "--worst", "worst.png", "--group-by", "class")
	if !strings.Contains(out, "worst.png: 12 images with losses from ") || !strings.Contains(out, "no glyphs for some characters of class 1 猫") {
		t.Error(out)
	}
	if w, h := sizeOf(t, "worst.png"); w < 6*sheet.Side || h < 2*sheet.Side {
		t.Errorf("a sheet of %d×%d", w, h)
	}
	if err := os.WriteFile("photos/dog/broken.png", []byte("no image"), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, said := runRNA(t, "predict", "photos", "--weights", "run/best.safetensors", "--sheet", "p.png", "--sheet-count", "7", "--group-by", "prediction", "--csv", "--top", "1")
	if status != 1 || strings.Count(out, "\n") != 13 || !strings.Contains(said, "p.png: 7 of 12 images") || !strings.Contains(said, "broken.png") {
		t.Errorf("%d, %q, %q", status, out, said)
	}
	for view, width := range map[string]int{"both": 2 * sheet.Side, "original": sheet.Side, "network": sheet.Side} {
		out := mustRun(t, "data", "show", "photos", "--count", "4", "--view", view, "--image-size", "16")
		if w, _ := sizeOf(t, "sheet.png"); !strings.Contains(out, "sheet.png: 4 images") || w < 2*width {
			t.Errorf("--view %s: %d pixels wide, %s", view, w, out)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"data show photos --view x", "want both, original, network"},
		{"data show photos --group-by prediction", "want none or class"},
		{"data show photos --out x.gif", "it is written as .png"},
		{"data show photos --font photos/dog/0.png", "no TrueType or OpenType font"},
		{"predict photos --weights run/best.safetensors --sheet-count 0", "want 1 to 2000"},
		{"predict photos --weights run/best.safetensors --group-by class", "want none or prediction"},
		{"predict photos --weights run/best.safetensors --sheet photos/dog/1.png", "name another output"},
		{"predict photos --weights run/best.safetensors --sheet x.svg", "it is written as .png"},
	} {
		if status, _, stderr := runRNA(t, strings.Fields(c.args)...); status != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("rna %s: %d, %s", c.args, status, stderr)
		}
	}
}

// named is a set of images of which only the names matter.
type named struct {
	data.Dataset
	names []string
}

func (n named) Name(i int) string { return n.names[i] }

// TestCaptions: label, prediction, probability, loss and file stand below an image, and its frame says whether the prediction is right.
func TestCaptions(t *testing.T) {
	fonts, err := sheet.LoadFonts("")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"cat", "dog", "猫"}
	c := &captions{&gallery{sheetFlags: &sheetFlags{by: byPrediction}, place: "photos", set: named{names: []string{"photos/cat/1.jpg", "elsewhere/" + strings.Repeat("x", 60) + "/2.jpg"}},
		name: func(i int) guess { return guess{Class: i, Name: names[i]} }}, fonts, map[int]string{}}
	of := func(class int, p float64) []guess { return []guess{{Class: class, Name: names[class], Probability: p}} }
	list := []sheetImage{
		{index: 0, label: 0, guesses: of(1, .875), loss: 2.345},
		{index: 1, label: 2, guesses: of(2, .99996), loss: 4e-5},
		{index: 0, label: 0, loss: math.Inf(1)},
		{index: 0, label: -1, guesses: append(of(1, .6), of(0, .4)...)},
		{index: 0, label: 1, loss: math.NaN()},
	}
	var got []string
	var frames []color.Color
	for i := range list {
		tile := c.tile(&list[i])
		s := ""
		for _, l := range tile.Caption {
			s += l.Before + l.Name + l.After + "; "
		}
		got, frames = append(got, s), append(frames, tile.Frame)
	}
	want := []string{
		"label: cat; predicted: dog; 87.5 %, loss 2.35; unreadable; cat/1.jpg; ",
		"label: class 2 猫; predicted: class 2 猫; >99.9 %, loss 4e-05; unreadable; elsewhere/" + strings.Repeat("x", 60) + "/; 2.jpg; ",
		"label: cat; predicted: no number; unreadable; cat/1.jpg; ",
		"dog 60.0 %; cat 40.0 %; unreadable; cat/1.jpg; ",
		"dog; unreadable; cat/1.jpg; ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("captions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if frames[0] != sheet.Wrong || frames[1] != sheet.Right || frames[2] != sheet.Wrong || frames[3] == sheet.Right {
		t.Errorf("frames %v", frames)
	}
	groups := c.groups(list)
	if len(groups) != 3 || len(groups[0].Tiles) != 2 || groups[0].Title != (sheet.Line{Before: "predicted ", Name: "dog", After: ": 2 images"}) {
		t.Errorf("%d groups, the first %+v", len(groups), groups[0].Title)
	}
}

// TestFitted: a small image grows by a whole factor, a large one shrinks.
func TestFitted(t *testing.T) {
	for _, c := range [][4]int{{28, 28, 168, 168}, {32, 16, 192, 96}, {100, 50, 192, 96}, {1000, 500, 192, 96}, {1, 5000, 1, 192}} {
		m, err := fitted(imaging.New(c[0], c[1], 1))
		if err != nil || m.Bounds().Dx() != c[2] || m.Bounds().Dy() != c[3] {
			t.Errorf("%v: %v, %v", c, m.Bounds(), err)
		}
	}
}
