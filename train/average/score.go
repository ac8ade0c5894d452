package average

import (
	"context"
	"time"

	"onlinerna/rna"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// scoreRecalibrated scores the recalibrated iterate, to separate the effect of the statistics from that of combining
// weights.
func (h *RNA) scoreRecalibrated(ctx context.Context, s *hook.State) error {
	if !s.Net.HasStatistics() || !s.Scores() || s.Epoch < h.cfg.Start {
		return nil
	}
	return s.Temporarily(func() error {
		err := s.Recalibrate(ctx)
		if err != nil {
			return err
		}
		if s.Record.SGDStats, err = s.Evaluate(ctx); err != nil {
			return err
		}
		return s.Judge(ctx, network.SGDStats, s.Record.SGDStats)
	})
}

// average scores the uniform average of the last k snapshots, and keeps its weights at the end of the run, also without
// images to score it by.
func (h *RNA) average(ctx context.Context, s *hook.State, k int) error {
	if h.window.Len() < k || !s.Scores() && !s.LastEpoch() {
		return nil
	}
	return s.Temporarily(func() error {
		err := error(nil)
		if h.descent.v != nil { // Y c: x would be one step further
			err = h.window.Combine(s.Net.Params, uniform(k), 0)
		} else {
			err = h.window.Average(s.Net.Params, k)
		}
		if err != nil {
			return err
		}
		if err := h.setStats(ctx, s, uniform(k)); err != nil {
			return err
		}
		score, err := s.Evaluate(ctx)
		if err != nil {
			return err
		}
		if score != nil {
			s.Record.Averages = append(s.Record.Averages, hook.AverageRecord{Epochs: k, Score: *score})
		}
		if err := s.JudgeAverage(ctx, k, score); err != nil || !s.LastEpoch() {
			return err
		}
		return s.KeepAverage(k)
	})
}

// extrapolate scores y⁺, keeps its weights and, if inject is set, makes training continue from it.
func (h *RNA) extrapolate(ctx context.Context, s *hook.State, inject bool) error {
	rec := &hook.RNARecord{}
	s.Record.RNA = rec
	var point network.Point
	defer func() { point.Free() }()
	err := s.Temporarily(func() error {
		ok, err := h.point(ctx, s)
		if err != nil || !ok {
			inject = false
			return err
		}
		defer since(time.Now(), &s.Seconds.RNAEval)
		if err := h.setStats(ctx, s, rec.C); err != nil {
			return err
		}
		if rec.Score, err = s.Evaluate(ctx); err != nil {
			return err
		}
		if ok, err = s.Net.Finite(); err != nil {
			return err
		}
		if !ok || rec.Score != nil && !rec.Score.Finite() {
			rec.Status, rec.Score, inject = "the extrapolated weights give no finite loss", nil, false
			return nil
		}
		if err := s.Judge(ctx, network.RNA, rec.Score); err != nil {
			return err
		}
		if err := s.Keep("rna", network.RNA); err != nil {
			return err
		}
		if inject = inject && rec.Choice != rna.Kept.String() && h.accepts(s.Record); !inject {
			return nil
		}
		if point, err = s.Net.NewPoint(); err != nil {
			return err
		}
		return point.Copy(s.Net.Point())
	})
	if err != nil || !inject {
		return err
	}
	return h.inject(s, point)
}

// accepts reports whether the point may replace the iterate: its held-out loss must not exceed the iterate's,
// recalibrated if the iterate was recalibrated.
func (h *RNA) accepts(rec *hook.EpochRecord) bool {
	if !h.cfg.Accept {
		return true
	}
	iterate := rec.HeldScore(network.SGDStats)
	if iterate == nil {
		iterate = rec.HeldScore(network.SGD)
	}
	ok := rec.HeldScore(network.RNA).Loss <= iterate.Loss // false for NaN
	rec.RNA.Outcome = "value rose"
	if ok {
		rec.RNA.Outcome = "accepted"
	}
	return ok
}

// inject makes training continue from the extrapolated point, which is the y of the next residual.
func (h *RNA) inject(s *hook.State, point network.Point) error {
	if err := s.Net.Point().Copy(point); err != nil {
		return err
	}
	if h.cfg.Momentum == Reset {
		if err := s.ResetMomentum(); err != nil {
			return err
		}
	}
	s.Record.RNA.Injected = true
	if h.descent.v != nil { // gradient residuals form no chain
		return nil
	}
	h.window.Break()
	return h.window.Push(s.Net.Params)
}
