package data

import (
	"image"
	"image/color"
	"slices"
	"strings"
	"testing"
)

func TestFromImages(t *testing.T) {
	gray := image.NewGray(image.Rect(1, 1, 3, 2))
	gray.Pix[1] = 7
	clear := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	clear.Set(0, 0, color.NRGBA{10, 20, 30, 0})
	classes := []string{"a", "b"}
	for _, c := range []struct {
		images   []image.Image
		channels int
		pix      []uint8 // of the first
	}{
		{[]image.Image{gray, gray}, 1, []uint8{0, 7}},
		{[]image.Image{gray, clear}, 3, []uint8{0, 0, 0, 7, 7, 7}},
		{[]image.Image{clear, gray}, 3, []uint8{10, 20, 30}},
	} {
		d, err := FromImages(classes, c.images, []int{1, 0})
		if err != nil {
			t.Fatal(err)
		}
		m, err := d.Read(0, nil, &Scratch{})
		if err != nil || d.Channels() != c.channels || d.Len() != 2 || d.Label(0) != 1 || !slices.Equal(m.Pix, c.pix) {
			t.Errorf("%d channels, pixels %v, %v", d.Channels(), m.Pix, err)
		}
	}
	for _, c := range []struct {
		images []image.Image
		labels []int
		want   string
	}{
		{nil, nil, "at least one"}, {[]image.Image{gray}, []int{2}, "label 2: there are 2 classes"},
		{[]image.Image{nil}, []int{0}, "image 0 is empty"}, {[]image.Image{gray}, nil, "1 images with 0 labels"},
	} {
		if _, err := FromImages(classes, c.images, c.labels); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestAsImageNet(t *testing.T) {
	wnids, names := ImageNetClasses()
	if !slices.IsSorted(wnids) || len(slices.Compact(slices.Sorted(slices.Values(names)))) != 1000 {
		t.Error("wnids are not sorted, or names not different")
	}
	for _, c := range []struct {
		classes []string
		want    []string
	}{{[]string{"n01440764"}, wnids}, {[]string{"tench", "toilet tissue"}, names},
		{[]string{"n01440764", "cat"}, nil}, {nil, nil}} {
		if got := AsImageNet(c.classes); !slices.Equal(got, c.want) {
			t.Errorf("%v: %d classes", c.classes, len(got))
		}
	}
}
