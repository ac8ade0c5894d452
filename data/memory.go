package data

import (
	"fmt"
	"image"
	"image/color"

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
}

var _ Dataset = (*memory)(nil)

func (d *memory) Len() int          { return len(d.images) }
func (d *memory) Classes() []string { return d.classes }
func (d *memory) Channels() int     { return d.channels }
func (d *memory) Label(i int) int   { return d.labels[i] }
func (d *memory) Name(i int) string { return fmt.Sprintf("image %d", i) }

func (d *memory) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	m := d.images[i]
	return s.pixels(m.Pix, m.Width, m.Height, m.Channels, region)
}
