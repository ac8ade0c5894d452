package average

import (
	"context"

	"onlinerna/train/hook"
)

// Exports for tests in other packages: tests in this one cannot import a run, which imports this package.

func (h *RNA) SetStats(ctx context.Context, s *hook.State, c []float64) error {
	return h.setStats(ctx, s, c)
}

func (h *RNA) Extrapolate(ctx context.Context, s *hook.State, inject bool) error {
	return h.extrapolate(ctx, s, inject)
}

func (h *RNA) Average(ctx context.Context, s *hook.State, k int) error { return h.average(ctx, s, k) }

func (h *RNA) Point(ctx context.Context, s *hook.State) (bool, error) { return h.point(ctx, s) }

func (h *RNA) Stats() [][]float64 { return h.stats }
