package average

import (
	"context"
	"errors"
	"fmt"
	"time"

	"onlinerna/rna"
	"onlinerna/train/hook"
)

// RNA snapshots the flattened weights at the end of each segment, an epoch or a part of one, and extrapolates them: x
// are the weights at the end of a segment, y those at its start. It scores the extrapolated weights, and plain averages
// of the same snapshots, beside the iterate; in online mode they replace the iterate.
type RNA struct {
	cfg    Options
	window *rna.Window
	stats  [][]float64 // BatchNorm statistics of the newest snapshots, oldest first, to combine
	pushed int         // epoch whose last snapshot is taken

	// Means over the current segment, if the options need them: of the weights and of the negative gradients.
	mean, descent running
}

var (
	_ hook.OpeningHook = (*RNA)(nil)
	_ hook.HoldingHook = (*RNA)(nil)
	_ hook.AsyncHook   = (*RNA)(nil)
	_ hook.EpochHook   = (*RNA)(nil)
	_ hook.ShardedHook = (*RNA)(nil)
	_ hook.ClosingHook = (*RNA)(nil)
)

// NewRNA returns the hook of resolved options.
func NewRNA(o Options) *RNA { return &RNA{cfg: o} }

// Holds implements hook.HoldingHook.
func (h *RNA) Holds() hook.Holdings {
	n := h.cfg.Capacity()
	x := hook.Holdings{Weights: 1, Snapshots: n + 1} // a snapshot being saved
	switch {
	case h.cfg.Residual == Gradients: // one beside each snapshot
		x.Snapshots = 2 * n
	case h.cfg.Mode == Online: // residuals share no snapshots
		x.Snapshots = 2*n + 1
	}
	for _, yes := range []bool{h.cfg.Mode == Online, h.cfg.SegmentMeans, h.cfg.Residual == Gradients} {
		if yes {
			x.Weights++
		}
	}
	return x
}

// Open implements hook.OpeningHook.
func (h *RNA) Open(s *hook.State) error {
	if n := (s.Batches + s.StepBatches - 1) / s.StepBatches; h.cfg.PerEpoch > n {
		return fmt.Errorf("%d snapshots an epoch: it has %d steps", h.cfg.PerEpoch, n)
	}
	space, err := s.NewSpace()
	if err != nil {
		return err
	}
	if h.window, err = rna.NewWindow(space, h.cfg.Capacity()); err != nil {
		return err
	}
	if h.cfg.SegmentMeans {
		if h.mean.v, err = s.Net.NewParams(); err != nil {
			return err
		}
	}
	if h.cfg.Residual == Gradients {
		h.descent.v, err = s.Net.NewParams()
	}
	return err
}

// Window returns the window of snapshots. It belongs to the run: others may read it between the run's calls.
func (h *RNA) Window() *rna.Window { return h.window }

func (h *RNA) Name() string { return "rna" }

// AfterEpoch takes the epoch's last snapshot, and scores averages and the extrapolated point. A snapshot whose
// difference from the one before overflows is left out, and the record says so: training does not depend on it.
func (h *RNA) AfterEpoch(ctx context.Context, s *hook.State) error {
	t := time.Now()
	if err := h.snapshot(s); errors.Is(err, rna.ErrOverflow) {
		s.Record.RNA = &hook.RNARecord{Status: rna.Overflow.String()}
		return nil
	} else if err != nil {
		return err
	}
	s.Seconds.RNA += time.Since(t).Seconds()
	t = time.Now()
	if err := h.scoreRecalibrated(ctx, s); err != nil {
		return err
	}
	for _, k := range h.cfg.Averages {
		if err := h.average(ctx, s, k); err != nil {
			return err
		}
	}
	s.Seconds.RNAEval += time.Since(t).Seconds()
	due := (s.Epoch-h.cfg.Start)%h.cfg.Every == 0
	if h.window.Len() < 2 || !due && !s.LastEpoch() { // a single residual gives back its iterate
		return nil
	}
	return h.extrapolate(ctx, s, due && h.cfg.Mode == Online)
}
