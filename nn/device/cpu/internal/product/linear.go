package product

import (
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// vectors is the grid of n images of one pixel, with the given number of channels.
func vectors(n, channels int) grid {
	return grid{
		images: n, height: 1, width: 1, rowStep: 1, colStep: 1, taps: []tap{{}},
		srcH: 1, srcW: 1, srcC: channels, channels: channels,
	}
}

// linearProduct maps n vectors; channels and rows are the lengths of a source and of a result.
func linearProduct(n, channels, rows, weightRow, weightChannel int) *product {
	return &product{
		grids:  []target{{grid: vectors(n, channels), stepH: 1, stepW: 1}},
		groups: 1, rows: rows,
		dstH: 1, dstW: 1, dstC: rows,
		weightRow: weightRow, weightChannel: weightChannel,
	}
}

func linearStep(s work.Step) productStep {
	n, in, out := s.InType(0).Shape[0], s.InType(0).Shape[1], s.InType(1).Shape[0]
	return forwardStep(s, linearProduct(n, in, out, in, 1))
}

func (d Options) linearGradInput(s work.Step, _ op.LinearGradInput) (*work.Lowering, error) {
	n, in, out := s.InType(1).Shape[0], s.InType(0).Shape[1], s.InType(0).Shape[0]
	p := gradStep(s, linearProduct(n, out, in, 1, in))
	if err := p.expect(); err != nil {
		return nil, err
	}
	return d.alone(p, p.product), nil
}
