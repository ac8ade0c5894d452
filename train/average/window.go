package average

import (
	"context"
	"errors"
	"slices"
	"time"

	"onlinerna/rna"
	"onlinerna/train/hook"
)

// Async implements hook.AsyncHook: without means and with one snapshot per epoch, RNA ignores steps.
func (h *RNA) Async() bool { return h.mean.v == nil && h.descent.v == nil && h.cfg.PerEpoch <= 1 }

// AfterStep adds the step to the means of the segment, and takes a snapshot at the end of a segment within an epoch.
func (h *RNA) AfterStep(_ context.Context, s *hook.State) error {
	if s.Epoch < h.cfg.Start {
		return nil
	}
	defer since(time.Now(), &s.Seconds.RNA)
	if err := h.follow(s); err != nil {
		return err
	}
	k, before := h.cfg.PerEpoch, s.Batch-s.StepBatches
	if s.Batch == s.Batches || s.Batch*k/s.Batches == before*k/s.Batches {
		return nil
	}
	err := h.push(s)
	if bad := (*rna.NonFiniteError)(nil); errors.As(err, &bad) || errors.Is(err, rna.ErrOverflow) {
		return nil // the loop reports weights that are not finite, with the cause; a difference may become finite again
	}
	return err
}

// snapshot takes the snapshot at the end of an epoch, unless the run took it before it was interrupted.
func (h *RNA) snapshot(s *hook.State) error {
	if s.Epoch < h.cfg.Start || s.Epoch <= h.pushed {
		return nil
	}
	if err := h.push(s); err != nil {
		return err
	}
	h.pushed = s.Epoch
	return nil
}

// push ends a segment: its snapshot enters the window.
func (h *RNA) push(s *hook.State) error {
	point, err := h.segment(s)
	if err != nil {
		return err
	}
	if h.descent.v != nil {
		err = h.window.PushResidual(point, h.descent.v)
	} else {
		err = h.window.Push(point)
	}
	h.mean.n, h.descent.n = 0, 0
	if err != nil {
		return err
	}
	if h.cfg.Stats == Combine && s.Net.Stats != nil {
		v, err := s.Statistics()
		if err != nil {
			return err
		}
		h.keepStatistics(v)
	}
	return nil
}

// keepStatistics adds a snapshot's statistics to the window's, at most Cap of them.
func (h *RNA) keepStatistics(v []float64) {
	h.stats = append(h.stats, v)
	if len(h.stats) > h.window.Cap() {
		h.stats = slices.Delete(h.stats, 0, 1)
	}
}
