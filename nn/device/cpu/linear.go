package cpu

import "onlinerna/nn/device"

// vectors is the grid of n images of one pixel, with the given number of channels.
func vectors(n, channels int) grid {
	return grid{
		images: n, height: 1, width: 1, rowStep: 1, colStep: 1, taps: []tap{{}},
		srcH: 1, srcW: 1, srcC: channels, channels: channels,
	}
}

// linearProduct makes n vectors of rows channels from such of channels channels.
func linearProduct(n, channels, rows, weightRow, weightChannel int) *product {
	return &product{
		grids:  []target{{grid: vectors(n, channels), stepH: 1, stepW: 1}},
		groups: 1, rows: rows,
		dstH: 1, dstW: 1, dstC: rows,
		weightRow: weightRow, weightChannel: weightChannel,
	}
}

func lowerLinear(s step) (*lowering, string) {
	if reason := s.expect(device.Data, device.Weight); reason != "" {
		return nil, reason
	}
	return s.product(s.linear()), ""
}

func (s step) linear() productStep {
	n, in, out := s.in(0).Shape[0], s.in(0).Shape[1], s.in(1).Shape[0]
	return productStep{linearProduct(n, in, out, in, 1), s.In[0], s.In[1], s.operand(2)}
}

func lowerLinearGradInput(s step) (*lowering, string) {
	if reason := s.expect(device.Weight, device.Data); reason != "" {
		return nil, reason
	}
	n, in, out := s.in(1).Shape[0], s.in(0).Shape[1], s.in(0).Shape[0]
	return s.product(productStep{linearProduct(n, out, in, 1, in), s.In[1], s.In[0], -1}), ""
}
