package devicetest

import (
	"math/rand/v2"

	"onlinerna/nn/op"
)

func normCases() []opCase {
	const eps = 1e-5
	var all []opCase
	for _, c := range []struct {
		n, c, h, w int
		x          fill
	}{
		{4, 3, 5, 5, uniform(-2, 2)},
		{8, 16, 2, 2, uniform(-2, 2)},
		{2, 5, 7, 3, uniform(-2, 2)},
		{16, 8, 1, 1, uniform(-2, 2)},
		{4, 6, 4, 4, uniform(998, 1002)}, // the mean must not cancel the variance
		{2, 17, 5, 3, uniform(-1002, -998)},
		{2, 4, 1, 1, uniform(-2, 2)},
		{1, 17, 7, 7, uniform(-2, 2)},
		{3, 33, 3, 1, uniform(-1e-3, 1e-3)},
		{2, 64, 7, 7, uniform(0, 4)},
		{5, 1, 13, 11, uniform(-2, 2)},
		{3, 48, 9, 9, uniform(-5, 1)},
		{8, 24, 21, 20, uniform(-1, 3)},
		{2, 3, 4, 4, constant(0.5)}, // no variance at all
	} {
		x := data(c.x, c.n, c.c, c.h, c.w)
		dy := data(uniform(-1, 1), x.shape...)
		near := func(r *rand.Rand, s []float64) { // statistics that may be x's
			v := make([]float64, 64)
			c.x(r, v)
			copy(s[:c.c], v)
			uniform(.5, 2)(r, s[c.c:])
		}
		stats := data(func(r *rand.Rand, s []float64) { near(r, s) }, 2, c.c)
		fixed := weight(near, 2, c.c)
		scale, bias := weight(uniform(.5, 1.5), c.c), weight(uniform(-1, 1), c.c)
		sums := data(uniform(-3, 3), 2, c.c)
		count := c.n * c.h * c.w
		all = append(all,
			opCase{op: op.BatchNormStats{}, in: []operand{x}},
			opCase{op: op.BatchNorm{Eps: eps}, in: []operand{x, stats, scale, bias}},
			opCase{op: op.BatchNorm{Eps: 1e-3, Fixed: true}, in: []operand{x, fixed, scale, bias}},
			opCase{op: op.BatchNormUpdate{Count: count}, in: []operand{fixed, stats, data(constant(.1), 1)}},
			opCase{op: op.BatchNormUpdate{Count: count}, in: []operand{fixed, stats, data(constant(1), 1)}},
			opCase{op: op.BatchNormGradSums{Eps: eps}, in: []operand{x, stats, dy}},
			opCase{op: op.BatchNormGradInput{Eps: eps}, in: []operand{x, stats, scale, sums, dy}},
		)
	}
	return all
}
