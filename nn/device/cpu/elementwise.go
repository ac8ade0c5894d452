package cpu

import (
	"unsafe"

	"onlinerna/internal/level"
	"onlinerna/nn/device/cpu/internal/vec"
)

// elementBlock is how many elements a block of an elementwise op covers.
const elementBlock = 16 << 10

// largeResult is the bytes of a result that caches do not keep until the next op reads it.
const largeResult = 16 << 20

// kernels are those of the level in force.
func kernels() *vec.Set { return vec.For(level.Current()) }

// kernelsTo are those that make dst, in rows of the given width, of other storage or their own.
func kernelsTo(dst []float32, width int, operands ...[]float32) *vec.Set {
	const size = 4
	if size*len(dst) < largeResult || size*width%vec.Alignment != 0 || uintptr(unsafe.Pointer(&dst[0]))%vec.Alignment != 0 {
		return kernels()
	}
	for _, x := range operands {
		if len(x) > 0 && &x[0] == &dst[0] {
			return kernels()
		}
	}
	return vec.ForLarge(level.Current())
}

// elementwise is the lowering of a step whose result depends element by element on operands of the same layout.
// body is given the elements of a block of the result and of the operands.
func (s step) elementwise(body func(k *vec.Set, dst []float32, in [][]float32)) (*lowering, string) {
	layout := s.group.Values[s.In[0]].Layout
	operands := make([]int, len(s.In))
	for i, v := range s.In {
		if s.group.Values[v].Layout != layout {
			return nil, "operands have different layouts"
		}
		operands[i] = i
	}
	l := s.result(layout, func(st *storage) []phase {
		dst := st.floats(s.Out)
		in := make([][]float32, len(s.In))
		for i, v := range s.In {
			in[i] = st.floats(v)
		}
		k := kernelsTo(dst, elementBlock, in...)
		workers := s.pool.Workers()
		parts := make([][][]float32, workers)
		for i := range parts {
			parts[i] = make([][]float32, len(in))
		}
		return []phase{{ceil(len(dst), elementBlock), func(worker, block int) {
			lo := block * elementBlock
			hi := min(lo+elementBlock, len(dst))
			for i, x := range in {
				parts[worker][i] = x[lo:hi]
			}
			body(k, dst[lo:hi], parts[worker])
		}}}
	})
	l.outputs[0].Over = s.over(operands...)
	return l, ""
}
