package cpu_test

import (
	"fmt"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/device/devicetest"
)

func threads(n int) devicetest.Open {
	return func() (device.Device, error) { return cpu.New(cpu.Options{Threads: n, Level: at.String()}) }
}

// at is the level of the devices that tests open; use sets it until restore is called.
var at = simd.Default()

func use(l simd.Level) (restore func()) {
	before := at
	at = l
	return func() { at = before }
}

// eachLevel runs f at all levels of the processor, in short mode at the best one.
func eachLevel(t *testing.T, f func(t *testing.T)) {
	for _, l := range simd.All() {
		if testing.Short() && l != simd.Best() {
			continue
		}
		t.Run(l.String(), func(t *testing.T) {
			t.Cleanup(use(l))
			f(t)
		})
	}
}

func TestDevice(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		counts := []int{1, 3} // TestThreadsDoNotMatter shows that other numbers of threads give the bits of one
		if testing.Short() || at.Vectors() != simd.Best() {
			counts = []int{3}
		}
		for _, n := range counts {
			t.Run(fmt.Sprintf("%d threads", n), func(t *testing.T) {
				devicetest.Run(t, threads(n), devicetest.Options{})
			})
		}
	})
}

func TestThreadsDoNotMatter(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		counts := []int{3, 7}
		if testing.Short() || at.Vectors() != simd.Best() {
			counts = []int{7}
		}
		for _, n := range counts {
			t.Run(fmt.Sprintf("%d threads", n), func(t *testing.T) {
				devicetest.Equal(t, threads(1), threads(n))
			})
		}
	})
}
