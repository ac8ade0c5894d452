package average

import (
	"context"

	"onlinerna/train/hook"
)

// setStats sets the statistics of the weights in the network, which were combined with coefficients c.
func (h *RNA) setStats(ctx context.Context, s *hook.State, c []float64) error {
	n := s.Net
	if n.Stats == nil {
		return nil
	}
	if h.cfg.Stats == Reestimate {
		return s.Recalibrate(ctx)
	}
	sum := make([]float64, n.Stats.Len())
	for i, v := range h.stats[len(h.stats)-len(c):] {
		for j, x := range v {
			sum[j] += c[i] * x
		}
	}
	for _, span := range n.Variances() { // coefficients can be negative, a variance cannot
		variance := sum[span.Off : span.Off+span.Len]
		for j, v := range variance {
			variance[j] = max(v, 0)
		}
	}
	return n.Stats.WriteAt64(sum, 0)
}

func uniform(k int) []float64 {
	c := make([]float64, k)
	for i := range c {
		c[i] = 1 / float64(k)
	}
	return c
}
