package cpu_test

import (
	"fmt"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/device/devicetest"
)

func threads(n int) devicetest.Open {
	return func() (device.Device, error) { return cpu.New(cpu.Options{Threads: n}) }
}

func TestDevice(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7} {
		t.Run(fmt.Sprintf("%d threads", n), func(t *testing.T) {
			devicetest.Run(t, threads(n), devicetest.Options{})
		})
	}
}

func TestThreadsDoNotMatter(t *testing.T) {
	for _, n := range []int{2, 3, 7} {
		t.Run(fmt.Sprintf("%d threads", n), func(t *testing.T) {
			devicetest.Equal(t, threads(1), threads(n))
		})
	}
}
