package network

import (
	"errors"
	"fmt"

	"onlinerna/data"
	"onlinerna/nn/op"
)

// CheckInputs returns an error unless the images of a set have the net's further inputs.
func (n *Network) CheckInputs(set data.Dataset) error {
	have := map[string]int{}
	for _, in := range data.InputsOf(set) {
		have[in.Name] = in.Len
	}
	for _, in := range n.model.Own {
		shape := op.Shape(in.Shape()[1:])
		if k := have[in.Name()]; k == 0 {
			return fmt.Errorf("%s takes the input %s %v for each image, which the images lack: a program adds it by "+
				"data.WithInput", n.arch,
				in.Name(), shape)
		} else if k != shape.Size() {
			return fmt.Errorf("%s takes the input %s %v for each image, which is of %d numbers: the images have %d", n.arch,
				in.Name(), shape, shape.Size(), k)
		}
	}
	return nil
}

// checkBatch returns an error if the batch does not suit the network.
func (n *Network) checkBatch(u Use, b *data.Batch) error {
	if b == nil {
		return errors.New("no batch")
	}
	if b.N < 1 || b.Height < 1 || b.Width < 1 {
		return fmt.Errorf("a batch of %d images of %d×%d pixels: give N, Height and Width", b.N, b.Height, b.Width)
	}
	if want := n.model.Config.Channels; b.Channels != want {
		return fmt.Errorf("a batch of images of %d channels: the network takes %d", b.Channels, want)
	}
	if k := n.model.Config.Classes; u == Training && !n.Meaning.Classifies() && (len(b.Targets) == 0 || len(b.Targets)%b.N != 0 ||
		len(b.Targets)/b.N > k) {
		return fmt.Errorf("a batch of %d has %d Targets, for the task %s: want N rows of at most %d", b.N,
			len(b.Targets), n.Meaning.Task, k)
	}
	for _, x := range []struct {
		name      string
		got, want int
		shape     string
	}{
		{"Images", len(b.Images), b.N * b.Height * b.Width * b.Channels, "N × Height × Width × Channels"},
		{"Labels", len(b.Labels), b.N, "N"}, {"Crops", len(b.Crops), 3 * b.N, "N × 3: top, left, flip"},
	} {
		if x.got != x.want {
			return fmt.Errorf("%s of a batch of %d has %d elements, want %d: %s", x.name, b.N, x.got, x.want, x.shape)
		}
	}
	return nil
}
