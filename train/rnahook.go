package train

import (
	"slices"
	"time"

	"onlinerna/nn/op"
	"onlinerna/rna"
)

// rnaHook snapshots the flattened weights at the end of each epoch and extrapolates them: x are the weights at the
// end of an epoch, y those at its start. It scores the extrapolated weights, and plain averages of the
// same snapshots, beside the iterate; online it puts them in its place.
type rnaHook struct {
	run    *Run
	cfg    *RNAConfig
	window *rna.Window
	stats  [][]float64 // BatchNorm statistics of the newest snapshots, oldest first, to combine
	pushed int         // epoch of the newest snapshot
}

var (
	_ EpochHook   = (*rnaHook)(nil)
	_ SavingHook  = (*rnaHook)(nil)
	_ ClosingHook = (*rnaHook)(nil)
)

func newRNAHook(r *Run) (*rnaHook, error) {
	h := &rnaHook{run: r, cfg: &r.Config.RNA}
	space, err := h.space()
	if err != nil {
		return nil, err
	}
	if h.window, err = rna.NewWindow(space, h.cfg.capacity()); err != nil {
		return nil, err
	}
	return h, nil
}

// space holds snapshots in host memory, in the element type and the order of the device.
func (h *rnaHook) space() (rna.Space, error) {
	if h.run.dev.DType() == op.Float64 {
		return rna.NewHost64(h.run.Net.Params.Len(), h.run.Config.Threads)
	}
	return rna.NewHost32(h.run.Net.Params.Len(), h.run.Config.Threads)
}

func (h *rnaHook) Name() string { return "rna" }

func (h *rnaHook) AfterEpoch(s *State) error {
	t := time.Now()
	if err := h.snapshot(s); err != nil {
		return err
	}
	s.Record.Seconds.RNA += time.Since(t).Seconds()
	t = time.Now()
	if err := h.restated(s); err != nil {
		return err
	}
	for _, k := range h.cfg.Averages {
		if err := h.average(s, k); err != nil {
			return err
		}
	}
	s.Record.Seconds.RNAEval += time.Since(t).Seconds()
	due := (s.Epoch-h.cfg.Start)%h.cfg.Every == 0
	if s.Epoch < h.cfg.Start+2 || !due && !s.LastEpoch() { // one residual alone gives back its iterate
		return nil
	}
	return h.extrapolate(s, due && h.cfg.Mode == Online)
}

// snapshot takes the weights of this epoch, unless that was done before the run was interrupted.
func (h *rnaHook) snapshot(s *State) error {
	if s.Epoch < h.cfg.Start || s.Epoch <= h.pushed {
		return nil
	}
	if err := h.window.Push(s.Net.Params); err != nil {
		return err
	}
	if h.cfg.Stats == Combine && s.Net.Stats != nil {
		v := make([]float64, s.Net.Stats.Len())
		if err := s.Net.Stats.ReadAt64(v, 0); err != nil {
			return err
		}
		h.stats = append(h.stats, v)
		if len(h.stats) > h.window.Cap() {
			h.stats = slices.Delete(h.stats, 0, 1)
		}
	}
	h.pushed = s.Epoch
	return nil
}

// restated scores the iterate with statistics re-estimated as those of the combined weights are, so that
// what comes from the statistics is not taken for what comes from the weights.
func (h *rnaHook) restated(s *State) error {
	if s.Net.Stats == nil || !h.run.scores() || s.Epoch < h.cfg.Start {
		return nil
	}
	return h.run.aside(func() error {
		err := h.run.reestimate()
		if err != nil {
			return err
		}
		if s.Record.SGDStats, err = h.run.Evaluate(); err != nil {
			return err
		}
		return h.run.judge(s.Record, kindSGDStats, s.Record.SGDStats)
	})
}

// average scores the uniform average of the last k iterates.
func (h *rnaHook) average(s *State, k int) error {
	if h.window.Len() < k || !h.run.scores() {
		return nil
	}
	return h.run.aside(func() error {
		if err := h.window.Average(s.Net.Params, k); err != nil {
			return err
		}
		if err := h.setStats(uniform(k)); err != nil {
			return err
		}
		score, err := h.run.Evaluate()
		if err != nil {
			return err
		}
		if score != nil {
			s.Record.Averages = append(s.Record.Averages, AverageRecord{k, *score})
		}
		return h.run.judge(s.Record, kindAverage, score)
	})
}
