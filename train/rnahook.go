package train

import (
	"errors"
	"fmt"
	"time"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/rna"
)

// rnaHook snapshots the flattened weights at the end of each segment, an epoch or a part of one, and extrapolates them:
// x are the weights at the end of a segment, y those at its start. It scores the extrapolated weights, and plain averages of the
// same snapshots, beside the iterate; online it puts them in its place.
type rnaHook struct {
	run    *Run
	cfg    *RNAConfig
	window *rna.Window
	stats  [][]float64 // BatchNorm statistics of the newest snapshots, oldest first, to combine
	pushed int         // epoch whose last snapshot is taken

	// Over the segment in progress, where the config asks for them: the mean of the weights, and that
	// of the negative gradients.
	mean, descent running
}

var (
	_ LateHook    = (*rnaHook)(nil)
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
	if n := r.train.Steps() / (r.Config.Accumulate * r.Config.Ranks.Size()); h.cfg.PerEpoch > max(1, n) {
		return nil, fmt.Errorf("%d snapshots an epoch: it has %d steps", h.cfg.PerEpoch, n)
	}
	if h.cfg.SegmentMeans {
		if h.mean.v, err = r.Net.NewParams(); err != nil {
			return nil, err
		}
	}
	if h.cfg.Residual == Gradients {
		if h.descent.v, err = r.Net.NewParams(); err != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
	return h, nil
}

// Spacer is a [device.Device] that keeps RNA's snapshots in its own memory.
type Spacer interface {
	// NewSpace makes a space of vectors of dim elements.
	NewSpace(dim int) (rna.Space, error)
	// SpaceBytes is the memory that such a space takes with so many vectors.
	SpaceBytes(dim, vectors int) int64
}

// space holds snapshots in the element type and the order of the device: in its memory, or else in the host's.
func (h *rnaHook) space() (rna.Space, error) {
	if d, ok := device.As[Spacer](h.run.dev); ok {
		return d.NewSpace(h.run.Net.Params.Len())
	}
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
	if h.window.Len() < 2 || !due && !s.LastEpoch() { // one residual alone gives back its iterate
		return nil
	}
	return h.extrapolate(s, due && h.cfg.Mode == Online)
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

// average scores the uniform average of the last k snapshots.
func (h *rnaHook) average(s *State, k int) error {
	if h.window.Len() < k || !h.run.scores() {
		return nil
	}
	return h.run.aside(func() error {
		err := error(nil)
		if h.descent.v != nil { // Y c: x would be a step further
			err = h.window.Combine(s.Net.Params, uniform(k), 0)
		} else {
			err = h.window.Average(s.Net.Params, k)
		}
		if err != nil {
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
