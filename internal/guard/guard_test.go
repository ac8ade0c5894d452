//go:build linux || darwin

package guard

import (
	"runtime/debug"
	"testing"
	"unsafe"
)

// faults reports whether element i of x cannot be read.
func faults(x []float32, i int) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() != nil }()
	sink = *(*float32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(x)), 4*i))
	return false
}

var sink float32

func TestSlice(t *testing.T) {
	for _, n := range []int{1, 7, 1024, 5000} {
		x := Copy(t, make([]float32, n))
		if faults(x, 0) || faults(x, n-1) {
			t.Errorf("%d elements: they cannot be read", n)
		}
		if !faults(x, n) {
			t.Errorf("%d elements: what lies behind them can be read", n)
		}
	}
}
