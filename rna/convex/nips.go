package convex

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// readNIPS reads the .data file of the feature selection challenge of NIPS 2003 (Madelon, Gisette, Dexter, Dorothea),
// with the labels in a .labels file of the same name. Rows are all features; or column:value; or, where rows have
// different lengths, the columns from 1 that are 1.
func readNIPS(r io.Reader, path string, loss Loss) (*Data, error) {
	in, memory := newLines(r, longestLine), newBudget()
	start := []int{0}
	var index []int32
	var values []float64
	line, width, columns, longest, size := 0, -1, 0, 0, int64(0)
	pairs, ragged := false, false
	for in.Scan() {
		line++
		size += int64(len(in.Bytes())) + 1
		count, last := 0, 0
		for f := range strings.FieldsSeq(in.Text()) {
			if count++; width < 0 && count == 1 {
				pairs = strings.Contains(f, ":")
			}
			if !pairs {
				v, err := number(f)
				if err != nil {
					return nil, &FileError{path, line, fmt.Errorf("column %d %w", count, err)}
				}
				values = append(values, v)
				continue
			}
			column, value, found := strings.Cut(f, ":")
			j, err := strconv.Atoi(column)
			if !found || err != nil || j <= last || j > math.MaxInt32 {
				return nil, &FileError{path, line, fmt.Errorf("%q after column %d: want column:value, ascending", f,
					last)}
			}
			v, err := number(value)
			if err != nil {
				return nil, &FileError{path, line, fmt.Errorf("column %d %w", j, err)}
			}
			last = j
			columns = max(columns, j)
			index, values = append(index, int32(j-1)), append(values, v)
		}
		if count == 0 && width < 0 {
			continue
		}
		if width < 0 {
			width = count
		}
		ragged = ragged || count != width
		longest = max(longest, count)
		if err := memory.take(rowBytes + sparseBytes*int64(count)); err != nil {
			return nil, &FileError{path, line, err}
		}
		start = append(start, len(values))
	}
	if err := in.Err(); err != nil {
		return nil, &FileError{path, line + 1, err}
	}
	n := len(start) - 1
	if longest == 0 {
		return nil, &FileError{path, 0, errors.New("no rows with features")}
	}
	var x *Matrix
	var err error
	switch {
	case pairs:
		if err := columnsError(columns, size); err != nil {
			return nil, &FileError{path, 0, err}
		}
		x, err = NewSparse(n, columns, start, index, values)
	case ragged:
		x, err = ones(path, start, values, size)
	default:
		x = dense(n, width, values)
	}
	if err != nil {
		return nil, err
	}
	labels, closer, name, err := labelsFile(path, ".labels", ".targets")
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	d := &Data{X: x}
	d.Y, d.Labels, err = readLabels(labels, name, loss, n)
	return d, err
}

// ones makes rows of the columns, from 1, that are 1.
func ones(path string, start []int, columns []float64, size int64) (*Matrix, error) {
	index := make([]int32, len(columns))
	width := 0
	for i := range len(start) - 1 {
		for k := start[i]; k < start[i+1]; k++ {
			j := int(columns[k])
			if err := columnsError(j, size); err != nil {
				return nil, &FileError{path, i + 1, err}
			}
			if float64(j) != columns[k] || j < 1 || k > start[i] && int32(j-1) <= index[k-1] {
				return nil, &FileError{path, i + 1,
					fmt.Errorf("rows have different lengths, so want columns from 1, ascending: found %v", columns[k])}
			}
			index[k] = int32(j - 1)
			width = max(width, j)
			columns[k] = 1
		}
	}
	return NewSparse(len(start)-1, width, start, index, columns)
}

// dense is the matrix with n rows of d values, moved so that rows start at cache lines.
func dense(n, d int, values []float64) *Matrix {
	stride := padded(d)
	if stride != d {
		wide := make([]float64, n*stride)
		for i := range n {
			copy(wide[i*stride:], values[i*d:(i+1)*d])
		}
		values = wide
	}
	return &Matrix{n: n, d: d, values: values, stride: stride}
}
