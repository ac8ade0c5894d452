package vec

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/op/update"
)

// All levels give the bits of the definitions.
func TestUpdatesAgree(t *testing.T) {
	for _, l := range simd.All()[1:] {
		used := map[string]bool{}
		for b, name := range bodies {
			kind := "apply "
			if b.Squares[0].Valid() {
				kind = "measure "
			}
			used[kind+name] = true
			f := Update(l, b)
			if f == nil {
				t.Errorf("%v lacks a kernel: %s%s", l, kind, name)
				continue
			}
			for n := range 150 {
				if err := updatesAgree(n, f, b); err != nil {
					t.Errorf("%v, %s, %d elements: %v", l, name, n, err)
					break
				}
			}
		}
		for _, name := range slices.Collect(maps.Keys(updates[l].Apply)) {
			if !used["apply "+name] {
				t.Errorf("%v: no optimiser uses the kernel %s", l, name)
			}
		}
	}
}

func updatesAgree(n int, f func(p *update.Piece[float32], c *[8]float32, sums *update.Sums), b update.Body) error {
	var m [2]*memory
	var sums [2]update.Sums
	for i := range m {
		m[i] = newMemory(uint64(n), n%3 == 0)
		p := update.Piece[float32]{W: m[i].floats(n), G: m[i].floats(n), State: [2][]float32{m[i].floats(n), m[i].floats(n)}}
		for j, x := range p.State[1] { // averages of squares are not negative
			p.State[1][j] = max(x, -x)
		}
		c := [8]float32{.9, .1, .99, .3, 1e-3, .7, .2, .05}
		if n%5 == 0 {
			c[4] = 0 // zeros divided by zeros, in lanes that count and in others
		}
		if i == 0 {
			f(&p, &c, &sums[i])
			continue
		}
		var v update.Values
		for j, x := range c {
			v[j] = float64(x)
		}
		update.Define[float32](b).Run(p, v, &sums[i])
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
