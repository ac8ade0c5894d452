//go:build !linux && !darwin

package guard

import (
	"testing"
	"unsafe"
)

// pages is so many bytes, aligned as any element is.
func pages(_ testing.TB, bytes int) []byte {
	longs := make([]uint64, (bytes+7)/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(&longs[0])), bytes)
}
