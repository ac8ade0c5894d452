package config

import (
	"fmt"
	"math"
	"slices"
)

// ScheduleKind is a kind of schedule.
type ScheduleKind string

// The kinds of schedule.
const (
	Linear   ScheduleKind = "linear"   // from Rate to Final by equal steps, one an epoch (the paper's)
	Constant ScheduleKind = "constant" // Rate throughout
	Step     ScheduleKind = "step"     // times Gamma every StepEvery epochs
	Multi    ScheduleKind = "multi"    // times Gamma at each of Milestones
	Cosine   ScheduleKind = "cosine"   // half a cosine from Rate to Final
	Hold     ScheduleKind = "hold"     // Rate for HoldFor epochs, then linear to Final
)

// Schedules lists the kinds of schedule.
var Schedules = []ScheduleKind{Linear, Constant, Step, Multi, Cosine, Hold}

// Schedule gives the learning rate of each epoch. The rate is constant within an epoch. Fields that the kind
// does not use have to be zero. In a [Config], others that are zero get their default: Final a hundredth of Rate, or
// 0 for a cosine; Gamma 0.1; StepEvery a third of the epochs; HoldFor five sixths of them; WarmupFrom 0.01.
type Schedule struct {
	Kind       ScheduleKind `json:"kind"`
	Rate       float64      `json:"rate"`                  // base rate
	Final      *float64     `json:"final,omitempty"`       // last epoch's rate of linear and hold; cosine's floor, which it nears
	Gamma      float64      `json:"gamma,omitempty"`       // factor of step and multi
	StepEvery  int          `json:"step_every,omitempty"`  // epochs
	Milestones []int        `json:"milestones,omitempty"`  // of multi: epochs, counted from 0, that start with a lower rate
	HoldFor    int          `json:"hold_for,omitempty"`    // epochs at Rate, after the warm-up
	Warmup     int          `json:"warmup,omitempty"`      // epochs of linear increase before the schedule starts
	WarmupFrom float64      `json:"warmup_from,omitempty"` // fraction of Rate in the first epoch
	Epochs     int          `json:"epochs"`                // of the whole run
}

// resolve fills in what is left zero.
func (s *Schedule) resolve(epochs int, p preset) {
	s.Epochs = epochs
	def(&s.Kind, p.schedule)
	def(&s.Rate, p.rate)
	if s.Final == nil && (s.Kind == Linear || s.Kind == Hold) {
		last := s.Rate / 100
		s.Final = &last
	}
	switch s.Kind {
	case Hold:
		def(&s.HoldFor, max(1, (epochs-s.Warmup)*5/6))
	case Step:
		def(&s.Gamma, 0.1)
		def(&s.StepEvery, max(1, epochs/3))
	case Multi:
		def(&s.Gamma, 0.1)
	}
	if s.Warmup > 0 {
		def(&s.WarmupFrom, 0.01)
	}
}

// final is Final, or 0.
func (s Schedule) final() float64 {
	if s.Final == nil {
		return 0
	}
	return *s.Final
}

// Validate says what is wrong with the schedule.
func (s Schedule) Validate() error {
	multi := s.Kind == Multi
	factor := s.Kind == Step || multi
	switch {
	case !slices.Contains(Schedules, s.Kind):
		return fmt.Errorf("unknown schedule %q: use one of %v", s.Kind, Schedules)
	case !(s.Rate > 0) || math.IsInf(s.Rate, 0):
		return fmt.Errorf("learning rate %g: must be positive", s.Rate)
	case !(s.final() >= 0 && s.final() <= s.Rate):
		return fmt.Errorf("final learning rate %g: must lie between 0 and the base rate %g", s.final(), s.Rate)
	case s.Epochs < 1:
		return fmt.Errorf("epochs %d: at least 1", s.Epochs)
	case s.Warmup < 0 || s.Warmup >= s.Epochs:
		return fmt.Errorf("warm-up of %d epochs in a run of %d", s.Warmup, s.Epochs)
	case !(s.WarmupFrom >= 0 && s.WarmupFrom <= 1):
		return fmt.Errorf("warm-up from %g of the rate: must lie between 0 and 1", s.WarmupFrom)
	case s.Kind == Step && s.StepEvery < 1:
		return fmt.Errorf("step schedule: every %d epochs", s.StepEvery)
	case factor && !(s.Gamma > 0 && s.Gamma <= 1):
		return fmt.Errorf("%s schedule: gamma %g must lie in (0, 1]", s.Kind, s.Gamma)
	case multi && (len(s.Milestones) == 0 || s.Milestones[0] < 1 || !slices.IsSorted(s.Milestones)):
		return fmt.Errorf("multi schedule: milestones %v must be epochs from 1 on, in order", s.Milestones)
	case s.Kind == Hold && (s.HoldFor < 0 || s.HoldFor > s.Epochs-s.Warmup):
		return fmt.Errorf("hold for %d epochs: the run has %d after the warm-up", s.HoldFor, s.Epochs-s.Warmup)
	}
	for _, f := range []struct {
		name      string
		set, used bool
	}{
		{"a final rate", s.Final != nil, s.Kind == Linear || s.Kind == Cosine || s.Kind == Hold},
		{"a factor gamma", s.Gamma != 0, factor},
		{"a number of epochs between steps", s.StepEvery != 0, s.Kind == Step},
		{"milestones", len(s.Milestones) != 0, multi},
		{"a number of epochs to hold", s.HoldFor != 0, s.Kind == Hold},
		{"a fraction to warm up from", s.WarmupFrom != 0, s.Warmup > 0},
	} {
		if f.set && !f.used {
			return fmt.Errorf("%s has no meaning for a %s schedule with %d epochs of warm-up", f.name, s.Kind, s.Warmup)
		}
	}
	return nil
}

// At is the learning rate during epoch e, counted from 0.
func (s Schedule) At(e int) float64 {
	if e < s.Warmup {
		f := s.WarmupFrom + (1-s.WarmupFrom)*float64(e)/float64(s.Warmup)
		return s.Rate * f
	}
	e -= s.Warmup
	n := s.Epochs - s.Warmup
	switch s.Kind {
	case Linear:
		return ramp(s.Rate, s.final(), e, n-1)
	case Step:
		return s.Rate * math.Pow(s.Gamma, float64(e/s.StepEvery))
	case Multi:
		k := 0
		for _, m := range s.Milestones {
			if e >= m-s.Warmup {
				k++
			}
		}
		return s.Rate * math.Pow(s.Gamma, float64(k))
	case Cosine:
		return s.final() + (s.Rate-s.final())/2*(1+math.Cos(math.Pi*float64(e)/float64(n)))
	case Hold:
		return ramp(s.Rate, s.final(), e-s.HoldFor+1, n-s.HoldFor)
	}
	return s.Rate
}

// String describes the schedule in a few words.
func (s Schedule) String() string {
	var t string
	switch s.Kind {
	case Linear:
		t = fmt.Sprintf("%g falling linearly to %g", s.Rate, s.final())
	case Constant:
		t = fmt.Sprintf("%g", s.Rate)
	case Step:
		t = fmt.Sprintf("%g times %g every %d epochs", s.Rate, s.Gamma, s.StepEvery)
	case Multi:
		t = fmt.Sprintf("%g times %g at epochs %v", s.Rate, s.Gamma, s.Milestones)
	case Cosine:
		t = fmt.Sprintf("%g falling to %g by half a cosine", s.Rate, s.final())
	case Hold:
		t = fmt.Sprintf("%g to epoch %d, then falling linearly to %g", s.Rate, s.Warmup+s.HoldFor, s.final())
	}
	if s.Warmup > 0 {
		t += fmt.Sprintf(", warm-up to epoch %d", s.Warmup)
	}
	return t
}

// PhaseEnds lists the last epoch, counted from 1, of each phase of the run: where a constant rate ends,
// and the end.
func (s Schedule) PhaseEnds() []int {
	var ends []int
	switch s.Kind {
	case Hold:
		ends = append(ends, s.Warmup+s.HoldFor)
	case Multi:
		for _, m := range s.Milestones {
			ends = append(ends, m)
		}
	case Step:
		for m := s.Warmup + s.StepEvery; m < s.Epochs; m += s.StepEvery {
			ends = append(ends, m)
		}
	}
	ends = slices.DeleteFunc(ends, func(e int) bool { return e <= 0 || e >= s.Epochs })
	return slices.Compact(append(ends, s.Epochs))
}

// ramp goes from a at 0 to b at n by equal steps, and stays at either end.
func ramp(a, b float64, i, n int) float64 {
	switch {
	case i <= 0:
		return a
	case i >= n:
		return b
	}
	return a + (b-a)*float64(i)/float64(n)
}
