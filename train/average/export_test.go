package average

import "onlinerna/train/hook"

// What tests in other packages call; they are there since a run imports this one.

func (h *RNA) SetStats(s *hook.State, c []float64) error { return h.setStats(s, c) }

func (h *RNA) Extrapolate(s *hook.State, inject bool) error { return h.extrapolate(s, inject) }

func (h *RNA) Average(s *hook.State, k int) error { return h.average(s, k) }

func (h *RNA) Point(s *hook.State) (bool, error) { return h.point(s) }

func (h *RNA) Stats() [][]float64 { return h.stats }
