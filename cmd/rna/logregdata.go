package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"onlinerna/data"
	"onlinerna/internal/catalogue"
	"onlinerna/rna/convex"
)

// linearData are data for a linear model, and held-out ones where there are.
type linearData struct {
	name       string
	train, val *convex.Data
}

func (f *logregFlags) load(loss convex.Loss) (*linearData, error) {
	d := &linearData{name: "sonar"}
	var err error
	switch {
	case f.data == "":
		d.train, err = convex.Sonar()
		return d, err
	case isImages(f.data):
		d.name = fmt.Sprintf("%s, %d against all", filepath.Base(strings.TrimRight(f.data, `/\`)), f.digit)
		d.train, d.val, err = loadImages(f.data, f.digit)
		return d, err
	}
	d.name = filepath.Base(f.data)
	if d.train, err = convex.ReadFile(f.data, loss); err == nil && f.normalize {
		d.train, err = d.train.Normalize()
	}
	return d, err
}

func isImages(path string) bool {
	if path == "" {
		return false
	}
	info, err := os.Stat(path)
	if it, ok := catalogue.Find(path); err != nil && ok && it.Kind == catalogue.Images {
		return true
	}
	return err == nil && info.IsDir() || strings.Contains(filepath.Base(path), "idx3-ubyte")
}

// loadImages makes rows of pixels from 0 to 1 and a constant, sparse since most pixels are black, with the target
// 1 for the digit and −1 for all others.
func loadImages(path string, digit int) (train, val *convex.Data, err error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		path = filepath.Dir(path)
	}
	sets := make([]data.Dataset, 2)
	if sets[0], sets[1], err = data.Open(path, data.Options{NoVal: true}); err != nil {
		return nil, nil, err
	}
	out := make([]*convex.Data, 2)
	for i, set := range sets {
		if set == nil {
			continue
		}
		if c, ok := set.(io.Closer); ok {
			defer c.Close()
		}
		if digit < 0 || digit >= len(set.Classes()) {
			return nil, nil, fmt.Errorf("--digit is %d: %s has classes 0 to %d", digit, path, len(set.Classes())-1)
		}
		if out[i], err = pixels(set, digit); err != nil {
			return nil, nil, err
		}
	}
	return out[0], out[1], nil
}

func pixels(set data.Dataset, digit int) (*convex.Data, error) {
	var scratch data.Scratch
	start := []int{0}
	var index []int32
	var values, y []float64
	size := 0
	for i := range set.Len() {
		im, err := set.Read(i, nil, &scratch)
		if err != nil {
			return nil, err
		}
		if size == 0 {
			size = len(im.Pix)
		}
		if len(im.Pix) != size {
			return nil, fmt.Errorf("%s: an image of %d values, where the first has %d", set.Name(i), len(im.Pix), size)
		}
		for j, v := range im.Pix {
			if v != 0 {
				index, values = append(index, int32(j)), append(values, float64(v)/255)
			}
		}
		index, values = append(index, int32(size)), append(values, 1)
		start = append(start, len(values))
		target := -1.0
		if set.Label(i) == digit {
			target = 1
		}
		y = append(y, target)
	}
	x, err := convex.NewSparse(set.Len(), size+1, start, index, values)
	if err != nil {
		return nil, err
	}
	return &convex.Data{X: x, Y: y, Labels: [2]string{"others", set.Classes()[digit]}}, nil
}
