package vec

import "onlinerna/internal/level"

// Updates are a level's kernels of the optimisers of package device, which defines them, by the names that
// [device.Passes] has. The coefficients and sums are the definitions'; sums start as zeros.
type Updates struct {
	Apply   apply
	Measure measure
}

type (
	apply   = map[string]func(w, g, a, b []float32, c *[8]float32)
	measure = map[string]func(w, g, a, b []float32, c *[8]float32, sums *[2][8]float64)
)

// UpdatesFor is the kernels of a level, none at the level of plain Go: there the definitions serve.
func UpdatesFor(l level.Level) Updates { return updates[l] }
