package cpu_test

import (
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/device/devicetest"
)

func winograd(threads int) devicetest.Open {
	return func() (device.Device, error) {
		d, err := cpu.New(cpu.Options{Threads: threads, Level: at.String()})
		if err == nil {
			cpu.AlwaysWinograd(d)
		}
		return d, err
	}
}

func TestWinograd(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		if at.Vectors() == simd.Go {
			return // plain Go has no Winograd
		}
		t.Run("device", func(t *testing.T) { devicetest.Run(t, winograd(3), devicetest.Options{}) })
		t.Run("threads", func(t *testing.T) { devicetest.Equal(t, winograd(1), winograd(7)) })
	})
}
