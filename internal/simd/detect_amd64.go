//go:build amd64 && !purego

package simd

import (
	"slices"

	"golang.org/x/sys/cpu"
)

func detect() []Level {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA || !x.HasBMI2:
		return []Level{Go}
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL:
		return []Level{Go, AVX2, AVX512}
	}
	return []Level{Go, AVX2}
}

var (
	hasBFloat16  = cpu.X86.HasAVX512BF16 && slices.Contains(detect(), AVX512)
	fastBFloat16 = hasBFloat16 && !slowBFloat16(intel(), cpu.X86.HasAMXBF16, cpu.X86.HasAVXVNNI)
)

// slowBFloat16 reports whether a processor with AVX512_BF16 multiplies float32 faster. Intel's from Sapphire Rapids on,
// which have AVX_VNNI, make 0.57 times as many multiply-adds a second by VDPBF16PS as in float32. Hypervisors may hide
// their AMX.
func slowBFloat16(intel, amx, avxVNNI bool) bool { return intel && (amx || avxVNNI) }

// intel reports whether the processor is Intel's.
func intel() bool
