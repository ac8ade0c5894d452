package vec

import (
	"onlinerna/internal/simd"
	"onlinerna/nn/op/update"
	"onlinerna/nn/optim"
)

// Updates has a level's kernels for bodies of optimisers' passes that are faster than separate operations: see
// BenchmarkUpdates. Package update defines the coefficients and sums; sums start as zeros.
type Updates struct {
	Apply   apply
	Measure measure
}

type (
	apply   = map[string]func(w, g, a, b []float32, c *[8]float32)
	measure = map[string]func(w, g, a, b []float32, c *[8]float32, sums *[2][8]float64)
)

// bodies maps the kernels' bodies to their names. Coefficients are operands of a body, so all hyperparameters share it.
var bodies = map[update.Body]string{
	optim.SGD{}.Passes()[0].Body:               "momentum",
	optim.SGD{Nesterov: true}.Passes()[0].Body: "nesterov",
	optim.AdamW{}.Passes()[0].Body:             "adamw",
	optim.LARS{}.Passes()[0].Body:              "lars",
	optim.LAMB{}.Passes()[0].Body:              "lamb",
	optim.LAMB{}.Passes()[1].Body:              "lamb",
}

// Update returns a level's kernel for a body, or nil for none.
func Update(l simd.Level, b update.Body) func(p *update.Piece[float32], c *[8]float32, sums *update.Sums) {
	name, ok := bodies[b]
	l = l.Vectors()
	if !ok {
		return nil
	}
	if f := updates[l].Measure[name]; f != nil && b.Squares[0].Valid() {
		return func(p *update.Piece[float32], c *[8]float32, sums *update.Sums) {
			f(p.W, p.G, p.State[0], p.State[1], c, (*[2][8]float64)(sums))
		}
	}
	if f := updates[l].Apply[name]; f != nil && !b.Squares[0].Valid() {
		return func(p *update.Piece[float32], c *[8]float32, _ *update.Sums) { f(p.W, p.G, p.State[0], p.State[1], c) }
	}
	return nil
}
