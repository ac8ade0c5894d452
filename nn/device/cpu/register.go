package cpu

import (
	"io"

	"onlinerna/internal/simd"
	"onlinerna/nn/device"
)

func init() {
	device.Register("cpu", device.Driver{
		Precisions: []string{"float32", "bfloat16"},
		Float32:    ways,
		Preference: 1,
		Auto:       func(io.Writer) (string, bool) { return "", true },
		Open:       openDriver,
	})
}

func openDriver(_ string, o device.Options) (device.Device, error) {
	narrow := o.Precision == "bfloat16"
	d, err := New(Options{Threads: o.Threads, Direct: o.Direct, BFloat16: narrow, Float32: o.Float32})
	if err != nil {
		return nil, err // an untyped nil, not a nil *Device
	}
	if narrow && !simd.Default().BFloat16() {
		why := "this processor has neither AMX nor AVX512_BF16"
		switch err := simd.Refused(); {
		case err != nil:
			why = err.Error()
		case simd.LacksAMX() == nil:
			why = "AMX is left out by RNA_CPU"
		case simd.FastBFloat16():
			why = "AVX512_BF16 is left out by RNA_CPU"
		case simd.HasBFloat16():
			why = "AVX512_BF16 is slow on this processor"
		}
		o.Warn("precision bfloat16: " + why + ": float32 is faster, and takes more memory")
	}
	return d, nil
}
