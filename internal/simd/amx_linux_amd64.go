//go:build !purego

package simd

import (
	"slices"
	"syscall"

	"golang.org/x/sys/cpu"
)

// xcr0 is the lower half of XCR0.
func xcr0() uint32

// detectAMX asks Linux for the registers of AMX. The permission holds for all threads of the process.
func detectAMX() error {
	x := &cpu.X86
	return amx(x.HasAMXTile && x.HasAMXBF16 && x.HasAVX512BF16 && slices.Contains(detect(), AVX512), xcr0, func() error {
		const (
			request  = 0x1023 // ARCH_REQ_XCOMP_PERM
			tileData = 18     // XFEATURE_XTILEDATA
		)
		if _, _, e := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, request, tileData, 0); e != 0 {
			return e
		}
		return nil
	})
}
