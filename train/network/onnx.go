package network

import (
	"io"

	"onlinerna/nn"
	"onlinerna/nn/onnx"
)

// WriteONNX writes the net as it evaluates, with its weights, as package onnx has it: for batches of so many images, or of any number if that
// is 0. meta is written as metadata of the file, but for the mean and the standard deviation: the graph has them.
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
