//go:build !linux && !darwin

package guard

import (
	"testing"
	"unsafe"
)

// pages returns n bytes, aligned for any element.
func pages(_ testing.TB, bytes int) []byte {
	longs := make([]uint64, (bytes+7)/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(&longs[0])), bytes)
}
