package cpu_test

import (
	"testing"

	"onlinerna/internal/level"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/devicetest"
)

func narrow(threads int) devicetest.Open {
	return func() (device.Device, error) { return cpu.New(cpu.Options{Threads: threads, BFloat16: true}) }
}

// byDefinition opens a device whose products are those that AVX512_BF16 is defined to make, so many steps at a time.
func byDefinition(step int) func(threads int) devicetest.Open {
	return func(threads int) devicetest.Open {
		return func() (device.Device, error) {
			d, err := cpu.New(cpu.Options{Threads: threads, BFloat16: true})
			if err == nil {
				cpu.ByDefinition(d, step)
			}
			return d, err
		}
	}
}

// rounding is how exact products of bfloat16 are.
var rounding = devicetest.Options{Unit: 0x1p-8, Round: func(x float64) float64 { return float64(kern.Round(float32(x))) }}

// eachNarrow runs f for ways to multiply bfloat16: the best level's, by the definition, and with AVX512_BF16.
func eachNarrow(t *testing.T, f func(t *testing.T, open func(threads int) devicetest.Open)) {
	t.Run(level.Best().String(), func(t *testing.T) {
		t.Cleanup(level.ForceBFloat16(false))
		f(t, narrow)
	})
	t.Run("definition", func(t *testing.T) { f(t, byDefinition(2)) })
	t.Run("avx512bf16", func(t *testing.T) {
		if !level.HasBFloat16() {
			t.Skip("this processor has no AVX512_BF16")
		}
		t.Cleanup(level.Force(level.AVX512))
		t.Cleanup(level.ForceBFloat16(true))
		f(t, narrow)
	})
}

func TestNarrowDevice(t *testing.T) {
	eachNarrow(t, func(t *testing.T, open func(threads int) devicetest.Open) { devicetest.Run(t, open(3), rounding) })
}

func TestThreadsDoNotMatterToNarrow(t *testing.T) {
	eachNarrow(t, func(t *testing.T, open func(threads int) devicetest.Open) { devicetest.Equal(t, open(1), open(7)) })
}

// Pairs of steps give the bits of steps one by one.
func TestPairsDoNotMatter(t *testing.T) { devicetest.Equal(t, byDefinition(1)(1), byDefinition(2)(1)) }
