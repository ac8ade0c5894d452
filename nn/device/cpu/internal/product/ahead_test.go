package product

import (
	"testing"
	"unsafe"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// TestAhead checks that the lines of all rows are fetched, but for a few last ones, and no others.
func TestAhead(t *testing.T) {
	x, y := make([]float32, 1<<14), make([]uint16, 1<<14)
	start := uintptr(unsafe.Pointer(&x[0]))
	fetched := map[int]bool{} // bytes from x on
	f := new(ahead)
	set := &kern.Set{Fetch: func(at *byte, lines int) {
		for i := range lines {
			fetched[int(uintptr(unsafe.Pointer(at))-start)+i*lineBytes] = true
		}
	}}
	for _, c := range []struct{ at, rows, width, stride, tiles int }{
		{0, 7, 100, 300, 5}, {40, 3, 48, 64, 100}, {0, 50, 3, 3, 4}, {8, 9, 16, 24, 1}, {0, 0, 10, 10, 3},
		{300, 1, 500, 1000, 7},
	} {
		clear(fetched)
		f.start(set)
		addRows(f, x, c.at, c.rows, c.width, c.stride)
		f.over(c.tiles)
		for range c.tiles + 2 {
			f.tile()
		}
		size, missing := 4, 0
		dense := size*c.stride <= denseBytes || c.width == c.stride
		for row := range c.rows {
			for at := 0; at < size*c.width && !dense; at += lineBytes {
				if b := size*(c.at+row*c.stride) + at; fetched[b] {
					delete(fetched, b)
				} else {
					missing++
				}
			}
		}
		if dense && c.rows > 0 {
			for b := size * c.at; b < size*(c.at+(c.rows-1)*c.stride+c.width); b += lineBytes {
				if fetched[b] {
					delete(fetched, b)
				} else {
					missing++
				}
			}
		}
		if missing >= leastLines || len(fetched) > 0 {
			t.Errorf("%+v: %d lines are missing, others are fetched: %v", c, missing, fetched)
		}
	}

	// Elements of two bytes have half the lines, and a source that ends above the block's lines has none.
	lines := 0
	set.Fetch = func(_ *byte, n int) { lines += n }
	f.start(set)
	addRows(f, y, 0, 4, 128, 256)
	h := &halo{grid: &grid{images: 1, height: 9, width: 4, rowStep: 1, colStep: 1, srcH: 6, srcW: 4, srcC: 8}}
	f.addSource(h, work.Whole(x), extent{0, 1, 8, 1}, 0, 8)
	f.over(2)
	f.tile()
	f.tile()
	if want := 4 * 2 * 128 / lineBytes; lines != want {
		t.Errorf("%d lines of bfloat16, want %d", lines, want)
	}
}
