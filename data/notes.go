package data

import (
	"fmt"
	"slices"

	"onlinerna/data/format"
	"onlinerna/internal/text"
)

// Notes returns messages for the user about a set, a sentence each: skipped files, classes not matched by name,
// classes without images. Of two parts of one set the first alone returns those that are empty in the whole.
func Notes(ds Dataset) []string {
	notes := notesOf(ds)
	counts := ClassCounts(ds)
	whole := make([]int, len(counts))
	part, ok := ds.(*subset)
	if ok = ok && part.shared; ok {
		whole = ClassCounts(part.Dataset)
	}
	var empty []string
	for class, n := range counts {
		if n == 0 && (whole[class] > 0 || !ok) {
			empty = append(empty, ds.Classes()[class])
		}
	}
	if len(empty) > 0 {
		notes = append(notes, fmt.Sprintf("warning: %d of %d classes without images: %s", len(empty), len(counts),
			text.Some(empty)))
	}
	return notes
}

// ClassCounts is the number of images of each class, or with each number.
func ClassCounts(ds Dataset) []int {
	counts := make([]int, len(ds.Classes()))
	if TaskOf(ds) == Regression {
		for k := range counts {
			counts[k] = ds.Len()
		}
		return counts
	}
	row := make([]float64, len(counts))
	for i := range ds.Len() {
		for _, k := range shown(ds, i, row) {
			counts[k]++
		}
	}
	return counts
}

func notesOf(ds Dataset) []string {
	switch d := ds.(type) {
	case stored:
		if n, ok := d.Set.(format.Noted); ok {
			return slices.Clone(n.Notes())
		}
	case *subset:
		if d.shared {
			return nil
		}
		if d.note != "" {
			return append(notesOf(d.Dataset), d.note)
		}
		return notesOf(d.Dataset)
	}
	return nil
}
