package cpu

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Narrow implements device.Narrower. With BFloat16, on AMX, some rows of tokens are stored as bfloat16. A result of
// layer normalisation is, if all its readers round it anyway. A result of a product, attention or expression may also
// have expressions, layer normalisations and sums over rows as readers, as under PyTorch's autocast. Sums as x + f(x)
// stay float32, and so do values with other readers.
func (d *Device) Narrow(p *device.Program) []int {
	if !d.bfloat16 || d.tiles == nil {
		return nil
	}
	n := narrower{p, make([][]reading, len(p.Values)), make([]int, len(p.Values))}
	for v := range n.maker {
		n.maker[v] = -1
	}
	for i, s := range p.Steps {
		for operand, v := range s.In {
			n.readers[v] = append(n.readers[v], reading{i, operand})
		}
		n.maker[s.Out] = i
	}
	var list []int
	named := make([]bool, len(p.Values))
	for _, s := range p.Steps {
		switch t := p.Values[s.Out].Type; {
		case t.DType != op.Float32 || len(t.Shape) < 2 || work.Layout(t, device.Data) != work.RowMajor,
			slices.Contains(p.Keep, s.Out):
			continue
		case n.isView(s):
			named[s.Out] = named[s.In[0]]
		default:
			named[s.Out] = n.narrow(s)
		}
		if named[s.Out] {
			list = append(list, s.Out)
		}
	}
	return list
}

// narrower decides which results are stored as bfloat16.
type narrower struct {
	*device.Program
	readers [][]reading // by value
	maker   []int       // by value: the step, or -1
}

// reading is a step that reads a value as an operand.
type reading struct{ step, operand int }

// narrow reports whether the result of s, which is no view, is stored as bfloat16.
func (n *narrower) narrow(s device.Step) bool {
	lossless := false // all readers must round the result
	switch o := s.Op.(type) {
	case op.Tokens:
		return n.maker[s.In[0]] >= 0 // as the images are
	case op.Linear, op.LinearGradInput, op.SelfAttention, op.SelfAttentionGrad:
	case op.Map:
		if nodes := o.Expr.Nodes(); nodes[len(nodes)-1].Kind == expr.KindAdd {
			return false
		}
	case op.LayerNorm, op.LayerNormGradInput:
		lossless = true
	default:
		return false
	}
	return n.read(s.Out, lossless)
}

// read reports whether all that read v, perhaps through views, take bfloat16, or round v anyway.
func (n *narrower) read(v int, lossless bool) bool {
	if len(n.readers[v]) == 0 || slices.Contains(n.Keep, v) {
		return false
	}
	return !slices.ContainsFunc(n.readers[v], func(r reading) bool {
		s := n.Steps[r.step]
		if n.isView(s) {
			return !n.read(s.Out, lossless)
		}
		switch s.Op.(type) {
		case op.Linear:
			return r.operand != 0
		case op.LinearGradInput:
			return r.operand != 1
		case op.LinearGradWeight, op.Planes:
			return false
		case op.SelfAttention, op.SelfAttentionGrad, op.SelfAttentionGradBias: // a bias is added as it is
			last := len(s.In) - 1
			if _, ok := s.Op.(op.SelfAttention); ok {
				last = 0
			}
			return r.operand != 0 && r.operand != last
		case op.Map, op.ChannelSum, op.LayerNorm, op.LayerNormGradInput, op.LayerNormGradScale:
			return lossless
		}
		return true
	})
}

// isView reports whether s keeps all elements of rows in their places, as rows.
func (n *narrower) isView(s device.Step) bool {
	if _, ok := s.Op.(op.Reshape); !ok {
		return false
	}
	return work.Layout(n.Values[s.In[0]].Type, device.Data) == work.RowMajor &&
		work.Layout(n.Values[s.Out].Type, device.Data) == work.RowMajor
}
