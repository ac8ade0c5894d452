package average

import (
	"onlinerna/nn/device"
	"onlinerna/train/hook"
)

// running is the mean of vectors over the steps of a segment.
type running struct {
	v device.Vector
	n int // steps
}

// add adds a·x to the mean.
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

// follow adds a step to the means of the segment.
func (h *RNA) follow(s *hook.State) error {
	if h.mean.v != nil {
		w, err := s.Iterate()
		if err == nil {
			err = h.mean.add(1, w)
		}
		if err != nil {
			return err
		}
	}
	if h.descent.v == nil {
		return nil
	}
	grad, scale, err := s.Gradient()
	if err != nil || grad == nil {
		return err
	}
	return h.descent.add(-scale, grad)
}

// segment returns the snapshot of the ending segment: its last weights or their mean.
func (h *RNA) segment(s *hook.State) (device.Vector, error) {
	if h.mean.v != nil {
		return h.mean.v, nil
	}
	return s.Iterate()
}
