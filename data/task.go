package data

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"onlinerna/data/format"
	"onlinerna/internal/text"
)

// Task is the kind of a set's labels, and so of the outputs of a net that learns them.
type Task = format.Task

// The tasks.
const (
	Classification = format.Classification // each image shows one class
	MultiLabel     = format.MultiLabel     // each image shows any number of classes
	Regression     = format.Regression     // each image has a number for each of Classes, which are names of columns
)

// Tasks lists the tasks.
func Tasks() []string {
	return []string{string(Classification), string(MultiLabel), string(Regression)}
}

// Targeted is a Dataset of any task. If that is not Classification, Label is −1.
type Targeted interface {
	Dataset
	Task() Task
	// Targets sets row to the targets of image i, one for each of Classes: its numbers, or 1 for the classes that it
	// shows and 0 for others. It is not called for Classification.
	Targets(i int, row []float64)
}

var (
	_ Targeted = stored{}
	_ Targeted = (*subset)(nil)
)

// TaskOf is the task of a set.
func TaskOf(ds Dataset) Task {
	if d, ok := ds.(Targeted); ok {
		return d.Task()
	}
	return Classification
}

// Targets sets row to the targets of image i of a set of any task: see [Targeted].
func Targets(ds Dataset, i int, row []float64) {
	if TaskOf(ds) != Classification {
		ds.(Targeted).Targets(i, row)
		return
	}
	clear(row)
	if k := ds.Label(i); k >= 0 {
		row[k] = 1
	}
}

// shown lists the classes of image i; row is memory for its targets.
func shown(ds Dataset, i int, row []float64) (list []int) {
	if TaskOf(ds) == Classification {
		return []int{ds.Label(i)}
	}
	Targets(ds, i, row)
	for k, x := range row {
		if x > 0 {
			list = append(list, k)
		}
	}
	return list
}

// Shown names the classes of image i of a set that is not for regression.
func Shown(ds Dataset, i int) (names []string) {
	for _, k := range shown(ds, i, make([]float64, len(ds.Classes()))) {
		names = append(names, ds.Classes()[k])
	}
	return names
}

// Describe writes the classes or the numbers of image i, separated by semicolons.
func Describe(ds Dataset, i int) string {
	if TaskOf(ds) != Regression {
		return strings.Join(Shown(ds, i), ";")
	}
	row := make([]float64, len(ds.Classes()))
	Targets(ds, i, row)
	var list []string
	for _, x := range row {
		list = append(list, strconv.FormatFloat(x, 'g', 6, 64))
	}
	return strings.Join(list, ";")
}

func (d stored) Task() Task {
	if t, ok := d.Set.(format.Targeted); ok {
		return t.Task()
	}
	return Classification
}

func (d stored) Targets(i int, row []float64) { d.Set.(format.Targeted).Targets(i, row) }

func (d *subset) Task() Task {
	if d.several != nil {
		return MultiLabel
	}
	return TaskOf(d.Dataset)
}

func (d *subset) Targets(i int, row []float64) {
	if d.several == nil {
		Targets(d.Dataset, d.indices[i], row)
		return
	}
	clear(row)
	for _, k := range d.several[i] {
		row[k] = 1
	}
}

// as makes a set one for a task, if it can be; an empty task is the set's own.
func as(ds Dataset, task Task) (Dataset, error) {
	switch have := TaskOf(ds); {
	case task == "" || have == task:
		return ds, nil
	case task == MultiLabel && have == Classification:
		return multiLabel(ds)
	case task == Regression:
		return nil, errors.New("regression takes a table of numbers: want train.csv with rows file,number")
	case task == Classification && have == MultiLabel:
		return nil, fmt.Errorf("its images have several classes each: that is of the task %s", MultiLabel)
	default:
		return nil, fmt.Errorf("it is for the task %s, not %s", have, task)
	}
}

// multiLabel makes images of one class each, such as folders have, those of a multi-label set. Files of equal content
// are one image, which shows the classes of all of them.
func multiLabel(ds Dataset) (Dataset, error) {
	first := sameAs(ds)
	d := &subset{Dataset: ds, several: [][]int32{}}
	at := make([]int, ds.Len())
	merged := 0
	for i, k := range first {
		class := int32(ds.Label(i))
		if k == i {
			at[i] = len(d.indices)
			d.indices, d.several = append(d.indices, i), append(d.several, []int32{class})
			continue
		}
		merged++
		if of := &d.several[at[k]]; !slices.Contains(*of, class) {
			*of = append(*of, class)
		}
	}
	if merged > 0 {
		d.note = fmt.Sprintf("%s of equal content are %s of several classes", text.Count(merged+distinct(first), "file"),
			text.Count(distinct(first), "image"))
	}
	return d, nil
}

// distinct counts the images that others are the same as.
func distinct(first []int) int {
	of := map[int]bool{}
	for i, k := range first {
		if k != i {
			of[k] = true
		}
	}
	return len(of)
}

// sameAs finds, for each image that is a file, the first image with the same content, itself if no other has it.
func sameAs(ds Dataset) []int {
	first := make([]int, ds.Len())
	bySize := map[int64][]int{}
	for i := range first {
		first[i] = i
		if size := sizeOf(ds, i); size > 0 {
			bySize[size] = append(bySize[size], i)
		}
	}
	s := NewScratch(NewBudget(0, 1), 1)
	for _, list := range bySize {
		if len(list) < 2 {
			continue
		}
		known := map[[sha256.Size]byte]int{}
		for _, i := range list {
			b, ok, err := Encoded(ds, i, s)
			if !ok || err != nil { // the loader reports it
				continue
			}
			sum := sha256.Sum256(b)
			if k, ok := known[sum]; ok {
				first[i] = k
			} else {
				known[sum] = i
			}
		}
	}
	return first
}

// hashTargets hashes the targets of an image that has no label of its own.
func hashTargets(ds Dataset, i int, row []float64, b []byte) []byte {
	Targets(ds, i, row)
	b = b[:0]
	for _, x := range row {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}
