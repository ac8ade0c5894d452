package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// adviseHugePages asks for pages of 2 MiB, with which the kernels miss the TLB less, where memory has whole ones.
// A system that has none does without.
func adviseHugePages(memory []byte) {
	const page = 2 << 20
	if len(memory) < 2*page {
		return
	}
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) % page)
	whole := (len(memory) - skip) / page * page
	_ = unix.Madvise(memory[skip:skip+whole], unix.MADV_HUGEPAGE)
}
