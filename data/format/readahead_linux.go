package format

import (
	"os"

	"golang.org/x/sys/unix"
)

// willNeed has the system read n bytes of f from offset on, to the end where n is 0.
func willNeed(f *os.File, offset, n int64) {
	_ = unix.Fadvise(int(f.Fd()), offset, n, unix.FADV_WILLNEED) // advice
}
