package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// adviseHugePages asks for pages of 2 MiB, which reduce the kernels' TLB misses, for the whole huge pages inside
// memory. Systems without huge pages ignore the advice.
func adviseHugePages(memory []byte) {
	const page = 2 << 20
	if len(memory) < 2*page {
		return
	}
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) % page)
	whole := (len(memory) - skip) / page * page
	_ = unix.Madvise(memory[skip:skip+whole], unix.MADV_HUGEPAGE)
}
