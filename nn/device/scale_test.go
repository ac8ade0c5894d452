package device_test

import (
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/optim"
)

// TestNoScale: steps with scale 0 equal those with scale 1, also with norms.
func TestNoScale(t *testing.T) {
	for _, o := range []device.Optimizer{
		optim.SGD{Momentum: .9, Decay: .1}, optim.AdamW{Beta1: .9, Beta2: .99, Eps: 1e-8, Decay: .1},
		optim.LARS{Momentum: .9, Decay: .1, Trust: .1}, optim.LAMB{Beta1: .9, Beta2: .99, Eps: 1e-6, Decay: .1,
			ClipNorm: .5},
	} {
		for _, clip := range []float64{0, .25} {
			var got [2][]float64
			for i, scale := range []float64{0, 1} {
				p := newParams(t, o, 0, 10)
				p.step(t, device.Update{Optimizer: o, Tensors: []device.Span{{Len: 10}}, Clip: device.Clip{Norm: clip},
					Numbers: device.Numbers{Rate: .1, Scale: scale, Step: 1}})
				got[i] = read(t, p.w)
			}
			if !slices.Equal(got[0], got[1]) {
				t.Errorf("%s, clipped to %g: %v with scale 0, %v with 1", o.Name(), clip, got[0], got[1])
			}
		}
	}
}
