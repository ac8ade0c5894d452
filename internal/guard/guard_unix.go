//go:build linux || darwin

package guard

import (
	"testing"

	"golang.org/x/sys/unix"
)

// pages returns n bytes.
func pages(tb testing.TB, bytes int) []byte {
	tb.Helper()
	page := unix.Getpagesize()
	end := (bytes + page - 1) / page * page
	all, err := unix.Mmap(-1, 0, end+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := unix.Munmap(all); err != nil {
			tb.Error(err)
		}
	})
	if err := unix.Mprotect(all[end:], unix.PROT_NONE); err != nil {
		tb.Fatal(err)
	}
	return all[end-bytes : end]
}
