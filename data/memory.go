package data

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"math"

	"onlinerna/data/imaging"
)

// FromImages makes a set of images in memory: labels[i] is the class of images[i], an index into classes. Images may
// differ in size. They are gray if all are of type *image.Gray, else colour, without transparency. Pixels are copied.
func FromImages(classes []string, images []image.Image, labels []int) (Dataset, error) {
	if len(images) == 0 || len(images) != len(labels) {
		return nil, fmt.Errorf("%d images with %d labels: want at least one, each with its label", len(images),
			len(labels))
	}
	d := &memory{classes: classes, labels: labels, channels: 1}
	for i, img := range images {
		if img == nil || img.Bounds().Empty() {
			return nil, fmt.Errorf("image %d is empty", i)
		}
		if labels[i] < 0 || labels[i] >= len(classes) {
			return nil, fmt.Errorf("image %d has the label %d: there are %d classes", i, labels[i], len(classes))
		}
		if _, gray := img.(*image.Gray); !gray {
			d.channels = 3
		}
	}
	for _, img := range images {
		d.images = append(d.images, pixelsOf(img, d.channels))
	}
	return d, nil
}

// FromTargets makes a set of images in memory of a task other than classification: targets[i] are those of images[i],
// one for each of the names, as [Targeted] has them.
func FromTargets(task Task, names []string, images []image.Image, targets [][]float64) (Dataset, error) {
	if len(targets) != len(images) || task != MultiLabel && task != Regression {
		return nil, fmt.Errorf("%d images with %d rows of targets for the task %q: want a row for each, for %s or %s",
			len(images), len(targets), task, MultiLabel, Regression)
	}
	for i, row := range targets {
		if len(row) != len(names) {
			return nil, fmt.Errorf("image %d has %d targets: there are %d names", i, len(row), len(names))
		}
		for k, x := range row {
			if math.IsNaN(x) || math.IsInf(x, 0) || task == MultiLabel && x != 0 && x != 1 {
				return nil, fmt.Errorf("image %d has the target %g for %s: want 0 or 1, or any finite number for %s", i, x,
					names[k], Regression)
			}
		}
	}
	ds, err := FromImages([]string{""}, images, make([]int, len(images)))
	if err != nil {
		return nil, err
	}
	d := ds.(*memory)
	d.classes, d.labels, d.task, d.targets = names, nil, task, targets
	return d, nil
}

// pixelsOf copies the pixels of an image.
func pixelsOf(img image.Image, channels int) *imaging.Image {
	b := img.Bounds()
	m := imaging.New(b.Dx(), b.Dy(), channels)
	at := 0
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if channels == 1 {
				m.Pix[at] = color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y
			} else {
				c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
				m.Pix[at], m.Pix[at+1], m.Pix[at+2] = c.R, c.G, c.B
			}
			at += channels
		}
	}
	return m
}

// memory is a set of images in memory.
type memory struct {
	classes  []string
	images   []*imaging.Image
	labels   []int
	channels int
	task     Task        // empty: Classification
	targets  [][]float64 // of another task
}

var _ Targeted = (*memory)(nil)

func (d *memory) Len() int          { return len(d.images) }
func (d *memory) Classes() []string { return d.classes }
func (d *memory) Channels() int     { return d.channels }
func (d *memory) Task() Task        { return cmp.Or(d.task, Classification) }
func (d *memory) Label(i int) int {
	if d.targets != nil {
		return -1
	}
	return d.labels[i]
}
func (d *memory) Targets(i int, row []float64) { copy(row, d.targets[i]) }
func (d *memory) Name(i int) string            { return fmt.Sprintf("image %d", i) }

func (d *memory) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	m := d.images[i]
	return s.pixels(m.Pix, m.Width, m.Height, m.Channels, region)
}
