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
	lines            []Side // all but the last two, the slowest first
	outer, inner     Side
	from, to, blocks int
	each             int // rows of outer elements of a block
}

// Side is a dimension: its extent and strides in the source and in the destination.
type Side struct{ N, Src, Dst int }

// Places are those of element i of the dimensions, in row-major order.
func Places(sides []Side, i int) (src, dst int) {
	for _, s := range slices.Backward(sides) {
		src, dst, i = src+i%s.N*s.Src, dst+i%s.N*s.Dst, i/s.N
	}
	return src, dst
}

// NewBox is the copy of a box of elements; from and to are the places of the first element. A stride of the source may
// be 0.
func NewBox(extent op.Shape, from, to int, src, dst []int) Box {
	var sides []Side
	for i, n := range extent {
		if n > 1 {
			sides = append(sides, Side{n, src[i], dst[i]})
		}
	}
	slices.SortStableFunc(sides, func(a, b Side) int { return cmp.Compare(b.Dst, a.Dst) })
	for i := len(sides) - 1; i > 0; i-- { // join dimensions that are contiguous on both sides
		a, b := sides[i-1], sides[i]
		if a.Src == b.Src*b.N && a.Dst == b.Dst*b.N {
			sides[i-1] = Side{a.N * b.N, b.Src, b.Dst}
			sides = slices.Delete(sides, i, i+1)
		}
	}
	b := Box{from: from, to: to, inner: Side{N: 1}, outer: Side{N: 1}}
	if n := len(sides); n > 1 || n == 1 && sides[0].Dst == 1 { // else rows of an element, which blocks divide
		b.inner, sides = sides[n-1], sides[:n-1]
	}
	if n := len(sides); n > 0 { // next to the innermost: the contiguous dimension of the source, if any
		k := n - 1
		if i := slices.IndexFunc(sides, func(s Side) bool { return s.Src == 1 }); i >= 0 {
			k = i
		}
		b.outer = sides[k]
		b.lines = slices.Delete(sides, k, k+1)
	}
	rows := b.outer.N
	for _, s := range b.lines {
		rows *= s.N
	}
	if len(b.lines) == 0 {
		b.each = max(1, ElementBlock/b.inner.N)
	} else {
		b.each = b.outer.N * max(1, ElementBlock/(b.inner.N*b.outer.N))
	}
	b.blocks = Ceil(rows, b.each)
	return b
}

// Phase copies the box.
func (b Box) Phase(dst, src []float32) Phase {
	return Phase{Blocks: b.blocks, Run: func(_, block int) { b.copy(dst, src, block) }}
}

func (b *Box) copy(dst, src []float32, block int) {
	rows := b.outer.N
	for _, s := range b.lines {
		rows *= s.N
	}
	for lo, hi := block*b.each, min((block+1)*b.each, rows); lo < hi; {
		line, first := lo/b.outer.N, lo%b.outer.N
		n := min(b.outer.N-first, hi-lo)
		from, to := b.from+first*b.outer.Src, b.to+first*b.outer.Dst
		x, y := Places(b.lines, line)
		b.matrix(dst, src, from+x, to+y, n)
		lo += n
	}
}

// matrix copies n rows of the inner side.
func (b *Box) matrix(dst, src []float32, from, to, n int) {
	in := b.inner
	switch {
	case in.Src == 1 && in.Dst == 1:
		for i := range n {
			copy(dst[to+i*b.outer.Dst:][:in.N], src[from+i*b.outer.Src:])
		}
	case in.Src == 0 && in.Dst == 1:
		for i := range n {
			v := src[from+i*b.outer.Src]
			row := dst[to+i*b.outer.Dst:][:in.N]
			for j := range row {
				row[j] = v
			}
		}
	default:
		const tile = 16 // cache lines of both sides stay cached
		for i := 0; i < n; i += tile {
			for j := 0; j < in.N; j += tile {
				for k := j; k < min(j+tile, in.N); k++ {
					f, t := from+i*b.outer.Src+k*in.Src, to+i*b.outer.Dst+k*in.Dst
					for range min(tile, n-i) {
						dst[t] = src[f]
						f, t = f+b.outer.Src, t+b.outer.Dst
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
