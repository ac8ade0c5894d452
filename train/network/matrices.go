package network

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/op/update"
)

// Matrices returns the weights of hidden layers as matrices with a row for each output, for an optimiser that asks for
// them: all layers but the first and the last. It tests how the device stores them.
func (n *Network) Matrices(o device.Optimizer) (list []device.Matrix, err error) {
	if !slices.ContainsFunc(o.Passes(), func(p update.Pass) bool { return p.On != update.All }) {
		return nil, nil
	}
	depths, head := LayerDepths(n.model), Head(n.model)
	for i, s := range n.params {
		shape := s.typ.Shape
		if len(shape) < 2 || depths[i] == 0 || slices.Contains(head, s.name) {
			continue
		}
		m := device.Matrix{Tensor: i, Rows: shape[0], Columns: s.n / shape[0]}
		if m.Transposed, err = n.transposed(s, m); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// transposed reports whether a matrix is stored column by column: it uploads elements that hold the number of their
// row.
func (n *Network) transposed(s slot, m device.Matrix) (bool, error) {
	v, err := n.Device.NewVector(s.n)
	if err != nil {
		return false, err
	}
	defer v.Free()
	t := op.New(op.Type{DType: op.Float64, Shape: s.typ.Shape})
	rows := t.Data.([]float64)
	for i := range rows {
		rows[i] = float64(i / m.Columns)
	}
	if err := n.Device.Upload(v.Region(0, s.n), s.layout, t); err != nil {
		return false, fmt.Errorf("%s: %w", s.name, err)
	}
	lies := make([]float64, s.n)
	if err := v.ReadAt64(lies, 0); err != nil {
		return false, err
	}
	if slices.Equal(lies, rows) {
		return false, nil
	}
	for i, row := range lies {
		if row != float64(i%m.Rows) {
			return false, fmt.Errorf("%s: device %s keeps its rows neither one behind the other nor side by side", s.name,
				n.Device.Name())
		}
	}
	return true, nil
}
