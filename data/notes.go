package data

import (
	"fmt"
	"strings"
)

// Notes says what a user should know about how a set was found, a sentence each: files that were passed over, classes
// that were matched otherwise than by name, classes without images.
func Notes(ds Dataset) []string {
	notes := notesOf(ds)
	counts := ClassCounts(ds)
	var empty []string
	for class, n := range counts {
		if n == 0 {
			empty = append(empty, ds.Classes()[class])
		}
	}
	if len(empty) > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d classes have no images: %s", len(empty), len(counts), several(empty)))
	}
	return notes
}

// ClassCounts is the number of images of each class.
func ClassCounts(ds Dataset) []int {
	counts := make([]int, len(ds.Classes()))
	for i := range ds.Len() {
		counts[ds.Label(i)]++
	}
	return counts
}

// noted is what a set has to say.
type noted struct{ notes []string }

func (n *noted) note(format string, args ...any) {
	n.notes = append(n.notes, fmt.Sprintf(format, args...))
}

func (n *noted) noteList() []string { return n.notes }

func notesOf(ds Dataset) []string {
	switch d := ds.(type) {
	case interface{ noteList() []string }:
		return append([]string(nil), d.noteList()...)
	case *subset:
		if d.shared {
			return nil
		}
		return notesOf(d.Dataset)
	case *renamed:
		return notesOf(d.Dataset)
	}
	return nil
}

// several lists the first few of names.
func several(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
