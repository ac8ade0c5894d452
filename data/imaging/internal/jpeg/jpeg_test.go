package jpeg

import (
	"math"
	"testing"

	"onlinerna/data/imaging/internal/kern"
)

func TestBitsStuffing(t *testing.T) {
	var r bits
	file := []byte{0x12, 0xff, 0x00, 0x34, 0xff, 0xff, 0x00, 0x56, 0xff, 0xd9}
	r.open(nil, file, 0)
	for i, want := range []uint32{0x12, 0xff, 0x34, 0xff, 0x56} {
		if got := r.take(8); got != want || r.Overrun() {
			t.Errorf("byte %d: %#x (overrun %v), want %#x", i, got, r.Overrun(), want)
		}
	}
	if got := r.take(1); got != 0 || !r.Overrun() {
		t.Error("reading beyond the data is no overrun")
	}
	if file[r.end] != 0xff || file[r.end+1] != markerEOI {
		t.Error("the reader is not left at the marker")
	}
}

func TestExtend(t *testing.T) {
	for _, c := range []struct {
		bits uint32
		size int
		want int32
	}{{0, 1, -1}, {1, 1, 1}, {0, 2, -3}, {1, 2, -2}, {2, 2, 2}, {3, 2, 3}, {0, 15, -32767}} {
		if got := kern.Extend(c.bits, c.size); got != c.want {
			t.Errorf("Extend(%b, %d) is %d, want %d", c.bits, c.size, got, c.want)
		}
	}
}

// Codes longer than the lookup's and shorter ones decode alike.
func TestHuffmanCodes(t *testing.T) {
	counts := [16]byte{0: 1, 1: 1, 2: 1, 9: 2, 15: 3} // 0, 10, 110, 1110000000, 1110000001, …
	segment := append(counts[:], 1, 2, 3, 4, 5, 6, 7, 8)
	var table table
	if n, err := table.read(segment, false); err != nil || n != len(segment) {
		t.Fatal(n, err)
	}
	var acc uint64
	n := 0
	for _, c := range []struct {
		code uint64
		size int
	}{{0b1110000001, 10}, {0b0, 1}, {0b1110000010000001, 16}, {0b110, 3}} {
		acc = acc<<c.size | c.code
		n += c.size
	}
	r := bits{Bits: kern.Bits{Acc: acc << (64 - n), N: n}}
	for _, want := range []uint8{5, 1, 7, 3} {
		if got, ok := r.decode(&table); !ok || got != want {
			t.Errorf("symbol %d, want %d", got, want)
		}
	}
	r = bits{Bits: kern.Bits{Acc: math.MaxUint64, N: 63}}
	if _, ok := r.decode(&table); ok {
		t.Error("a code that is not in the table decodes")
	}
}
