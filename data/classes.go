package data

import (
	"fmt"
	"slices"
	"strconv"
)

// classIndex finds classes by name.
type classIndex struct {
	index map[string]int
	twice map[string]bool
}

func newClassIndex(classes []string) classIndex {
	c := classIndex{make(map[string]int, len(classes)), map[string]bool{}}
	for i, name := range classes {
		if _, ok := c.index[name]; ok {
			c.twice[name] = true
		}
		c.index[name] = i
	}
	return c
}

func (c classIndex) find(name string) (int32, error) {
	i, ok := c.index[name]
	switch {
	case !ok:
		return 0, fmt.Errorf("class %q is not among the %d known classes", name, len(c.index))
	case c.twice[name]:
		return 0, fmt.Errorf("class %q occurs twice among the known classes", name)
	}
	return int32(i), nil
}

// numbered gives the names of n classes that have none: "0", "1", ….
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

// remap translates labels, indices into from, to indices into classes, by name. Where one of the
// two lists names nothing (from is nil, classes are numbers), or both are equal, labels stay. It
// returns the position of the first label that has no translation.
func remap(labels []int32, from, classes []string) (int, error) {
	if from == nil || slices.Equal(from, classes) || slices.Equal(classes, numbered(len(classes))) {
		for i, label := range labels {
			if int(label) >= len(classes) {
				return i, fmt.Errorf("label %d is outside [0, %d)", label, len(classes))
			}
		}
		return 0, nil
	}
	index := newClassIndex(classes)
	for i, label := range labels {
		to, err := index.find(from[label])
		if err != nil {
			return i, err
		}
		labels[i] = to
	}
	return 0, nil
}

// withClasses maps ds to other classes by name; nil keeps its own.
func withClasses(ds Dataset, classes []string) (Dataset, error) {
	if classes == nil || slices.Equal(classes, ds.Classes()) {
		return ds, nil
	}
	table := make([]int32, len(ds.Classes()))
	for i := range table {
		table[i] = int32(i)
	}
	if i, err := remap(table, ds.Classes(), classes); err != nil {
		return nil, fmt.Errorf("class %q of the dataset: %w", ds.Classes()[i], err)
	}
	return &renamed{Dataset: ds, classes: classes, table: table}, nil
}

// renamed is a dataset under other classes.
type renamed struct {
	Dataset
	classes []string
	table   []int32
}

func (d *renamed) Classes() []string { return d.classes }
func (d *renamed) Label(i int) int   { return int(d.table[d.Dataset.Label(i)]) }
func (d *renamed) Close() error      { return closeSet(d.Dataset) }
