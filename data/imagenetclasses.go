package data

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// imageNetFile has a class a line, in the order of the outputs of nets that were trained on ILSVRC 2012: its wnid and
// torchvision's name.
//
//go:embed imagenet_classes.txt
var imageNetFile string

var imageNetClasses = sync.OnceValues(func() (wnids, names []string) {
	for line := range strings.Lines(imageNetFile) {
		wnid, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		wnids, names = append(wnids, wnid), append(names, name)
	}
	return wnids, names
})

// ImageNetClasses gives the 1,000 classes of ImageNet by index: their wnids, sorted, as "n01440764", and names for
// people, as "tench", all different.
func ImageNetClasses() (wnids, names []string) {
	wnids, names = imageNetClasses()
	return slices.Clone(wnids), slices.Clone(names)
}

// AsImageNet returns ImageNet's classes as wnids or as readable names, whichever the given classes use; nil if some
// are not among them.
func AsImageNet(classes []string) []string {
	wnids, names := imageNetClasses()
	for _, all := range [][]string{wnids, names} {
		if len(classes) > 0 && !slices.ContainsFunc(classes, func(c string) bool { return !slices.Contains(all, c) }) {
			return slices.Clone(all)
		}
	}
	return nil
}
