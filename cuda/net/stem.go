//go:build gpu && cgo

package net

import (
	"cmp"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// stemChannels is the number of channels to which images with three or more are padded with zeros in 16 bits, because
// cuDNN's tensor-core kernels take channels by eights. With fewer, cuDNN pads a copy of all images for the gradient of
// the weights and has no kernel for Hopper that takes sums.
const stemChannels = 8

// padStem pads the channels of images that only convolutions read and of these convolutions' weights, and drops the
// added channels from the weights' gradients.
func (d *Device) padStem(p *device.Program) {
	if !d.narrow() {
		return
	}
	pad := op.Shortcut{Channels: stemChannels}
	wide := func(v int) int {
		x := p.Values[v]
		x.Type.Shape = slices.Clone(x.Type.Shape)
		x.Type.Shape[1] = stemChannels
		p.Values = append(p.Values, x)
		return len(p.Values) - 1
	}
	for i := 0; i < len(p.Steps); i++ {
		if !paddable(p, i) {
			continue
		}
		images := p.Steps[i].Out
		padded := wide(images)
		steps := append(slices.Clone(p.Steps[:i+1]), device.Step{Name: p.Steps[i].Name, Op: pad, In: []int{images},
			Out: padded})
		for _, s := range p.Steps[i+1:] {
			if len(s.In) == 0 || s.In[0] != images {
				steps = append(steps, s)
				continue
			}
			s.In = slices.Clone(s.In)
			s.In[0] = padded
			switch o := s.Op.(type) {
			case op.Conv2D:
				w := s.In[1]
				s.In[1] = wide(w)
				steps = append(steps, device.Step{Name: s.Name, Op: pad, In: []int{w}, Out: s.In[1]}, s)
			case op.Conv2DGradWeight:
				drop := device.Step{Name: s.Name, Op: op.ShortcutGrad{Shortcut: pad, Input: o.Weight}, Out: s.Out}
				s.Out = wide(s.Out)
				o.Weight = p.Values[s.Out].Type.Shape
				s.Op, drop.In = o, []int{s.Out}
				steps = append(steps, s, drop)
			}
		}
		p.Steps = steps
	}
}

// paddable reports whether step i makes images that only convolutions read.
func paddable(p *device.Program, i int) bool {
	if _, ok := p.Steps[i].Op.(op.Images); !ok {
		return false
	}
	f := lower.NewFlow(p)
	s := f.Step(i)
	if f.Kept(i) || s.OutType().Shape[1] < 3 || s.OutType().Shape[1] >= stemChannels {
		return false
	}
	for _, r := range f.Readers(i) {
		var o op.Conv2D
		switch reader := f.Step(r).Op.(type) {
		case op.Conv2D:
			o = reader
		case op.Conv2DGradWeight:
			o = reader.Conv2D
		default:
			return false
		}
		if in := f.Step(r).In; cmp.Or(o.Groups, 1) != 1 || in[0] != s.Out || in[1] == s.Out {
			return false
		}
	}
	return len(f.Readers(i)) > 0
}

// paddedImages takes Images + Shortcut that keeps all pixels: images padded with channels of zeros.
func (d *Device) paddedImages(f *lower.Flow, first int) []lower.Match[kernel] {
	s := step{d, f.Step(first)}
	o, ok := s.Op.(op.Images)
	next, padded := lower.Next[op.Shortcut](f, first)
	if !ok || !padded {
		return nil
	}
	pad := f.Step(next)
	if cmp.Or(pad.Op.(op.Shortcut).Stride, 1) != 1 {
		return nil
	}
	s.Out = pad.Out
	return []lower.Match[kernel]{{Steps: []int{first, next}, Lower: func() (*lowering, error) { return s.images(o) }}}
}
