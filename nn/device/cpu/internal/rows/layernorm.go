package rows

import (
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

func layerNorm(s work.Step, o op.LayerNorm) (*work.Lowering, error) {
	_, width, _ := matrix(s.OutType())
	return byRows(s, s.In[:1], func(st *work.Storage, k *vec.Set) func(worker, lo, hi, count int) {
		x, scale, bias, dst := st.Pieces(s.In[0]), st.Floats(s.In[1]), st.Floats(s.In[2]), st.Pieces(s.Out)
		return func(worker, lo, hi, count int) {
			k.LayerNorm(dst.To(worker, lo, hi), x.Read(worker, lo, hi), scale, bias, o.Eps, width, count)
			dst.Done(worker, lo, hi)
		}
	})
}

// layerNormGrad computes the gradients of layer normalisation with respect to its input, its scale, or both.
type layerNormGrad struct {
	eps            float64
	x, scale, dy   int // values; scale is -1 if dInput is
	dInput, dScale int // results, or -1
}

// layerNormGrads matches one of the gradients, or both.
func layerNormGrads(workers int) work.Pattern {
	return func(f *lower.Flow, first int) []work.Match {
		s := f.Step(first)
		one, ok := newLayerNormGrad(s)
		if !ok {
			return nil
		}
		match := func(g layerNormGrad, steps ...int) work.Match {
			return work.Match{Steps: steps, Lower: func() (*work.Lowering, error) { return g.lower(s, workers) }}
		}
		list := []work.Match{match(one, first)}
		for _, i := range f.ReadersOf(one.x) {
			other, ok := newLayerNormGrad(f.Step(i))
			if ok && i > first && other.x == one.x && other.dy == one.dy && other.eps == one.eps &&
				(other.dInput < 0) == (one.dScale < 0) {
				both := layerNormGrad{one.eps, one.x, max(one.scale, other.scale), one.dy, max(one.dInput, other.dInput),
					max(one.dScale, other.dScale)}
				return append([]work.Match{match(both, first, i)}, list...)
			}
		}
		return list
	}
}

func newLayerNormGrad(s work.Step) (g layerNormGrad, ok bool) {
	switch o := s.Op.(type) {
	case op.LayerNormGradInput:
		return layerNormGrad{o.Eps, s.In[0], s.In[1], s.In[2], s.Out, -1}, true
	case op.LayerNormGradScale:
		return layerNormGrad{o.Eps, s.In[0], -1, s.In[1], -1, s.Out}, true
	}
	return g, false
}

// lower sums over rows: first within parts of the rows, then over the parts in order. The number of parts does not
// depend on the workers.
func (g layerNormGrad) lower(s work.Step, workers int) (*work.Lowering, error) {
	if err := work.IsData(s, g.x, g.dy, g.scale); err != nil {
		return nil, err
	}
	t := s.Values[g.x].Type
	rows, width, few := matrix(t) // few: rows at a time
	const most = 64
	each := max(few, work.Ceil(rows, most))
	parts := work.Ceil(rows, each)
	l := &work.Lowering{}
	var r work.Room
	var all work.Part
	stride := vec.Padded(width)
	if g.dInput >= 0 {
		l.Results = append(l.Results, lower.Result{Value: g.dInput, Layout: work.Layout(t, device.Data), Bytes: t.Bytes(),
			Over: []int{g.x, g.dy}})
	}
	if g.dScale >= 0 {
		t := s.Values[g.dScale].Type
		l.Results = append(l.Results, lower.Result{Value: g.dScale, Layout: work.Layout(t, device.Data), Bytes: t.Bytes()})
		all = r.Doubles(parts * stride)
	}
	l.Workspace = r.Bytes
	l.Kernel.Take(few*width, g.x, g.dy, g.dInput)
	l.Kernel.Bind = func(st *work.Storage) []work.Phase {
		k, x, dy, dInput := vec.For(st.Level), st.Pieces(g.x), st.Pieces(g.dy), st.Pieces(g.dInput)
		var scale, dScale []float32
		var sums []float64
		if g.dInput >= 0 {
			scale = st.Floats(g.scale)
		}
		if g.dScale >= 0 {
			dScale, sums = st.Floats(g.dScale), st.Scratch64(all)
		}
		phases := []work.Phase{{Blocks: parts, Run: func(worker, part int) {
			var sum []float64
			if sums != nil {
				sum = sums[part*stride:][:stride]
				clear(sum)
			}
			end := min((part+1)*each, rows)
			for from := part * each; from < end; from += few {
				n := min(few, end-from)
				lo, hi := from*width, (from+n)*width
				var dst []float32
				if dInput != nil {
					dst = dInput.To(worker, lo, hi)
				}
				k.LayerNormGrad(dst, x.Read(worker, lo, hi), dy.Read(worker, lo, hi), scale, sum, g.eps, width, n)
				if dInput != nil {
					dInput.Done(worker, lo, hi)
				}
			}
		}}}
		if sums == nil {
			return phases
		}
		columns := max(1, work.Ceil(width, workers))
		return append(phases, work.Phase{Blocks: work.Ceil(width, columns), Run: func(_, block int) {
			for j := block * columns; j < min((block+1)*columns, width); j++ {
				sum := 0.0
				for p := range parts {
					sum += sums[p*stride+j]
				}
				dScale[j] = float32(sum)
			}
		}})
	}
	return l, nil
}
