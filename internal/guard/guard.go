// Package guard gives tests memory that ends at an unreadable page: a kernel's read or write past an operand then is a
// fault. Guard bands of numbers around an operand reveal only stray writes.
package guard

import (
	"testing"
	"unsafe"
)

// Slice returns n zero elements, followed by a page that can be neither read nor written. They are freed when the test
// ends. On systems other than Linux and macOS it is an ordinary slice.
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
