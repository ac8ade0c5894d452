package format

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"onlinerna/internal/text"
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

// freeClasses is the number of classes that any set may have. The last layer of a net takes memory for each.
const freeClasses = 1 << 16

// counted gives the names "0", "1", … to classes that have none, up to the largest label.
func counted(labels []int32) ([]string, error) {
	most := int(slices.Max(labels))
	if most >= freeClasses && most >= len(labels) {
		return nil, fmt.Errorf("label %d among %s: more than %d classes need as many images; number them without gaps, or "+
			"name them in classes.txt or by --classes", most, text.Count(len(labels), "image"), freeClasses)
	}
	return numbered(most + 1), nil
}

// match maps the distinct class names found to indices into classes, by name. If one of the two lists is numbers,
// names map to numbers in sorted order, and the note says so.
func match(found, classes []string) (labels []int32, note string, err error) {
	labels = make([]int32, len(found))
	index := newClassIndex(classes)
	for i, name := range found {
		if labels[i], err = index.find(name); err == nil {
			continue
		}
		switch {
		case allNumbers(found) && !allNumbers(classes):
			for i, name := range found {
				n, err := strconv.Atoi(name)
				if err != nil || n >= len(classes) {
					return nil, "",
						fmt.Errorf("class %s: the known classes are %d names, which have the numbers 0 to %d", name,
							len(classes), len(classes)-1)
				}
				labels[i] = int32(n)
			}
			return labels, "classes called by numbers stand for the known classes in their order, 0 for " +
				classes[0], nil
		case allNumbers(classes) && !allNumbers(found) && len(found) == len(classes):
			sorted := slices.Clone(found)
			slices.Sort(sorted)
			for i, name := range found {
				k, _ := slices.BinarySearch(sorted, name)
				if labels[i], err = index.find(strconv.Itoa(k)); err != nil {
					return nil, "", err
				}
			}
			return labels, "class names stand, sorted, for the known classes, which are called by numbers: " +
				sorted[0] + " for 0", nil
		}
		return nil, "", &unmatched{name, err}
	}
	return labels, "", nil
}

// unmatched is the error for an unknown class.
type unmatched struct {
	name string
	err  error
}

func (e *unmatched) Error() string { return e.err.Error() }

// allNumbers reports whether all names are numbers as written by strconv.Itoa.
func allNumbers(names []string) bool {
	for _, name := range names {
		if n, err := strconv.Atoi(name); err != nil || n < 0 || strconv.Itoa(n) != name {
			return false
		}
	}
	return true
}

// remap translates labels, indices into from, to indices into classes, by name. Labels stay if one of the two lists
// has no names (from is nil, classes are numbers), or both are equal. It returns the position of the first label that
// has no translation.
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

// ownClasses returns the classes of classes.txt in a folder, nil if there is none. It fails unless they cover the
// largest label.
func ownClasses(dir string, largest int) ([]string, error) {
	path := filepath.Join(dir, "classes.txt")
	own, err := ReadClasses(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && largest >= len(own):
		err = fmt.Errorf("label %d is outside [0, %d), the classes of %s", largest, len(own), path)
	}
	return own, err
}
