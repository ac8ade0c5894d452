//go:build gpu && cgo

package net

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// narrowLinear is a Linear whose result has the precision's 16 bits.
type narrowLinear struct{ op.Linear }

func (s step) narrowLinear(o narrowLinear) (*lowering, error) {
	return s.linearAs(form{narrow: s.d.narrow()}), nil
}

// narrowLinears makes linear layers store 16 bits, except those whose results lead to the loss or leave the program by
// elementwise ops alone: logits stay float32.
func (d *Device) narrowLinears(p *device.Program) {
	if !d.narrow() {
		return
	}
	f := lower.NewFlow(p)
	for i := range p.Steps {
		if o, ok := p.Steps[i].Op.(op.Linear); ok && !exposed(f, i, map[int]bool{}) {
			p.Steps[i].Op = narrowLinear{o}
		}
	}
}

// exposed reports whether the result of step i leaves the program or is read by a loss, as it is or after elementwise ops
// and moves.
func exposed(f *lower.Flow, i int, seen map[int]bool) bool {
	if seen[i] {
		return false
	}
	seen[i] = true
	if f.Kept(i) {
		return true
	}
	return slices.ContainsFunc(f.Readers(i), func(r int) bool {
		switch f.Step(r).Op.(type) {
		case op.SoftmaxCrossEntropy, op.SoftmaxCrossEntropyGrad, op.TargetLoss, op.TargetLossGrad, op.Score, op.Softmax:
			return true
		case op.Elementwise, op.View, op.Mover:
			return exposed(f, r, seen)
		}
		return false
	})
}

// widenKept makes kept values that are activations or their gradients float32: they may be gradients of parameters, as
// that of positions is, of one image.
func (d *Device) widenKept(p *device.Program) {
	if !d.narrow() {
		return
	}
	f := lower.NewFlow(p)
	for _, v := range slices.Clone(p.Keep) {
		i := f.Maker(v)
		if i < 0 || !storesNarrow(f, i) {
			continue
		}
		made := len(p.Values)
		p.Values = append(p.Values, p.Values[v])
		for j := range p.Steps {
			s := &p.Steps[j]
			if s.Out == v {
				s.Out = made
			}
			if k := slices.Index(s.In, v); k >= 0 {
				s.In = slices.Clone(s.In)
				for ; k < len(s.In); k++ {
					if s.In[k] == v {
						s.In[k] = made
					}
				}
			}
		}
		at := makes(p, made) + 1
		p.Steps = slices.Insert(p.Steps, at, device.Step{Name: p.Steps[at-1].Name, Op: op.Reduce{By: op.Sum},
			In: []int{made}, Out: v}) // along no axis: a copy in float32, without the loss scale
		f = lower.NewFlow(p)
	}
}

// storesNarrow reports whether step i, or the step whose result it views, may store 16 bits.
func storesNarrow(f *lower.Flow, i int) bool {
	s := f.Step(i)
	switch o := s.Op.(type) {
	case op.View:
		maker := f.Maker(s.In[0])
		return maker >= 0 && storesNarrow(f, maker)
	case op.Mover, op.LayerNorm, op.LayerNormGradInput, op.Softmax, op.SoftmaxGrad, op.SelfAttention, op.SelfAttentionGrad,
		op.LinearGradInput, op.Conv2DGradInput:
		return true
	case op.SumTo:
		return o.Axes(s.InType(0))&op.Samples != 0
	case op.Elementwise:
		return slices.ContainsFunc(s.In, func(v int) bool {
			maker := f.Maker(v)
			return maker >= 0 && storesNarrow(f, maker)
		})
	}
	return false
}
