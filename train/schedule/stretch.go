package schedule

import (
	"math"
	"slices"
)

// Stretched returns a valid schedule for a run of another number of epochs, at least 1: the ends of its phases keep
// their shares of the run, rounded to epochs where they are whole ones.
func (s Schedule) Stretched(epochs int) Schedule {
	by := float64(epochs) / float64(s.Epochs)
	whole := func(e int) int { return int(math.Round(float64(e) * by)) }
	s.Epochs = epochs
	if s.Warmup *= by; !s.byStep() {
		s.Warmup = min(math.Round(s.Warmup), float64(epochs-1)) // an epoch is left behind it
	}
	if s.WarmupSteps > 0 {
		s.WarmupSteps = max(1, whole(s.WarmupSteps))
	}
	if !s.warms() {
		s.WarmupFrom = nil
	}
	s.StepEvery = whole(s.StepEvery)
	if s.Kind == Step {
		s.StepEvery = max(1, s.StepEvery)
	}
	s.Milestones = slices.Clone(s.Milestones)
	for i, m := range s.Milestones {
		s.Milestones[i] = max(1, whole(m))
	}
	s.HoldFor = max(0, min(whole(s.HoldFor), int(float64(epochs)-s.Warmup)))
	return s
}
