package product

import (
	"testing"
	"unsafe"

	"onlinerna/internal/simd"
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

// fetchedBy counts the lines that kernels fetch, by address, if each can fetch the given number.
func fetchedBy(f *ahead, most int) map[uintptr]int {
	lines := map[uintptr]int{}
	a := new(kern.Args)
	for f.next(a); a.Ahead != nil; f.next(a) {
		for i := range min(most, a.AheadLines) {
			lines[uintptr(a.Ahead)+uintptr(i*a.AheadStep)]++
		}
		a.AheadLines -= most
	}
	return lines
}

// inKernels checks that kernels fetch the lines of two arrays of all rows once, and no others.
func inKernels(t *testing.T, rows, width, stride, most int, x []float32) {
	f := new(ahead)
	f.start(nil)
	arrays := [][]float32{x[:len(x)/2], x[len(x)/2:]}
	for _, x := range arrays {
		addRows(f, x, 0, rows, width, stride)
	}
	fetched := fetchedBy(f, most)
	missing := 0
	for _, x := range arrays {
		n, each := rows, work.Ceil(4*width, lineBytes)
		if (4*stride <= denseBytes || width == stride) && rows > 0 { // one long row
			n, each = 1, work.Ceil(4*((rows-1)*stride+width), lineBytes)
		}
		for row := range n {
			for line := range each {
				at := uintptr(unsafe.Pointer(&x[0])) + uintptr(4*row*stride+line*lineBytes)
				if fetched[at] != 1 {
					missing++
				}
				delete(fetched, at)
			}
		}
	}
	if missing > 0 || len(fetched) > 0 {
		t.Errorf("%d rows of %d, stride %d, kernels of %d lines: %d are missing or fetched twice, others fetched: %v", rows,
			width, stride, most, missing, fetched)
	}
}

// TestFetchResults checks that the blocks of a product together fetch all lines of its result and of an operand of its
// epilogue, each its own pixels and columns.
func TestFetchResults(t *testing.T) {
	set := kern.For(simd.Best())
	if set == nil {
		t.Skip("there are no kernels in this build")
	}
	const images, size, rows = 3, 9, 320 // columns of whole lines
	for _, c := range []struct{ blocks, workers, most int }{{1, 1, 0}, {64, 8, 0}, {1, 1, 20}, {64, 3, 60}} {
		p := pointwise(images, size, rows, c.most)
		x := aligned(images * size * size * rows)
		k := &tiledKernel{tiled: newTiled(p, set, c.blocks, c.workers, false), dst: work.Whole(x)}
		k.reads = []*work.Pieces{work.Whole(x)}
		fetched := map[uintptr]int{}
		for i := range k.blocks {
			var f ahead
			f.start(set)
			k.fetchResults(&f, &k.blocks[i])
			for at, n := range fetchedBy(&f, 7) {
				fetched[at] += n
			}
		}
		wrong := 0
		for i := 0; i < len(x); i += lineBytes / 4 {
			at := uintptr(unsafe.Pointer(&x[i]))
			if fetched[at] != 2 { // as the result and as an operand
				wrong++
			}
			delete(fetched, at)
		}
		if wrong > 0 || len(fetched) > 0 {
			t.Errorf("%+v, %d blocks: %d lines are not fetched twice, %d others are fetched", c, len(k.blocks), wrong,
				len(fetched))
		}
	}
}

// Results larger than a cache are not fetched.
func TestFetchLargeResults(t *testing.T) {
	set := kern.For(simd.Best())
	if set == nil {
		t.Skip("there are no kernels in this build")
	}
	const size, rows = 15, 2048
	p, x := pointwise(1, size, rows, 0), aligned(size*size*rows)
	k := &tiledKernel{tiled: newTiled(p, set, 1, 1, false), dst: work.Whole(x)}
	var f ahead
	f.start(set)
	if k.fetchResults(&f, &k.blocks[0]); len(fetchedBy(&f, 7)) > 0 {
		t.Errorf("%d bytes are fetched", 4*len(x))
	}
}

// Blocks are smaller if their epilogue reads wide images.
func TestBesides(t *testing.T) {
	for _, c := range []struct{ rows, size, n, images, lines int }{
		{256, 56, 3, 1, 4}, {512, 28, 3, 1, 4}, {512, 28, 2, 1, 6}, {1024, 14, 3, 1, 4}, {2048, 7, 3, 1, 7},
		{64, 14, 3, 1, 14}, {64, 7, 3, 4, 7},
	} {
		p := &product{grids: []target{{grid: grid{images: 4, height: c.size, width: c.size}}}, rows: c.rows}
		if got := p.besides(c.n).grids[0].cut(); got != (cut{c.images, c.lines}) || p.grids[0].most != 0 {
			t.Errorf("%+v: blocks of %+v", c, got)
		}
	}
}

// pointwise is a 1×1 convolution of 32 channels to others, with a largest number of pixels of a block.
func pointwise(images, size, others, most int) *product {
	return &product{
		grids: []target{{grid: grid{images: images, height: size, width: size, rowStep: 1, colStep: 1, taps: []tap{{}},
			srcH: size, srcW: size, srcC: 32, channels: 32, most: most}, stepH: 1, stepW: 1}},
		groups: 1, rows: others, dstH: size, dstW: size, dstC: others,
	}
}

// aligned returns n elements from the start of a cache line on.
func aligned(n int) []float32 {
	x := make([]float32, n+lineBytes/4)
	for uintptr(unsafe.Pointer(&x[0]))%lineBytes != 0 {
		x = x[1:]
	}
	return x[:n]
}
