package average

import (
	"errors"
	"time"

	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/hook"
)

// running is the mean of vectors over the steps of a segment.
type running struct {
	v device.Vector
	n int // steps
}

// add takes a·x into the mean.
func (m *running) add(a float64, x device.Vector) error {
	m.n++
	switch {
	case a == 1 && m.n == 1:
		return m.v.Copy(x)
	case a == 1:
		return m.v.Lerp(1/float64(m.n), x)
	}
	var err error
	if m.n == 1 {
		err = m.v.Fill(0)
	} else {
		err = m.v.AddScaled(-1/float64(m.n), m.v)
	}
	if err != nil {
		return err
	}
	return m.v.AddScaled(a/float64(m.n), x)
}

// Late implements hook.LateHook: what is taken at the ends of epochs alone leaves steps alone.
func (h *RNA) Late() bool { return h.mean.v == nil && h.descent.v == nil && h.cfg.PerEpoch <= 1 }

// AfterStep takes the step into the means of the segment, and a snapshot where one ends within an epoch.
func (h *RNA) AfterStep(s *hook.State) error {
	if s.Epoch < h.cfg.Start {
		return nil
	}
	defer since(time.Now(), &s.Seconds.RNA)
	if h.mean.v != nil {
		if err := h.mean.add(1, s.Net.Params); err != nil {
			return err
		}
	}
	if h.descent.v != nil {
		grad, scale, err := s.Gradient()
		if err == nil && grad != nil {
			err = h.descent.add(-scale, grad)
		}
		if err != nil {
			return err
		}
	}
	k, before := h.cfg.PerEpoch, s.Batch-s.StepBatches
	if s.Batch == s.Batches || s.Batch*k/s.Batches == before*k/s.Batches {
		return nil
	}
	err := h.push(s)
	if bad := (*rna.NonFiniteError)(nil); errors.As(err, &bad) {
		return nil // the loop says so, and why
	}
	return err
}

// snapshot takes that of the end of an epoch, unless that was done before the run was interrupted.
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
