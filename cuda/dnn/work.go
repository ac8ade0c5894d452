//go:build gpu && cgo

package dnn

import "onlinerna/cuda/driver"

// work is the graph's work in one run: each tensor in memory read or written once, of a convolution's x only the pixels
// that its taps use.
func (g *Graph) work() driver.Work {
	w := driver.Work{Name: g.Name}
	inputs, place := g.inputs(), 0
	for i, t := range g.tensors {
		if !t.stored() {
			continue
		}
		if inputs[place] == nil {
			w.Write += t.bytes()
		} else {
			w.Read += t.bytes() - g.skipped(Tensor(i))
		}
		place++
	}
	for _, o := range g.ops {
		if o.action == opMatMul {
			product := g.tensors[o.c].dims
			w.FLOP += 2 * product.elements() * int64(g.tensors[o.a].dims[3])
			w.Product = w.Read + w.Write
		}
		if o.action != opConvolve {
			continue
		}
		x, weights, y := o.shape.elements()
		w.FLOP += 2 * y * weights / max(int64(o.shape.O), 1) // cuDNN refuses a shape without outputs
		element := Float32.bytes()                           // bytes for the convolution by itself
		for _, t := range [3]Tensor{o.a, o.b, o.c} {
			element = min(element, g.tensors[t].element.bytes())
		}
		w.Product += element*(x+weights+y) - g.skipped(o.a)
	}
	return w
}

// skipped is the bytes of a tensor that no tap of its convolution uses.
func (g *Graph) skipped(t Tensor) int64 {
	for _, o := range g.ops {
		if o.action == opConvolve && o.a == t && o.kind != GradInput {
			return g.tensors[t].element.bytes() * o.shape.skipped()
		}
	}
	return 0
}

// skipped is the number of elements of x that no tap uses.
func (s Shape) skipped() int64 {
	met := int64(s.N) * int64(s.C)
	out := s.out()
	for d, in := range [2]int{s.H, s.W} {
		taps, rows := [2]int{s.KH, s.KW}[d], make([]bool, max(in, 0))
		for i := range out[d] {
			for k := range taps {
				if at := i*s.Stride[d] - s.Pad[d] + k*s.Dilation[d]; at >= 0 && at < in {
					rows[at] = true
				}
			}
		}
		n := int64(0)
		for _, is := range rows {
			if is {
				n++
			}
		}
		met *= n
	}
	x, _, _ := s.elements()
	return x - met
}
