package gallery

import (
	"cmp"
	"slices"
	"strconv"

	"onlinerna/data"
)

// Guess is a class with its probability.
type Guess struct {
	Class       int     `json:"class"`
	Name        string  `json:"name"`
	WNID        string  `json:"wnid,omitempty"` // of ImageNet's classes
	Probability float64 `json:"probability"`
	// Of a multi-label net: the probability from which an image shows the class, and whether it does.
	Threshold float64 `json:"threshold,omitempty"`
	Shown     *bool   `json:"shown,omitempty"`
}

// Namer names outputs by the weights' own names, else ImageNet's, else their numbers.
func Namer(classes []string, outputs int) func(i int) Guess {
	wnids, names := data.ImageNetClasses()
	if classes == nil && outputs == len(wnids) {
		classes = wnids
	}
	return func(i int) Guess {
		g := Guess{Class: i, Name: strconv.Itoa(i)}
		if i < len(classes) {
			g.Name = classes[i]
		}
		if k, ok := slices.BinarySearch(wnids, g.Name); ok {
			g.WNID, g.Name = g.Name, names[k]
		}
		return g
	}
}

// Best are the most probable classes, the first of equals first.
func Best(p []float64, top int, name func(i int) Guess) []Guess {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	var list []Guess
	for _, i := range order[:min(top, len(order))] {
		g := name(i)
		g.Probability = p[i]
		list = append(list, g)
	}
	return list
}
