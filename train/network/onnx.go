package network

import (
	"io"

	"onlinerna/nn"
	"onlinerna/nn/onnx"
)

// WriteONNX writes the evaluation net with its weights, see package onnx, for a fixed batch size, or any batch size if
// batch is 0. meta becomes the file's metadata, except for the mean and the standard deviation, which the graph
// contains.
func (n *Network) WriteONNX(w io.Writer, meta Meta, batch int) error {
	about := meta.strings()
	for _, k := range []string{"format", "mean", "std"} {
		delete(about, k)
	}
	return onnx.Write(w, n.model.Arch, n.cfg, func(e nn.Entry) ([]float32, error) {
		v, err := n.entry(e, n.Params, n.Stats)
		if wide, ok := v.([]float64); ok {
			list := make([]float32, len(wide))
			for i, x := range wide {
				list[i] = float32(x)
			}
			return list, err
		}
		list, _ := v.([]float32)
		return list, err
	}, onnx.Options{Batch: batch, Metadata: about})
}
