package convex

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"onlinerna/internal/mat"
)

// readMAT reads a MAT-file: the largest matrix, one row a sample, dense or sparse, and a vector of targets, which is
// called y, labels, target, class or the like, or the only other one of that length. Without one the targets are in a
// text file of the same name that ends in .labels or .targets, as sido0's. A matrix of one column a sample is
// transposed.
func readMAT(r io.Reader, path string, loss Loss) (*Data, error) {
	arrays, err := mat.Read(r, newBudget().bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var x *mat.Array
	var vectors []*mat.Array
	var names []string
	for _, a := range arrays {
		names = append(names, a.Name)
		if len(a.Dims) != 2 || a.Class < mat.Sparse || a.Len() == 0 {
			continue
		}
		if min(a.Dims[0], a.Dims[1]) == 1 && (x == nil || a.Len() < x.Len()) {
			vectors = append(vectors, a)
			continue
		}
		if x == nil || a.Len() > x.Len() {
			x = a
		}
	}
	if x == nil {
		return nil, fmt.Errorf("%s: no matrix of numbers among its variables (%s)", path, strings.Join(names, ", "))
	}
	if x.Imag != nil {
		return nil, fmt.Errorf("%s: variable %q is complex", path, x.Name)
	}
	vectors = slices.DeleteFunc(vectors, func(v *mat.Array) bool {
		return v == x || v.Imag != nil || v.Len() != x.Dims[0] && v.Len() != x.Dims[1]
	})
	target, err := targetOf(vectors, path)
	if err != nil {
		return nil, err
	}
	transposed := target != nil && target.Len() != x.Dims[0]
	d := &Data{}
	if d.X, err = matrixOf(x, path, transposed); err != nil {
		return nil, err
	}
	if target == nil {
		labels, closer, name, err := labelsFile(path, ".labels", ".targets")
		if err != nil {
			return nil, fmt.Errorf("%w, or a vector of %d in the file", err, x.Dims[0])
		}
		defer closer.Close()
		d.Y, d.Labels, err = readLabels(labels, name, loss, d.X.n)
		return d, err
	}
	t := &targets{file: path, loss: loss}
	for i, v := range elements(target) {
		if err := t.add(strconv.FormatFloat(v, 'g', -1, 64), 0); err != nil {
			return nil, fmt.Errorf("%w (element %d of variable %q)", err, i+1, target.Name)
		}
	}
	d.Y, d.Labels, err = t.finish()
	return d, err
}

// targetOf picks the vector of targets, nil if the file has none.
func targetOf(vectors []*mat.Array, path string) (*mat.Array, error) {
	for _, name := range []string{"y", "labels", "label", "targets", "target", "class", "classes", "gnd"} {
		for _, v := range vectors {
			if strings.EqualFold(v.Name, name) {
				return v, nil
			}
		}
	}
	switch len(vectors) {
	case 0:
		return nil, nil
	case 1:
		return vectors[0], nil
	}
	var names []string
	for _, v := range vectors {
		names = append(names, v.Name)
	}
	return nil, fmt.Errorf("%s: variables %s may be the targets: call the right one y", path, strings.Join(names, ", "))
}

// elements is a vector without gaps.
func elements(a *mat.Array) []float64 {
	if a.Class != mat.Sparse {
		return a.Real
	}
	out := make([]float64, a.Len())
	for j := range a.Dims[1] {
		for k := a.Columns[j]; k < a.Columns[j+1]; k++ {
			out[j*a.Dims[0]+a.Rows[k]] = a.Real[k]
		}
	}
	return out
}

// matrixOf turns columns into rows, or uses columns as rows if transposed.
func matrixOf(a *mat.Array, path string, transposed bool) (*Matrix, error) {
	rows, columns := a.Dims[0], a.Dims[1]
	for _, v := range a.Real {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%s: an element of variable %q is %v", path, a.Name, v)
		}
	}
	if max(rows, columns) > math.MaxInt32 {
		return nil, &FileError{path, 0, errors.New("more than 2^31 columns")}
	}
	switch {
	case a.Class != mat.Sparse && transposed:
		return dense(columns, rows, a.Real), nil
	case a.Class != mat.Sparse:
		stride := padded(columns)
		values := make([]float64, rows*stride)
		for j := range columns {
			for i, v := range a.Real[j*rows : (j+1)*rows] {
				values[i*stride+j] = v
			}
		}
		return &Matrix{n: rows, d: columns, values: values, stride: stride}, nil
	case transposed:
		index := make([]int32, len(a.Rows))
		for k, i := range a.Rows {
			index[k] = int32(i)
		}
		return NewSparse(columns, rows, a.Columns, index, a.Real)
	}
	start := make([]int, rows+1)
	for _, i := range a.Rows {
		start[i+1]++
	}
	for i := range rows {
		start[i+1] += start[i]
	}
	next := slices.Clone(start)
	index, values := make([]int32, len(a.Rows)), make([]float64, len(a.Rows))
	for j := range columns {
		for k := a.Columns[j]; k < a.Columns[j+1]; k++ {
			at := next[a.Rows[k]]
			index[at], values[at] = int32(j), a.Real[k]
			next[a.Rows[k]]++
		}
	}
	return NewSparse(rows, columns, start, index, values)
}
