package format

import (
	"os"

	"golang.org/x/sys/unix"
)

// willNeed asks the system to read n bytes of f from offset on ahead, or up to the end for n = 0.
func willNeed(f *os.File, offset, n int64) {
	_ = unix.Fadvise(int(f.Fd()), offset, n, unix.FADV_WILLNEED) // only advice: errors do not matter
}
