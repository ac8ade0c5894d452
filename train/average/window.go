package average

import (
	"slices"

	"onlinerna/train/config"
	"onlinerna/train/hook"
)

// push ends a segment: its last weights or their mean are a snapshot.
func (h *RNA) push(s *hook.State) error {
	point := s.Net.Params
	if h.mean.v != nil {
		point = h.mean.v
	}
	var err error
	if h.descent.v != nil {
		err = h.window.PushResidual(point, h.descent.v)
	} else {
		err = h.window.Push(point)
	}
	h.mean.n, h.descent.n = 0, 0
	if err != nil {
		return err
	}
	if h.cfg.Stats == config.Combine && s.Net.Stats != nil {
		v, err := s.Statistics()
		if err != nil {
			return err
		}
		h.stats = append(h.stats, v)
		if len(h.stats) > h.window.Cap() {
			h.stats = slices.Delete(h.stats, 0, 1)
		}
	}
	return nil
}
