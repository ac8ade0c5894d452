package cpu_test

import (
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/device/devicetest"
)

func winograd(threads int) devicetest.Open {
	return func() (device.Device, error) { return cpu.New(cpu.Options{Threads: threads, Winograd: true}) }
}

func TestWinogradDevice(t *testing.T) {
	eachLevel(t, func(t *testing.T) { devicetest.Run(t, winograd(3), devicetest.Options{}) })
}

func TestThreadsDoNotMatterToWinograd(t *testing.T) {
	eachLevel(t, func(t *testing.T) { devicetest.Equal(t, winograd(1), winograd(7)) })
}
