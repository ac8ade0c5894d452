package work

import (
	"cmp"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// Strides lists the distances between the elements of a value along its logical dimensions.
func Strides(v device.Value) []int { return stridesIn(v.Type.Shape, Order(v)) }

// DataStrides lists the strides of a value in the layout of activations.
func DataStrides(t op.Type) []int { return stridesIn(t.Shape, Layout(t, device.Data)) }

func stridesIn(s op.Shape, l device.Layout) []int {
	switch l {
	case NHWC:
		return []int{s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]}
	case HWIO:
		return []int{1, s[0], s[3] * s[1] * s[0], s[1] * s[0]}
	}
	return s.Strides()
}

// InOrder reports whether elements with strides lie in row-major order without gaps.
func InOrder(s op.Shape, strides []int) bool {
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] > 1 && strides[i] != n {
			return false
		}
		n *= s[i]
	}
	return true
}

// Box is a copy between two sets of strides.
type Box struct {
	lines            []side // all but the last two, the slowest first
	outer, inner     side
	from, to, blocks int
	each             int // rows of outer elements of a block
}

// side is a dimension of a box.
type side struct{ n, src, dst int }

// NewBox is the copy of a box of elements; from and to are the places of the first element. A stride of the source may
// be 0.
func NewBox(extent op.Shape, from, to int, src, dst []int) Box {
	var sides []side
	for i, n := range extent {
		if n > 1 {
			sides = append(sides, side{n, src[i], dst[i]})
		}
	}
	slices.SortStableFunc(sides, func(a, b side) int { return cmp.Compare(b.dst, a.dst) })
	for i := len(sides) - 1; i > 0; i-- { // join dimensions that are contiguous on both sides
		a, b := sides[i-1], sides[i]
		if a.src == b.src*b.n && a.dst == b.dst*b.n {
			sides[i-1] = side{a.n * b.n, b.src, b.dst}
			sides = slices.Delete(sides, i, i+1)
		}
	}
	b := Box{from: from, to: to, inner: side{n: 1}, outer: side{n: 1}}
	if n := len(sides); n > 1 || n == 1 && sides[0].dst == 1 { // else rows of an element, which blocks divide
		b.inner, sides = sides[n-1], sides[:n-1]
	}
	if n := len(sides); n > 0 { // next to the innermost: the contiguous dimension of the source, if any
		k := n - 1
		if i := slices.IndexFunc(sides, func(s side) bool { return s.src == 1 }); i >= 0 {
			k = i
		}
		b.outer = sides[k]
		b.lines = slices.Delete(sides, k, k+1)
	}
	rows := b.outer.n
	for _, s := range b.lines {
		rows *= s.n
	}
	if len(b.lines) == 0 {
		b.each = max(1, ElementBlock/b.inner.n)
	} else {
		b.each = b.outer.n * max(1, ElementBlock/(b.inner.n*b.outer.n))
	}
	b.blocks = Ceil(rows, b.each)
	return b
}

// Phase copies the box.
func (b Box) Phase(dst, src []float32) Phase {
	return Phase{Blocks: b.blocks, Run: func(_, block int) { b.copy(dst, src, block) }}
}

func (b *Box) copy(dst, src []float32, block int) {
	rows := b.outer.n
	for _, s := range b.lines {
		rows *= s.n
	}
	for lo, hi := block*b.each, min((block+1)*b.each, rows); lo < hi; {
		line, first := lo/b.outer.n, lo%b.outer.n
		n := min(b.outer.n-first, hi-lo)
		from, to := b.from+first*b.outer.src, b.to+first*b.outer.dst
		for i := len(b.lines) - 1; i >= 0; i-- {
			s := b.lines[i]
			from, to, line = from+line%s.n*s.src, to+line%s.n*s.dst, line/s.n
		}
		b.matrix(dst, src, from, to, n)
		lo += n
	}
}

// matrix copies n rows of the inner side.
func (b *Box) matrix(dst, src []float32, from, to, n int) {
	in := b.inner
	switch {
	case in.src == 1 && in.dst == 1:
		for i := range n {
			copy(dst[to+i*b.outer.dst:][:in.n], src[from+i*b.outer.src:])
		}
	case in.src == 0 && in.dst == 1:
		for i := range n {
			v := src[from+i*b.outer.src]
			row := dst[to+i*b.outer.dst:][:in.n]
			for j := range row {
				row[j] = v
			}
		}
	default:
		const tile = 16 // cache lines of both sides stay cached
		for i := 0; i < n; i += tile {
			for j := 0; j < in.n; j += tile {
				for k := j; k < min(j+tile, in.n); k++ {
					f, t := from+i*b.outer.src+k*in.src, to+i*b.outer.dst+k*in.dst
					for range min(tile, n-i) {
						dst[t] = src[f]
						f, t = f+b.outer.src, t+b.outer.dst
					}
				}
			}
		}
	}
}

// Cleared sets all elements to 0.
func Cleared(x []float32) Phase {
	return Phase{Blocks: Ceil(len(x), ElementBlock), Run: func(_, block int) {
		clear(x[block*ElementBlock : min((block+1)*ElementBlock, len(x))])
	}}
}
