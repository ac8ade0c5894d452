package train

import (
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/data/format"
	"onlinerna/data/imaging"
	"onlinerna/data/random"
)

// album is a data set, or some of its classes, in memory.
type album struct {
	classes []string
	images  []*imaging.Image
	labels  []int
	names   []string
	test    *album // the images to evaluate on
}

var _ data.Dataset = (*album)(nil)

func (a *album) Len() int          { return len(a.images) }
func (a *album) Classes() []string { return a.classes }
func (a *album) Channels() int     { return a.images[0].Channels }
func (a *album) Label(i int) int   { return a.labels[i] }
func (a *album) Name(i int) string { return a.names[i] }

func (a *album) Read(i int, region data.Region, _ *data.Scratch) (*imaging.Image, error) {
	m := a.images[i]
	if region == nil {
		return m, nil
	}
	var box image.Rectangle = region(m.Width, m.Height)
	if box == m.Bounds() {
		return m, nil
	}
	part := &imaging.Image{}
	return part, imaging.Crop(part, m, box)
}

// album returns a data set of the study, opened once.
func (s *tuneStudy) album(source string) *album {
	if a := s.sets[source]; a != nil {
		return a
	}
	var a *album
	switch source {
	case "glyphs":
		a = copied(s.t, data.Glyphs(format.GlyphTrain))
		a.test = copied(s.t, data.Glyphs(format.GlyphTest))
	default:
		folder := filepath.Join(filepath.Dir(cifarFolder()), source)
		train, val, err := data.Open(folder, data.Options{})
		if err != nil {
			s.t.Fatal(err)
		}
		a = copied(s.t, train)
		a.test = copied(s.t, val)
		if b, err := os.ReadFile(filepath.Join(folder, "classes.txt")); err == nil {
			a.classes = strings.Fields(string(b))
		}
	}
	s.sets[source] = a
	return a
}

func copied(t *testing.T, set data.Dataset) *album {
	a := &album{classes: set.Classes()}
	var scratch data.Scratch
	for i := range set.Len() {
		m, err := set.Read(i, nil, &scratch)
		if err != nil {
			t.Fatal(err)
		}
		own := &imaging.Image{Width: m.Width, Height: m.Height, Channels: m.Channels, Pix: slices.Clone(m.Pix)}
		a.images, a.labels, a.names = append(a.images, own), append(a.labels, set.Label(i)), append(a.names, set.Name(i))
	}
	return a
}

// divide draws training images of some classes, size per class or all, and takes the test images of these classes.
func (a *album) divide(classes []int, size int, seed uint64) (train, test *album) {
	train, test = &album{}, &album{}
	for label, class := range classes {
		var own []int
		for i, l := range a.labels {
			if l == class {
				own = append(own, i)
			}
		}
		order := make([]int32, len(own))
		r := random.New(seed, uint64(class))
		r.Perm(order)
		for _, j := range order[:min(size, len(own))] {
			train.take(a, own[j], label)
		}
		for i, l := range a.test.labels {
			if l == class {
				test.take(a.test, i, label)
			}
		}
		train.classes, test.classes = append(train.classes, a.classes[class]), append(test.classes, a.classes[class])
	}
	return train, test
}

func (a *album) take(from *album, i, label int) {
	a.images, a.labels, a.names = append(a.images, from.images[i]), append(a.labels, label), append(a.names, from.names[i])
}

// name describes a task.
func (k task) name(a *album) string {
	var names []string
	for _, c := range k.target {
		names = append(names, a.classes[c])
	}
	return fmt.Sprintf("%s, %s: %s", k.source, k.model, strings.Join(names, ", "))
}
