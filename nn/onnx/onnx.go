// Package onnx writes the net of an architecture, as it evaluates, in the form of ONNX that other runtimes take: opset
// 17, float32, weights in the file.
//
// The input is called "input" and holds images [N,C,H,W] of numbers from 0 to 1, in the order of channels that the net
// was trained with (RGB): mean and standard deviation are part of the graph. The net's further inputs follow, by their
// names. The output "logits" is [N,K], before a softmax. Weights have the names of the state dict.
package onnx

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"onlinerna/internal/protobuf"
	"onlinerna/nn"
	"onlinerna/nn/op"
)

// Options are optional contents of the file.
type Options struct {
	// Batch is the number of images a run. 0 leaves it open: a dimension called "batch".
	Batch int
	// Metadata are metadata_props of the file.
	Metadata map[string]string
}

// Opset is the version of ONNX's operators that is written, and irVersion that of the format which came with it.
const (
	Opset     = 17
	irVersion = 8
)

// openBatch stands for the number of images while it is open: extents that it divides count images.
const openBatch = 7919

// maxSize is the limit of protocol buffers.
const maxSize = 1<<31 - 1

// Write writes the net of an architecture with its weights. values gives those of an entry of the state dict in
// row-major order: a parameter, a running mean or a running variance. The batch, the mode and the training options of c
// are ignored.
//
// A net with ops that ONNX lacks is an error that names the layer and the op; nothing is written.
func Write(w io.Writer, arch nn.Architecture, c nn.Config, values func(nn.Entry) ([]float32, error), o Options) error {
	c.Mode, c.FloatInput, c.DType, c.Batch = nn.Eval, true, op.Float32, o.Batch
	if o.Batch == 0 {
		c.Batch = openBatch
	}
	m, err := arch.Model(c)
	if err != nil {
		return err
	}
	b := newBuilder(m, values, o.Batch == 0)
	if err := b.build(); err != nil {
		return fmt.Errorf("onnx: %s: %w", arch.Name, err)
	}
	if err := b.write(w, o.Metadata); err != nil {
		return fmt.Errorf("onnx: %s: %w", arch.Name, err)
	}
	return nil
}

// write encodes a ModelProto whose GraphProto has the nodes, and after them the weights, one at a time.
func (b *builder) write(w io.Writer, metadata map[string]string) error {
	var graph []byte
	for _, n := range b.nodes {
		graph = protobuf.Bytes(graph, 1, n.encode())
	}
	graph = protobuf.Bytes(graph, 2, b.model.Arch.Name)
	m := b.model.Config
	graph = protobuf.Bytes(graph, 11, b.interfaceOf(input, "images of numbers from 0 to 1", m.Channels, m.Size, m.Size))
	for _, in := range b.model.Own {
		graph = protobuf.Bytes(graph, 11, b.interfaceOf(in.Name(), "", in.Shape()[1:]...))
	}
	graph = protobuf.Bytes(graph, 12, b.interfaceOf(output, "before a softmax", m.Classes))
	size := len(graph)
	for _, t := range b.tensors {
		h := t.head()
		size += len(protobuf.Head(nil, 5, len(h)+t.bytes())) + len(h) + t.bytes()
	}

	model := protobuf.Varint(nil, 1, irVersion)
	model = protobuf.Bytes(model, 2, "rna")
	model = protobuf.Bytes(model, 8, protobuf.Varint(protobuf.Bytes(nil, 1, ""), 2, Opset))
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		model = protobuf.Bytes(model, 14, protobuf.Bytes(protobuf.Bytes(nil, 1, k), 2, metadata[k]))
	}
	model = protobuf.Head(model, 7, size)
	if len(model)+size > maxSize {
		return fmt.Errorf("%d bytes: a file of ONNX holds 2 GiB at most", len(model)+size)
	}
	out := bufio.NewWriterSize(w, 1<<20)
	_, err := out.Write(append(model, graph...))
	for i := 0; err == nil && i < len(b.tensors); i++ {
		err = b.tensors[i].write(out)
	}
	return errors.Join(err, out.Flush())
}

// interfaceOf encodes a ValueInfoProto: a tensor [N, shape…] that goes in or comes out.
func (b *builder) interfaceOf(name, doc string, shape ...int) []byte {
	var dims []byte
	if b.open {
		dims = protobuf.Bytes(dims, 1, protobuf.Bytes(nil, 2, "batch"))
	} else {
		shape = append([]int{b.model.Config.Batch}, shape...)
	}
	for _, d := range shape {
		dims = protobuf.Bytes(dims, 1, protobuf.Varint(nil, 1, uint64(d)))
	}
	tensor := protobuf.Bytes(protobuf.Varint(nil, 1, typeFloat), 2, dims)
	return protobuf.Bytes(protobuf.Bytes(protobuf.Bytes(nil, 1, name), 2, protobuf.Bytes(nil, 1, tensor)), 3, doc)
}
