package cpu_test

import (
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/devicetest"
)

func narrow(threads int) devicetest.Open {
	return func() (device.Device, error) {
		return cpu.New(cpu.Options{Threads: threads, Level: at.String(), BFloat16: true})
	}
}

// changed opens a device whose products follow a definition.
func changed(threads int, change func(d *cpu.Device)) devicetest.Open {
	return func() (device.Device, error) {
		d, err := cpu.New(cpu.Options{Threads: threads, Level: at.String(), BFloat16: true})
		if err == nil {
			change(d)
		}
		return d, err
	}
}

// rounding is the precision of exact products of bfloat16.
var rounding = devicetest.Options{
	Unit: 0x1p-8, Round: func(x float64) float64 { return float64(kern.Round(float32(x))) }}

// eachNarrow runs f for ways to multiply bfloat16: the best level's, and AVX512_BF16's.
func eachNarrow(t *testing.T, f func(t *testing.T)) {
	t.Run(simd.Best().String(), func(t *testing.T) {
		t.Cleanup(use(simd.Best()))
		f(t)
	})
	t.Run("avx512bf16", func(t *testing.T) {
		if !simd.HasBFloat16() {
			t.Skip("this processor has no AVX512_BF16")
		}
		t.Cleanup(use(simd.AVX512BF16))
		f(t)
	})
	t.Run("amx", func(t *testing.T) {
		if err := simd.LacksAMX(); err != nil {
			t.Skip(err)
		}
		t.Cleanup(use(simd.AMX))
		f(t)
	})
}

func TestNarrowDevice(t *testing.T) {
	eachNarrow(t, func(t *testing.T) { devicetest.Run(t, narrow(3), rounding) })
	tiles, byTiles := "tiles by definition", cpu.ByTiles // slower the further down
	switch {
	case simd.LacksAMX() == nil: // run above
		tiles = ""
	case simd.Best() == simd.AVX512:
		tiles, byTiles = "tiles by vectors", cpu.ByVectorTiles
	}
	for name, change := range map[string]func(d *cpu.Device){
		"definition": func(d *cpu.Device) { cpu.ByDefinition(d, 2) }, tiles: byTiles,
	} {
		if name == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("slow")
			}
			o := rounding
			if name == "definition" { // which takes a minute
				o.Left = -1
			}
			devicetest.Run(t, changed(3, change), o)
		})
	}
}

func TestThreadsDoNotMatterToNarrow(t *testing.T) {
	eachNarrow(t, func(t *testing.T) { devicetest.Equal(t, narrow(1), narrow(7)) })
	t.Run("tiles by vectors", func(t *testing.T) {
		if simd.Best() != simd.AVX512 {
			t.Skip("needs AVX-512")
		}
		devicetest.Equal(t, changed(1, cpu.ByVectorTiles), changed(7, cpu.ByVectorTiles))
	})
}
