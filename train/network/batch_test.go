package network

import (
	"strings"
	"testing"

	"onlinerna/data"
)

// TestBatch checks the errors for unsuitable batches.
func TestBatch(t *testing.T) {
	n := open(t, cpuDevice(t, 1), "conv6", 2)
	for _, c := range []struct {
		spoil func(b *data.Batch)
		want  string
	}{
		{func(b *data.Batch) { b.N = 0 }, "batch of 0 images"},
		{func(b *data.Batch) { b.Channels = 1 }, "1 channels: the network takes 3"},
		{func(b *data.Batch) { b.Images = b.Images[1:] }, "Images of a batch of 2 has 6143 elements, want 6144"},
		{func(b *data.Batch) { b.Labels = nil }, "Labels of a batch of 2 has 0 elements, want 2"},
		{func(b *data.Batch) { b.Crops = b.Crops[:2] }, "Crops of a batch of 2 has 2 elements, want 6"},
	} {
		b := noise(2, 32, 1)
		c.spoil(b)
		if _, _, err := n.Gradient(b, .1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	if _, err := n.Evaluate(nil, nil); err == nil {
		t.Error("no batch is no error")
	}
}
