//go:build !purego

package simd

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/cpu"
)

// xcr0 is the lower half of XCR0: the registers that the operating system saves.
func xcr0() uint32

// detectAMX asks Linux for the registers of AMX. The permission holds for all threads of the process.
func detectAMX() error {
	const (
		tileState  = 1<<17 | 1<<18 // of XCR0
		request    = 0x1023        // ARCH_REQ_XCOMP_PERM
		tileMemory = 18            // XFEATURE_XTILEDATA
	)
	x := &cpu.X86
	switch {
	case !x.HasAMXTile || !x.HasAMXBF16 || !x.HasAVX512BF16 || !slices.Contains(detect(), AVX512):
		return errors.New("this processor has no AMX")
	case xcr0()&tileState != tileState:
		return errors.New("the operating system does not enable AMX")
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, request, tileMemory, 0); e != 0 {
		return fmt.Errorf("the operating system does not permit AMX: %w", e)
	}
	return nil
}
