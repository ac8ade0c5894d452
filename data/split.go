package data

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/data/random"
)

// SplitByClass divides a set into images to train on and images to validate on: share of each class, rounded, but one
// at least and never all; a class with one image has it in training. The side of an image depends only on its file
// name, so other images, seeds and folders do not change it. An image of several classes counts as one of the rarest of
// them, one of none and all images of regression as of a class of their own. Train closes the set, val does not.
func SplitByClass(ds Dataset, share float64) (train, val Dataset, err error) {
	if !(share > 0 && share < 1) {
		return nil, nil, fmt.Errorf("validation split %g: must lie between 0 and 1", share)
	}
	type image struct {
		index int
		hash  uint64
	}
	byClass := make([][]image, len(ds.Classes())+1)
	group := strata(ds)
	for i := range ds.Len() {
		h := fnv.New64a()
		h.Write([]byte(filepath.Base(ds.Name(i))))
		l := group(i)
		byClass[l] = append(byClass[l], image{i, random.Mix(h.Sum64())})
	}
	held := make([]bool, ds.Len())
	for _, list := range byClass {
		slices.SortStableFunc(list, func(a, b image) int { return cmp.Compare(a.hash, b.hash) })
		n := len(list)
		k := min(max(1, int(math.Round(share*float64(n)))), n-1)
		for _, x := range list[:max(k, 0)] {
			held[x.index] = true
		}
	}
	var sides [2][]int // in the order of the set
	for i, h := range held {
		if h {
			sides[1] = append(sides[1], i)
		} else {
			sides[0] = append(sides[0], i)
		}
	}
	if len(sides[1]) == 0 {
		return nil, nil, errors.New("validation split: no class has more than one image")
	}
	return &subset{Dataset: ds, indices: sides[0]}, &subset{Dataset: ds, indices: sides[1], shared: true}, nil
}

// strata returns the function that says which class an image counts as.
func strata(ds Dataset) func(i int) int {
	none := len(ds.Classes())
	switch TaskOf(ds) {
	case Classification:
		return ds.Label
	case Regression:
		return func(int) int { return none }
	}
	counts, row := ClassCounts(ds), make([]float64, none)
	return func(i int) int {
		rarest := none
		for _, k := range shown(ds, i, row) {
			if rarest == none || counts[k] < counts[rarest] {
				rarest = k
			}
		}
		return rarest
	}
}

// HeldByClass returns only the validation images of SplitByClass. Closing them closes the set.
func HeldByClass(ds Dataset, share float64) (Dataset, error) {
	_, val, err := SplitByClass(ds, share)
	if err != nil {
		return nil, err
	}
	val.(*subset).shared = false
	return val, nil
}

// OpenUndivided opens the training images that Options.ValSplit would divide: those of a place without validation
// images.
func OpenUndivided(path string, classes []string, task Task) (Dataset, error) {
	train, val, err := openSplits(path, Options{ValSplit: 1, Classes: classes, Task: task})
	if err == nil && val != nil {
		err = errors.Join(fmt.Errorf("%s has validation images beside the training set", path), closeSet(val))
		train, err = nil, errors.Join(err, closeSet(train))
	}
	return train, err
}

// Fingerprint hashes the names of a set's classes and files, regardless of folder and order. The fingerprints of two
// disjoint sets add up to that of their union.
func Fingerprint(ds Dataset) uint64 {
	var sum uint64
	task := TaskOf(ds)
	for i := range ds.Len() {
		h := fnv.New64a()
		label := "" // of regression
		if task != Regression {
			label = strings.Join(Shown(ds, i), ";")
		}
		h.Write([]byte(label + "/" + filepath.Base(ds.Name(i))))
		sum += random.Mix(h.Sum64())
	}
	return sum
}
