package data

import (
	"fmt"
	"math"
)

// Input describes a further input of nets that the images of a set have, such as a row of a table or a mask.
type Input struct {
	Name string // as the net has it: see nn.Builder.Input
	Len  int    // numbers for each image, in row-major order
}

// Extended is a Dataset whose images have further inputs.
type Extended interface {
	Dataset
	Inputs() []Input
	// Input sets row to input k of image i, which must be finite. After an error the image counts as unreadable.
	Input(i, k int, row []float32) error
}

var _ Extended = (*subset)(nil)

// InputsOf lists the further inputs that the images of a set have.
func InputsOf(ds Dataset) []Input {
	if d, ok := ds.(Extended); ok {
		return d.Inputs()
	}
	return nil
}

// WithInput returns the set with a further input: rows[i] is that of image i. It keeps rows. Nets get the numbers as
// they are, neither normalised nor cropped and flipped as the image is; images that are mixed mix them, too.
func WithInput(ds Dataset, name string, rows [][]float32) (Dataset, error) {
	if len(rows) != ds.Len() || len(rows) == 0 || len(rows[0]) == 0 {
		return nil, fmt.Errorf("input %s has %d rows for %d images: want one for each, of one number or more", name,
			len(rows), ds.Len())
	}
	for _, in := range InputsOf(ds) {
		if in.Name == name {
			return nil, fmt.Errorf("the images have an input %s already", name)
		}
	}
	d := &subset{Dataset: ds, indices: make([]int, len(rows)), input: name, rows: rows}
	for i, row := range rows {
		d.indices[i] = i
		if len(row) != len(rows[0]) {
			return nil, fmt.Errorf("input %s: row %d has %d numbers, row 0 has %d", name, i, len(row), len(rows[0]))
		}
		if err := checkInput(name, row); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return d, nil
}

// checkInput returns an error unless all numbers are finite.
func checkInput(name string, row []float32) error {
	for k, x := range row {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("input %s: number %d is %g: want finite ones, so fill in those that are missing", name, k, x)
		}
	}
	return nil
}

// Inputs implements Extended.
func (d *subset) Inputs() []Input {
	list := InputsOf(d.Dataset)
	if d.rows != nil {
		list = append(list[:len(list):len(list)], Input{d.input, len(d.rows[0])})
	}
	return list
}

// Input implements Extended.
func (d *subset) Input(i, k int, row []float32) error {
	if d.rows != nil && k == len(d.Inputs())-1 {
		copy(row, d.rows[i])
		return nil
	}
	return d.Dataset.(Extended).Input(d.indices[i], k, row)
}

// readInputs reads the inputs of image i of a set into row n.
func (b *Batch) readInputs(ds Dataset, i, n int) error {
	for k, in := range b.inputs {
		row := b.input(in, n)
		err := ds.(Extended).Input(i, k, row)
		if err == nil {
			err = checkInput(in.Name, row)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", ds.Name(i), err)
		}
	}
	return nil
}

// input is an input of row n.
func (b *Batch) input(in Input, n int) []float32 { return b.Inputs[in.Name][n*in.Len : (n+1)*in.Len] }
