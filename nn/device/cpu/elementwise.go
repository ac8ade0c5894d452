package cpu

import (
	"math"

	"onlinerna/nn/device"
)

// elementBlock is how many elements a block of an elementwise op covers.
const elementBlock = 16 << 10

// elementwise is the lowering of a step whose result depends element by element on operands of the same layout.
// body is given the elements of a block of the result and of the operands.
func (s step) elementwise(body func(dst []float32, in [][]float32)) (*lowering, string) {
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
		workers := s.pool.workers()
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
			body(dst[lo:hi], parts[worker])
		}}}
	})
	l.outputs[0].Over = s.over(operands...)
	return l, ""
}

func lowerReLU(s step) (*lowering, string) {
	return s.elementwise(func(dst []float32, in [][]float32) { relu(dst, in[0]) })
}

// relu sets dst to max(x, 0), and to NaN where x is.
func relu(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = max(v, 0)
	}
}

func lowerReLUGrad(s step) (*lowering, string) {
	return s.elementwise(func(dst []float32, in [][]float32) { reluGrad(dst, in[0], in[1]) })
}

// reluGrad sets dst to dy, and to 0 where y ≤ 0.
func reluGrad(dst, y, dy []float32) {
	dst, dy = dst[:len(y)], dy[:len(y)]
	for i, v := range y {
		dst[i] = passed(v, dy[i])
	}
}

// passed is dy, or 0 where y ≤ 0. On integers the compiler can choose without a branch.
func passed(y, dy float32) float32 {
	b := math.Float32bits(dy)
	if y <= 0 {
		b = 0
	}
	return math.Float32frombits(b)
}

func lowerAdd(s step) (*lowering, string) {
	return s.elementwise(func(dst []float32, in [][]float32) { add(dst, in[0], in[1]) })
}

func add(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = v + b[i]
	}
}

// pixelsOf is how many rows of channels an activation has, and how many channels: NHWC, or a matrix.
func pixelsOf(shape []int) (pixels, channels int) {
	pixels, channels = shape[0], shape[1]
	for _, n := range shape[2:] {
		pixels *= n
	}
	return pixels, channels
}

// image is the extents of an NHWC activation.
type image struct{ n, h, w, c int }

func imageOf(shape []int) image { return image{shape[0], shape[2], shape[3], shape[1]} }

// one is the list of phases of a kernel that is too small to be shared out.
func one(f func()) []phase { return []phase{{1, func(int, int) { f() }}} }

// dataIn is expect for operands that are all activations.
func (s step) dataIn() string {
	roles := make([]device.Role, len(s.In))
	return s.expect(roles...)
}
