package cpu_test

import (
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/device/devicetest"
)

// A device whose products run in parts passes the suite, with equal bits for any number of threads.
func TestPartsDevice(t *testing.T) {
	if simd.LacksAMX() == nil {
		t.Cleanup(use(simd.AMX))
	} else if testing.Short() {
		t.Skip("the definition is slow")
	}
	parts := func(threads int) devicetest.Open {
		return func() (device.Device, error) {
			d, err := cpu.New(cpu.Options{Threads: threads, Level: at.String()})
			if err == nil {
				cpu.InParts(d, 3)
			}
			return d, err
		}
	}
	t.Run("device", func(t *testing.T) { devicetest.Run(t, parts(3), devicetest.Options{}) })
	t.Run("threads", func(t *testing.T) { devicetest.Equal(t, parts(1), parts(7)) })
}
