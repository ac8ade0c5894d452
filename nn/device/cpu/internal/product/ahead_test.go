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
		for _, steps := range []int{1, 5, 64} {
			inKernels(t, c.rows, c.width, c.stride, steps, x)
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

// inKernels checks that kernels of some steps along the depth fetch the lines of two arrays of all rows, and no others.
func inKernels(t *testing.T, rows, width, stride, steps int, x []float32) {
	f := new(ahead)
	set := &kern.Set{Fetches: 1}
	f.start(set)
	addRows(f, x, 0, rows, width, stride)
	addRows(f, x, len(x)/2, rows, width, stride)
	start := uintptr(unsafe.Pointer(&x[0]))
	fetched := map[int]int{}
	for range 10_000 {
		a := kern.Args{Taps: 2, Depth: 4 * steps}
		if f.next(&a); a.Ahead == nil {
			break
		}
		for i := range min(2*steps, a.AheadLines) {
			fetched[int(uintptr(a.Ahead)-start)+i*a.AheadStep]++
		}
	}
	missing := 0
	take := func(at int) {
		if fetched[at] == 0 {
			missing++
		}
		delete(fetched, at)
	}
	for _, at := range []int{0, 4 * len(x) / 2} {
		if dense := 4*stride <= denseBytes || width == stride; dense && rows > 0 {
			for b := 0; b < 4*((rows-1)*stride+width); b += lineBytes {
				take(at + b)
			}
			continue
		}
		for row := range rows {
			for b := 0; b < 4*width; b += lineBytes {
				take(at + 4*row*stride + b)
			}
		}
	}
	if missing > 0 || len(fetched) > 0 {
		t.Errorf("%d rows of %d, stride %d, kernels of %d steps: %d lines are missing, others are fetched: %v", rows, width,
			stride, steps, missing, fetched)
	}
}
