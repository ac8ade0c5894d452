package vec

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"onlinerna/internal/level"
	"onlinerna/nn/device"
)

// optimizers name all kernels of updates.
var optimizers = []device.Optimizer{
	device.SGD{}, device.SGD{Nesterov: true}, device.AdamW{}, device.LARS{}, device.LARS{Nesterov: true}, device.LAMB{},
}

// All levels give the bits of the definitions.
func TestUpdatesAgree(t *testing.T) {
	for _, l := range level.All()[1:] {
		used := map[string]bool{}
		for _, o := range optimizers {
			want, err := device.KernelsOf[float32](o)
			if err != nil {
				t.Fatal(err)
			}
			names := o.Passes()
			apply, measure := UpdatesFor(l).Apply[names.Apply], UpdatesFor(l).Measure[names.Measure]
			used["apply "+names.Apply], used["measure "+names.Measure] = true, true
			if apply == nil || (measure == nil) != (want.Measure == nil) {
				t.Errorf("%v lacks kernels of %s: %+v", l, o.Name(), names)
				continue
			}
			for n := range 150 {
				if err := updatesAgree(n, apply, measure, want); err != nil {
					t.Errorf("%v, %s, %d elements: %v", l, o.Name(), n, err)
					break
				}
			}
		}
		for _, name := range slices.Collect(maps.Keys(UpdatesFor(l).Apply)) {
			if !used["apply "+name] {
				t.Errorf("%v: no optimiser uses the kernel %s", l, name)
			}
		}
	}
}

func updatesAgree(n int, apply func(w, g, a, b []float32, c *[8]float32),
	measure func(w, g, a, b []float32, c *[8]float32, sums *[2][8]float64), want device.Kernels[float32]) error {
	var m [2]*memory
	var sums [2][2][8]float64
	for i := range m {
		m[i] = newMemory(uint64(n), n%3 == 0)
		w, g, a, b := m[i].floats(n), m[i].floats(n), m[i].floats(n), m[i].floats(n)
		for j, x := range b { // averages of squares are not negative
			b[j] = max(x, -x)
		}
		c := [8]float32{.9, .1, .99, .3, 1e-3, .7, .2, .05}
		if n%5 == 0 {
			c[4] = 0 // zeros divided by zeros, in lanes that count and in others
		}
		p := device.Piece[float32]{W: w, G: g, State: [2][]float32{a, b}}
		if i == 0 {
			if measure != nil {
				measure(w, g, a, b, &c, &sums[i])
			}
			apply(w, g, a, b, &c)
			continue
		}
		if want.Measure != nil {
			want.Measure(p, &c, &sums[i])
		}
		want.Apply(p, &c)
	}
	for q := range 2 {
		for j, x := range sums[0][q] {
			if y := sums[1][q][j]; x != y && !(x != x && y != y) {
				return fmt.Errorf("sum %d of quantity %d is %v, not %v", j, q, x, y)
			}
		}
	}
	return m[0].compare(m[1])
}
