package gallery

import (
	"image/color"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/data/imaging"
	"onlinerna/internal/sheet"
)

// named is a set of images that has names alone.
type named struct {
	data.Dataset
	names []string
}

func (n named) Name(i int) string { return n.names[i] }

// TestCaptions: label, prediction, probability, loss and file stand below an image, and its frame says whether the
// prediction is right.
func TestCaptions(t *testing.T) {
	fonts, err := sheet.LoadFonts("")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"cat", "dog", "猫"}
	c := &captions{&Gallery{Options: &Options{By: ByPrediction}, Place: "photos",
		Set:  named{names: []string{"photos/cat/1.jpg", "elsewhere/" + strings.Repeat("x", 60) + "/2.jpg"}},
		Name: func(i int) Guess { return Guess{Class: i, Name: names[i]} }}, fonts, map[int]string{}}
	of := func(class int, p float64) []Guess { return []Guess{{Class: class, Name: names[class], Probability: p}} }
	list := []Image{
		{Index: 0, Label: 0, Guesses: of(1, .875), Loss: 2.345},
		{Index: 1, Label: 2, Guesses: of(2, .99996), Loss: 4e-5},
		{Index: 0, Label: 0, Loss: math.Inf(1)},
		{Index: 0, Label: -1, Guesses: append(of(1, .6), of(0, .4)...)},
		{Index: 0, Label: 1, Loss: math.NaN()},
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
		"label: class 2 猫; predicted: class 2 猫; >99.9 %, loss 4e-05; unreadable; elsewhere/" + strings.Repeat("x", 60) +
			"/; 2.jpg; ",
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
	if len(groups) != 3 || len(groups[0].Tiles) != 2 || groups[0].Title != (sheet.Line{Before: "predicted ", Name: "dog",
		After: ": 2 images"}) {
		t.Errorf("%d groups, the first %+v", len(groups), groups[0].Title)
	}
}

// TestFitted: a small image grows by a whole factor, a large one shrinks.
func TestFitted(t *testing.T) {
	for _, c := range [][4]int{{28, 28, 168, 168}, {32, 16, 192, 96}, {100, 50, 192, 96}, {1000, 500, 192, 96},
		{1, 5000, 1, 192}} {
		m, err := fitted(imaging.New(c[0], c[1], 1))
		if err != nil || m.Bounds().Dx() != c[2] || m.Bounds().Dy() != c[3] {
			t.Errorf("%v: %v, %v", c, m.Bounds(), err)
		}
	}
}
