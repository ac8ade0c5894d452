// Package guard gives tests memory that ends at an unreadable page: a kernel's read or write past an operand then is
// a fault. Bands of numbers round an operand show stray writes alone.
package guard

import (
	"testing"
	"unsafe"
)

// Slice is n elements, all zeros, behind which there is a page that can neither be read nor written. It is gone when
// the test ends. On systems other than Linux and macOS it is an ordinary slice.
func Slice[T any](tb testing.TB, n int) []T {
	var x T
	b := pages(tb, n*int(unsafe.Sizeof(x)))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Copy is Slice with the elements of x.
func Copy[T any](tb testing.TB, x []T) []T {
	y := Slice[T](tb, len(x))
	copy(y, x)
	return y
}
