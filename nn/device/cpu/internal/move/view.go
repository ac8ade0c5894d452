// Package move has the ops that only move elements: views, boxes, shuffles of channels, picked elements, shortcuts,
// crops of images.
package move

import (
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Patterns returns the patterns of this package's ops.
func Patterns() []work.Pattern {
	return []work.Pattern{
		shuffles, lower.Alone(images), lower.Alone(shortcut), lower.Alone(shortcutGrad),
		lower.Alone(view[op.Row]), lower.Alone(view[op.Flatten]), lower.Alone(view[op.Reshape]),
		lower.Alone(boxes[op.Permute]), lower.Alone(boxes[op.Slice]), lower.Alone(boxes[op.Pad]),
		lower.Alone(boxes[op.Concat]), lower.Alone(boxes[op.Expand]), lower.Alone(boxes[op.Roll]),
		lower.Alone(tokens), lower.Alone(planes), lower.Alone(taps), lower.Alone(filters),
		lower.Alone(gather), lower.Alone(gatherGrad),
	}
}

// view lowers an op whose result is a contiguous part of the operand in row-major order. If both are stored in that
// order, or both in the same other one, no phase is needed.
func view[O op.View](s work.Step, o O) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	from, to := s.InType(0).Shape, s.OutType().Shape
	offset := o.ViewOffset(s.InType(0))
	if alikeStored(from, to) {
		l := work.Data(s, func(st *work.Storage) []work.Phase {
			x, dst := st.Pieces(s.In[0]), st.Pieces(s.Out)
			if st.Err != nil {
				return nil
			}
			return converted(dst, x, offset, to.Size())
		})
		l.Kernel.Take(0, s.In[0], s.Out)
		l.Results[0].View = &lower.View{Value: s.In[0], Offset: offset * op.Float32.Size()}
		return l, nil
	}
	if image, ok := turned(from, to, offset); ok {
		return work.Data(s, func(st *work.Storage) []work.Phase {
			x, dst := st.Floats(s.In[0]), st.Floats(s.Out)
			return []work.Phase{{Blocks: to.Size() / image, Run: func(_, n int) {
				from, to := x[offset+n*image:][:image], dst[n*image:][:image]
				if plain(s.InType(0).Shape) {
					transposeImage(to, from, s.OutType().Shape[1])
				} else {
					transposeImage(to, from, image/s.InType(0).Shape[1])
				}
			}}}
		}), nil
	}
	return work.Data(s, func(st *work.Storage) []work.Phase {
		x, dst := st.Floats(s.In[0]), st.Floats(s.Out)
		at := position(from)
		width := to[len(to)-1]
		if len(to) == 4 {
			width = to[2] * to[3] * to[1]
		}
		index := position(to)
		lines := len(dst) / width
		return []work.Phase{{Blocks: lines, Run: func(_, line int) {
			for i := line * width; i < (line+1)*width; i++ {
				dst[index(i)] = x[at(offset+i)]
			}
		}}}
	}), nil
}

// Keeps reports whether all elements of a step's operand, an activation, are the result in the same places.
func Keeps(s work.Step) bool {
	switch s.Op.(type) {
	case op.Tokens, op.Planes:
		return true
	case op.Reshape:
		return alikeStored(s.InType(0).Shape, s.OutType().Shape)
	}
	return false
}

// alikeStored reports whether a view's operand and result have elements in the same order in the layout of activations.
func alikeStored(from, to op.Shape) bool { return from.Equal(to) || plain(from) && plain(to) }

// copied copies src to dst unless they are the same memory.
func copied[T any](dst, src []T) []work.Phase {
	if &src[0] == &dst[0] {
		return nil
	}
	return inBlocks(len(dst), func(lo, hi int) { copy(dst[lo:hi], src[lo:hi]) })
}

// converted copies n elements from element first on, either of which may be stored as bfloat16.
func converted(dst, src *work.Pieces, first, n int) []work.Phase {
	to, from := dst.Stored(), src.Stored()
	switch {
	case to == nil && from == nil:
		return copied(dst.All(), src.All()[first:])
	case to == nil:
		return inBlocks(n, func(lo, hi int) { src.Widened(dst.All()[lo:hi], from[first+lo:first+hi]) })
	case from == nil:
		return inBlocks(n, func(lo, hi int) { dst.Narrowed(to[lo:hi], src.All()[first+lo:first+hi]) })
	}
	return copied(to, from[first:])
}

// inBlocks is the phase that calls f for elements lo to hi of n.
func inBlocks(n int, f func(lo, hi int)) []work.Phase {
	return []work.Phase{{Blocks: work.Ceil(n, work.ElementBlock), Run: func(_, block int) {
		lo := block * work.ElementBlock
		f(lo, min(lo+work.ElementBlock, n))
	}}}
}

// turned reports whether a view turns whole images from channels-last to row-major order or back, with their size.
func turned(from, to op.Shape, offset int) (size int, ok bool) {
	shape := from
	if plain(from) {
		shape = to
	}
	if plain(from) == plain(to) {
		return 0, false
	}
	size = shape[1] * shape[2] * shape[3]
	return size, size > 0 && offset%size == 0 && to.Size()%size == 0
}

// transposeImage writes the transpose of src to dst; columns of src become rows of n elements.
func transposeImage(dst, src []float32, n int) {
	columns := len(src) / n
	for i := range n {
		for j, v := range src[i*columns : (i+1)*columns] {
			dst[j*n+i] = v
		}
	}
}

// plain reports whether a tensor in the layout of activations is in row-major order.
func plain(s op.Shape) bool {
	return len(s) != 4 || s[1] == 1 || s[2]*s[3] == 1
}

// position maps a row-major index to a place in memory, in the layout of activations.
func position(s op.Shape) func(i int) int {
	if plain(s) {
		return func(i int) int { return i }
	}
	channels, size := s[1], s[2]*s[3]
	return func(i int) int {
		n, c, p := i/(channels*size), i/size%channels, i%size
		return (n*size+p)*channels + c
	}
}
