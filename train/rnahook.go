package train

import (
	"fmt"
	"time"

	"onlinerna/rna"
)

// rnaHook snapshots the flattened weights at the end of each segment, an epoch or a part of one, and extrapolates them:
// x are the weights at the end of a segment, y those at its start. It scores the extrapolated weights, and plain averages of the
// same snapshots, beside the iterate; online it puts them in its place.
type rnaHook struct {
	cfg    *RNAConfig
	window *rna.Window
	stats  [][]float64 // BatchNorm statistics of the newest snapshots, oldest first, to combine
	pushed int         // epoch whose last snapshot is taken

	// Over the segment in progress, where the config asks for them: the mean of the weights, and that
	// of the negative gradients.
	mean, descent running
}

var (
	_ OpeningHook = (*rnaHook)(nil)
	_ HoldingHook = (*rnaHook)(nil)
	_ LateHook    = (*rnaHook)(nil)
	_ EpochHook   = (*rnaHook)(nil)
	_ SavingHook  = (*rnaHook)(nil)
	_ ClosingHook = (*rnaHook)(nil)
)

func newRNAHook(c *RNAConfig) *rnaHook { return &rnaHook{cfg: c} }

// Holds implements HoldingHook.
func (h *rnaHook) Holds() Holdings {
	x := Holdings{Weights: 1, Snapshots: h.cfg.capacity() + 1} // a snapshot on its way to a checkpoint
	for _, yes := range []bool{h.cfg.Mode == Online, h.cfg.SegmentMeans, h.cfg.Residual == Gradients} {
		if yes {
			x.Weights++
		}
	}
	return x
}

// Open implements OpeningHook.
func (h *rnaHook) Open(s *State) error {
	if n := s.Batches / s.StepBatches; h.cfg.PerEpoch > max(1, n) {
		return fmt.Errorf("%d snapshots an epoch: it has %d steps", h.cfg.PerEpoch, n)
	}
	space, err := s.NewSpace()
	if err != nil {
		return err
	}
	if h.window, err = rna.NewWindow(space, h.cfg.capacity()); err != nil {
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

func (h *rnaHook) Name() string { return "rna" }

func (h *rnaHook) AfterEpoch(s *State) error {
	t := time.Now()
	if err := h.snapshot(s); err != nil {
		return err
	}
	s.Seconds.RNA += time.Since(t).Seconds()
	t = time.Now()
	if err := h.restated(s); err != nil {
		return err
	}
	for _, k := range h.cfg.Averages {
		if err := h.average(s, k); err != nil {
			return err
		}
	}
	s.Seconds.RNAEval += time.Since(t).Seconds()
	due := (s.Epoch-h.cfg.Start)%h.cfg.Every == 0
	if h.window.Len() < 2 || !due && !s.LastEpoch() { // one residual alone gives back its iterate
		return nil
	}
	return h.extrapolate(s, due && h.cfg.Mode == Online)
}

// restated scores the iterate with statistics re-estimated as those of the combined weights are, so that
// what comes from the statistics is not taken for what comes from the weights.
func (h *rnaHook) restated(s *State) error {
	if s.Net.Stats == nil || !s.Scores() || s.Epoch < h.cfg.Start {
		return nil
	}
	return s.Aside(func() error {
		err := s.Restate()
		if err != nil {
			return err
		}
		if s.Record.SGDStats, err = s.Evaluate(); err != nil {
			return err
		}
		return s.Judge(kindSGDStats, nil)
	})
}

// average scores the uniform average of the last k snapshots.
func (h *rnaHook) average(s *State, k int) error {
	if h.window.Len() < k || !s.Scores() {
		return nil
	}
	return s.Aside(func() error {
		err := error(nil)
		if h.descent.v != nil { // Y c: x would be a step further
			err = h.window.Combine(s.Net.Params, uniform(k), 0)
		} else {
			err = h.window.Average(s.Net.Params, k)
		}
		if err != nil {
			return err
		}
		if err := h.setStats(s, uniform(k)); err != nil {
			return err
		}
		score, err := s.Evaluate()
		if err != nil {
			return err
		}
		if score != nil {
			s.Record.Averages = append(s.Record.Averages, AverageRecord{k, *score})
		}
		return s.Judge(kindAverage, nil)
	})
}
