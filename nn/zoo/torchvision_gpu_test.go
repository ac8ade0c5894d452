//go:build gpu && cgo

package zoo_test

import (
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/net"
	"onlinerna/cuda/number"
)

// TestTorchvisionOnGPU compares the narrow nets with torchvision's on a GPU or its stand-in.
func TestTorchvisionOnGPU(t *testing.T) {
	gputest.NeedDNN(t)
	dev, err := net.Open(0, net.Options{Precision: number.Float32, Deterministic: true})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, want := range references(t, "testdata") {
		t.Run(want.Net, func(t *testing.T) {
			j := newJudge(t, want)
			j.on(dev, single)
		})
	}
}
