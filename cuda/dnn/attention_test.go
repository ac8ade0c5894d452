//go:build gpu && cgo

package dnn

import (
	"errors"
	"slices"
	"testing"

	"onlinerna/cuda/number"
)

// cuDNN has plans for the attention of a small ViT and its gradient in 16 bits; sums of blocks have no equal bits in
// each run; float32 has no plans.
func TestAttention(t *testing.T) {
	needDNN(t)
	d := newDNN(t, open(t))
	a := Attention{Sequences: 2, Tokens: 50, Heads: 3, Width: 16, Scale: .25}
	if !a.Usable() {
		t.Skip("this cuDNN is too old for attention")
	}
	const rows, part = 4 * 2 * 50 * 3, 2 * 2 * 50 * 3 * 16
	third := int64(2 * (99*3*48 + 48)) // queries in rows of three vectors
	for _, p := range []number.Precision{number.BFloat16, number.Float16} {
		for _, test := range []struct {
			g      *Graph
			places []int64
			exact  bool
		}{
			{a.Forward(p), []int64{third, third, third, part, rows}, true},
			{a.Gradient(p, true), []int64{third, third, third, part, part, rows, third, third, third, rows}, true},
			{a.Gradient(p, false), []int64{third, third, third, part, part, rows, third, third, third, rows, 2 * part}, false},
		} {
			if got := test.g.Places(); !slices.Equal(got, test.places) {
				t.Errorf("%s has tensors of %d bytes, want %d", test.g.Name, got, test.places)
			}
			x, err := d.NewPlans(test.g, Options{Precision: p, Workspace: 1 << 30})
			check(t, err)
			if !x.Made() || x.Graph().Attention() != a {
				t.Errorf("%s: %v has no plan", test.g.Name, x.Graph().Attention())
			}
			check(t, x.Close())
			x, err = d.NewPlans(test.g, Options{Precision: p, Workspace: 1 << 30, Deterministic: true})
			if errors.Is(err, ErrNoPlan) == test.exact {
				t.Errorf("%s with equal bits: %v", test.g.Name, err)
			}
			if err == nil {
				check(t, x.Close())
			}
		}
	}
	if _, err := d.NewPlans(a.Forward(number.Float32), Options{}); !errors.Is(err, ErrNoPlan) {
		t.Errorf("attention in float32: %v", err)
	}
}
