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

// By LLVM's model of Sapphire Rapids, processors with AMX_BF16 run AVX512_BF16 at less than half the rate of AVX-512's
// multiply-adds.
var (
	hasBFloat16  = cpu.X86.HasAVX512BF16 && slices.Contains(detect(), AVX512)
	fastBFloat16 = hasBFloat16 && !cpu.X86.HasAMXBF16
)
