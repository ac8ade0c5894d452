package convex

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Data are rows of features with a target each.
type Data struct {
	X *Matrix
	Y []float64 // ±1, or the targets of a regression

	// Labels are the file's labels for −1 and +1.
	Labels [2]string
}

// sonarCSV has a row a sonar return, scaled: 60 bands, a constant, and y = 1 for a rock, −1 for a mine.
//
// Sonar, Mines vs. Rocks: Terry Sejnowski and R. Gorman, UCI Machine Learning Repository,
// doi:10.24432/C5T01Q, under CC BY 4.0. Scaled to [0, 1] and completed by the constant.
//
//go:embed sonar.csv.gz
var sonarCSV []byte

// Sonar returns the embedded data of Gorman and Sejnowski's mines and rocks: 208 rows, 60 features in [0, 1] and a
// constant.
func Sonar() (*Data, error) {
	r, err := gzip.NewReader(bytes.NewReader(sonarCSV))
	if err != nil {
		return nil, fmt.Errorf("convex: embedded data: %w", err)
	}
	return ReadCSV(r, "sonar", Logistic)
}

// Normalize returns the data with each feature scaled to [0, 1] by its least and largest value, 0 where
// they are equal, and a constant feature 1 added. Sparse data stay sparse when no least value is below 0:
// then 0 remains 0, and the least value counts as 0.
func (d *Data) Normalize() (*Data, error) {
	n, dim := d.X.n, d.X.d
	low, high := make([]float64, dim), make([]float64, dim)
	seen := make([]int, dim)
	for i := range n {
		columns, x := d.X.Row(i)
		for k, v := range x {
			j := k
			if columns != nil {
				j = int(columns[k])
			}
			if seen[j] == 0 {
				low[j], high[j] = v, v
			}
			seen[j]++
			low[j], high[j] = math.Min(low[j], v), math.Max(high[j], v)
		}
	}
	for j := range low {
		if seen[j] < n {
			low[j], high[j] = math.Min(low[j], 0), math.Max(high[j], 0)
		}
		if d.X.index != nil && low[j] < 0 {
			return nil, fmt.Errorf("convex: feature %d of sparse data is negative (%v): scaling it to [0, 1] would "+
				"fill it", j+1, low[j])
		}
		if d.X.index != nil {
			low[j] = 0
		}
	}
	stride := 0
	size := len(d.X.values) + n
	var index []int32
	var start []int
	if d.X.index != nil {
		index, start = make([]int32, 0, size), []int{0}
	} else {
		stride = padded(dim + 1)
		size = n * stride
	}
	values := make([]float64, 0, size)
	for i := range n {
		columns, x := d.X.Row(i)
		for k, v := range x {
			j := k
			if columns != nil {
				j = int(columns[k])
				index = append(index, columns[k])
			}
			if high[j] > low[j] {
				v = (v - low[j]) / (high[j] - low[j])
			} else {
				v = 0
			}
			values = append(values, v)
		}
		values = append(values, 1)
		if d.X.index != nil {
			index = append(index, int32(dim))
			start = append(start, len(values))
		} else {
			values = values[:(i+1)*stride]
		}
	}
	out := *d
	out.X = &Matrix{n: n, d: dim + 1, values: values, stride: stride, index: index, start: start}
	return &out, nil
}

// A FileError is a mistake in a line of data.
type FileError struct {
	File string
	Line int // from 1; 0 is the file as a whole
	Err  error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// targets collects the targets of a file and turns them into ±1, or numbers.
type targets struct {
	file  string
	loss  Loss
	names []string // distinct labels, in order of appearance
	codes []int8
	y     []float64
}

// add takes the label of a line.
func (t *targets) add(label string, line int) error {
	if t.loss == Squares {
		v, err := number(label)
		if err != nil {
			return &FileError{t.file, line, fmt.Errorf("target %w", err)}
		}
		t.y = append(t.y, v)
		return nil
	}
	if label == "" {
		return &FileError{t.file, line, fmt.Errorf("the label is empty")}
	}
	if v, err := strconv.ParseFloat(label, 64); err == nil {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return &FileError{t.file, line, fmt.Errorf("label is %s", label)}
		}
		label = strconv.FormatFloat(v, 'g', -1, 64) // +1, 1 and 1.0 are one label
	}
	k := slices.Index(t.names, label)
	if k < 0 {
		if k = len(t.names); k == 2 {
			return &FileError{t.file, line,
				fmt.Errorf("a third label, %q, after %q and %q: the logistic loss takes two", label, t.names[0],
					t.names[1])}
		}
		t.names = append(t.names, label)
	}
	t.codes = append(t.codes, int8(k))
	return nil
}

// finish returns the targets. The larger label, by number or else by name, is +1.
func (t *targets) finish() (y []float64, labels [2]string, err error) {
	if t.loss == Squares {
		return t.y, labels, nil
	}
	if len(t.names) < 2 {
		return nil, labels, &FileError{t.file, 0,
			fmt.Errorf("one class only, %q in all %d rows: the logistic loss takes two", t.names[0], len(t.codes))}
	}
	positive := 1
	a, errA := strconv.ParseFloat(t.names[0], 64)
	b, errB := strconv.ParseFloat(t.names[1], 64)
	if errA == nil && errB == nil && a > b || (errA != nil || errB != nil) && t.names[0] > t.names[1] {
		positive = 0
	}
	y = make([]float64, len(t.codes))
	for i, c := range t.codes {
		y[i] = -1
		if int(c) == positive {
			y[i] = 1
		}
	}
	return y, [2]string{t.names[1-positive], t.names[positive]}, nil
}

// number parses a finite number.
func number(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case s == "":
		return 0, fmt.Errorf("is empty")
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is beyond the numbers of 64 bits", s)
	case err != nil:
		return 0, fmt.Errorf("%q is no number", s)
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("is %s", s)
	}
	return v, nil
}

// Error returns the share of rows, from 0 to 1, that the sign of xᵢᵀw puts on the wrong side. A row with
// xᵢᵀw = 0 is taken for −1.
func (d *Data) Error(w []float64) float64 {
	wrong := 0
	for i, y := range d.Y {
		if (d.X.dot(i, w) > 0) != (y > 0) {
			wrong++
		}
	}
	return float64(wrong) / float64(len(d.Y))
}
