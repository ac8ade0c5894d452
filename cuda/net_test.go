//go:build gpu && cgo

package cuda

import (
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/devicetest"
)

func openNet(o NetOptions) devicetest.Open {
	o.Context.KernelCache = kernelCache
	o.Context.ExactMemory = true // each buffer between pages that cannot be touched
	o.Deterministic = true
	return func() (device.Device, error) { return OpenNet(0, o) }
}

func TestNet(t *testing.T) {
	needDNN(t)
	devicetest.Run(t, openNet(NetOptions{}), devicetest.Options{})
}
