// Package schedule implements the schedules of the learning rate, and the options that describe one.
package schedule

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/train/option"
)

// Kind is a kind of schedule.
type Kind string

// The kinds of schedule.
const (
	Linear   Kind = "linear"   // from Rate to Final in equal steps, one per epoch (the paper's)
	Constant Kind = "constant" // Rate throughout
	Step     Kind = "step"     // times Gamma every StepEvery epochs
	Multi    Kind = "multi"    // times Gamma at each of Milestones
	Cosine   Kind = "cosine"   // half a cosine from Rate to Final
	Hold     Kind = "hold"     // Rate for HoldFor epochs, then linear to Final
	Poly     Kind = "poly"     // to Final at the end of the run, by a power of the remaining fraction
	// half a cosine up to Rate during warm-up, half a cosine down to Final (Smith and Topin 2019)
	OneCycle Kind = "one-cycle"
)

// Kinds lists the kinds of schedule.
var Kinds = []Kind{Linear, Constant, Step, Multi, Cosine, Hold, Poly, OneCycle}

// Unit is the interval at which a schedule changes the rate.
type Unit string

// The units.
const (
	ByEpoch Unit = "epoch" // the rate is constant within an epoch
	ByStep  Unit = "step"  // each optimiser step has its own rate
)

// Units lists the units.
var Units = []Unit{ByEpoch, ByStep}

// Schedule gives the learning rate of each epoch, or of each step. Fields that the kind does not use must be zero;
// [Schedule.Resolve] sets other zero fields to their defaults: Final a hundredth of Rate, 0 for cosine and poly, and
// for one-cycle a 10,000th of the initial learning rate; Gamma 0.1; StepEvery a third of the epochs; HoldFor five
// sixths of them; Power 1; WarmupFrom 0.01. One-cycle warms up for three tenths of the run from a 25th of Rate. By is
// ByEpoch, but ByStep for one-cycle and for a warm-up that does not end with an epoch.
type Schedule struct {
	Kind        Kind
	By          Unit     // empty: ByEpoch
	Rate        float64  // base rate
	Final       *float64 // the last rate of linear, hold and one-cycle; the limit of cosine and poly
	Gamma       float64  // factor of step and multi
	StepEvery   int      // in epochs
	Milestones  []int    // for multi: epochs, counted from 0, at which the rate falls
	HoldFor     int      // epochs at Rate, after the warm-up
	Power       float64  // for poly
	Warmup      float64  // epochs of linear increase before the schedule starts
	WarmupSteps int      // the same in steps; set at most one
	WarmupFrom  *float64 // fraction of Rate in the first epoch or step
	// WarmupInside starts the schedule with the run, as timm does, so that the warm-up replaces its first epochs.
	WarmupInside bool
	Epochs       int // of the whole run
}

// Options lists the options of a schedule. defaults describes the default learning rates in words.
func Options(defaults string) option.Table[Schedule] {
	return option.Table[Schedule]{
		{Name: "lr", Default: defaults, Field: func(s *Schedule) any { return &s.Rate },
			Check: option.Positive, Help: "learning rate at the start"},
		{Name: "schedule", Default: "by the data", Field: func(s *Schedule) any { return &s.Kind },
			Values: option.OneOf(Kinds...),
			Clears: []string{"lr-final", "lr-gamma", "lr-step", "lr-power", "lr-milestones", "lr-hold"},
			Help: "linear (the paper's, a step an epoch), constant, step, multi, cosine, poly, one-cycle, hold: " +
				"constant, then linear"},
		{Name: "lr-final", Default: "a hundredth of --lr; 0 for cosine and poly; for one-cycle a 10,000th of its first rate",
			Field: func(s *Schedule) any { return &s.Final },
			Check: option.NotNegative, Help: "learning rate at the end of linear, hold, cosine, poly and one-cycle"},
		{Name: "lr-gamma", Default: "0.1", Field: func(s *Schedule) any { return &s.Gamma }, Check: option.UpTo(1),
			Help: "factor of step and multi"},
		{Name: "lr-step", Default: "a third of --epochs", Field: func(s *Schedule) any { return &s.StepEvery },
			Check: option.Positive, Help: "epochs between the steps of step"},
		{Name: "lr-power", Default: "1", Field: func(s *Schedule) any { return &s.Power }, Check: option.Positive,
			Help: "power of poly"},
		{Name: "lr-milestones", Field: func(s *Schedule) any { return &s.Milestones }, Check: option.AtLeast(1),
			Help: "epochs of multi, counted from 0"},
		{Name: "lr-hold", Default: "five sixths of --epochs", Field: func(s *Schedule) any { return &s.HoldFor },
			Check: option.Positive, Help: "epochs at the constant rate of hold"},
		{Name: "warmup", Default: "0; 0.3 of --epochs for one-cycle",
			Field: func(s *Schedule) any { return &s.Warmup }, Check: option.NotNegative,
			Clears: []string{"warmup-from", "warmup-steps"}, Help: "epochs of linear warm-up, also a fraction of one"},
		{Name: "warmup-steps", Field: func(s *Schedule) any { return &s.WarmupSteps }, Check: option.Positive,
			Clears: []string{"warmup"}, Help: "steps of linear warm-up, instead"},
		{Name: "warmup-from", Default: "0.01; a 25th for one-cycle", Field: func(s *Schedule) any { return &s.WarmupFrom },
			Check: option.Between(0, 1), Help: "rate at which the warm-up starts, as a fraction of --lr"},
		{Name: "warmup-inside", Field: func(s *Schedule) any { return &s.WarmupInside },
			Help: "the schedule starts with the run, under the warm-up, as timm's; else behind it"},
		{Name: "schedule-by", Field: func(s *Schedule) any { return &s.By }, Values: option.OneOf(Units...),
			Default: "epoch; step for one-cycle and a warm-up that does not end with an epoch",
			Help:    "epoch: the rate is constant within an epoch; step: each step has its own"},
	}
}

// Resolve fills in zero fields for a run of that many epochs. kind and rate are the defaults for its data and its
// optimiser.
func (s *Schedule) Resolve(epochs int, kind Kind, rate float64) {
	s.Epochs = epochs
	option.Default(&s.Kind, kind)
	option.Default(&s.Rate, rate)
	if s.Final == nil && (s.Kind == Linear || s.Kind == Hold) {
		last := s.Rate / 100
		s.Final = &last
	}
	if s.Kind == OneCycle {
		if s.WarmupSteps == 0 {
			option.Default(&s.Warmup, 0.3*float64(epochs))
		}
		option.DefaultPointer(&s.WarmupFrom, 1./25)
		if s.Final == nil {
			last := s.Rate * *s.WarmupFrom / 1e4
			s.Final = &last
		}
	}
	if s.By == "" && (s.Kind == OneCycle || s.WarmupSteps > 0 || s.Warmup != math.Trunc(s.Warmup)) {
		s.By = ByStep
	}
	switch s.Kind {
	case Poly:
		option.Default(&s.Power, 1)
	case Hold:
		option.Default(&s.HoldFor, max(1, (epochs-int(math.Ceil(s.Warmup)))*5/6))
	case Step:
		option.Default(&s.Gamma, 0.1)
		option.Default(&s.StepEvery, max(1, epochs/3))
	case Multi:
		option.Default(&s.Gamma, 0.1)
	}
	if s.warms() {
		option.DefaultPointer(&s.WarmupFrom, 0.01)
	}
}

// warms reports whether there is a warm-up.
func (s Schedule) warms() bool { return s.Warmup > 0 || s.WarmupSteps > 0 }

// byStep reports whether each step has its own rate.
func (s Schedule) byStep() bool { return s.By == ByStep }

// final returns Final, or 0 if unset.
func (s Schedule) final() float64 {
	if s.Final == nil {
		return 0
	}
	return *s.Final
}

// from returns WarmupFrom, or 0 if unset.
func (s Schedule) from() float64 {
	if s.WarmupFrom == nil {
		return 0
	}
	return *s.WarmupFrom
}

// Validate returns an error for an invalid schedule.
func (s Schedule) Validate() error {
	multi := s.Kind == Multi
	factor := s.Kind == Step || multi
	switch {
	case !slices.Contains(Kinds, s.Kind):
		return fmt.Errorf("unknown schedule %q: use one of %v", s.Kind, Kinds)
	case !(s.Rate > 0) || math.IsInf(s.Rate, 0):
		return fmt.Errorf("learning rate %g: must be positive and finite", s.Rate)
	case !(s.final() >= 0 && s.final() <= s.Rate):
		return fmt.Errorf("final learning rate %g: must lie between 0 and the base rate %g", s.final(), s.Rate)
	case s.Epochs < 1:
		return fmt.Errorf("epochs %d: at least 1", s.Epochs)
	case s.By != "" && !slices.Contains(Units, s.By):
		return fmt.Errorf("schedule by %q: use one of %v", s.By, Units)
	case !(s.Warmup >= 0 && s.Warmup < float64(s.Epochs)):
		return fmt.Errorf("warm-up of %g epochs in a run of %d: --warmup must be less than --epochs, and not negative",
			s.Warmup, s.Epochs)
	case s.WarmupSteps < 0 || s.WarmupSteps > 0 && s.Warmup > 0:
		return fmt.Errorf("warm-up of %d steps and %g epochs: say one of them", s.WarmupSteps, s.Warmup)
	case !s.byStep() && (s.WarmupSteps > 0 || s.Warmup != math.Trunc(s.Warmup)):
		return fmt.Errorf("a warm-up that does not end with an epoch needs a schedule by %s", ByStep)
	case s.WarmupInside && (s.Kind == OneCycle || s.Kind == Hold):
		return fmt.Errorf("a %s schedule comes after its warm-up: it can't lie inside", s.Kind)
	case s.Kind == OneCycle && !s.warms():
		return fmt.Errorf("one-cycle schedule: needs a warm-up")
	case s.Kind == Poly && !(s.Power > 0 && !math.IsInf(s.Power, 0)):
		return fmt.Errorf("poly schedule: power %g must be positive", s.Power)
	case !(s.from() >= 0 && s.from() <= 1):
		return fmt.Errorf("warm-up from %g of the rate: must lie between 0 and 1", s.from())
	case s.Kind == Step && s.StepEvery < 1:
		return fmt.Errorf("step schedule: every %d epochs", s.StepEvery)
	case factor && !(s.Gamma > 0 && s.Gamma <= 1):
		return fmt.Errorf("%s schedule: gamma %g must lie in (0, 1]", s.Kind, s.Gamma)
	case multi && (len(s.Milestones) == 0 || s.Milestones[0] < 1 || !slices.IsSorted(s.Milestones)):
		return fmt.Errorf("multi schedule: milestones %v must be epochs from 1 on, in order", s.Milestones)
	case s.Kind == Hold && (s.HoldFor < 0 || float64(s.HoldFor) > float64(s.Epochs)-s.Warmup):
		return fmt.Errorf("hold for %d epochs: the run has %g after the warm-up", s.HoldFor, float64(s.Epochs)-s.Warmup)
	}
	for _, f := range []struct {
		name      string
		set, used bool
	}{
		{"a final rate", s.Final != nil, slices.Contains([]Kind{Linear, Cosine, Hold, Poly, OneCycle}, s.Kind)},
		{"a power", s.Power != 0, s.Kind == Poly},
		{"a factor gamma", s.Gamma != 0, factor},
		{"a number of epochs between steps", s.StepEvery != 0, s.Kind == Step},
		{"milestones", len(s.Milestones) != 0, multi},
		{"a number of epochs to hold", s.HoldFor != 0, s.Kind == Hold},
		{"a fraction to warm up from", s.WarmupFrom != nil, s.warms()},
	} {
		if f.set && !f.used {
			return fmt.Errorf("%s has no meaning for a %s schedule with %g epochs of warm-up", f.name, s.Kind, s.Warmup)
		}
	}
	return nil
}

// At returns the learning rate during epoch e, counted from 0, of a schedule by epoch. For a schedule by step it is the
// rate at the beginning of the epoch, as if epochs had one step.
func (s Schedule) At(e int) float64 { return s.AtStep(e, 1) }

// AtStep returns the learning rate of an optimiser step, counted from 0 through the run, if an epoch has perEpoch
// steps.
func (s Schedule) AtStep(step, perEpoch int) float64 {
	// Epochs and steps are counted in the schedule's unit; one is the length of an epoch in that unit.
	i, one := float64(step/perEpoch), 1.
	if s.byStep() {
		i, one = float64(step), float64(perEpoch)
	}
	n, warmup := float64(s.Epochs)*one, s.warmup(one)
	if s.Kind == OneCycle {
		first := s.Rate * s.from()
		if i < warmup-1 {
			return halfCosine(first, s.Rate, i/(warmup-1))
		}
		if n <= warmup { // no time left to decay
			return s.Rate
		}
		return halfCosine(s.Rate, s.final(), min(1, (i-warmup+1)/(n-warmup)))
	}
	if i < warmup {
		return s.Rate * (s.from() + (1-s.from())*i/warmup)
	}
	if s.WarmupInside {
		warmup = 0
	}
	i -= warmup
	n -= warmup
	switch s.Kind {
	case Linear:
		return ramp(s.Rate, s.final(), i, n-1)
	case Step:
		return s.Rate * math.Pow(s.Gamma, math.Floor(i/(float64(s.StepEvery)*one)))
	case Multi:
		k := 0
		for _, m := range s.Milestones {
			if i >= float64(m)*one-warmup {
				k++
			}
		}
		return s.Rate * math.Pow(s.Gamma, float64(k))
	case Cosine:
		return halfCosine(s.Rate, s.final(), i/n)
	case Poly:
		return s.final() + (s.Rate-s.final())*math.Pow(1-i/n, s.Power)
	case Hold:
		hold := float64(s.HoldFor) * one
		return ramp(s.Rate, s.final(), i-hold+1, n-hold)
	}
	return s.Rate
}

// warmup returns the length of the warm-up in the schedule's unit, where an epoch has length one.
func (s Schedule) warmup(one float64) float64 {
	if s.WarmupSteps > 0 {
		return float64(s.WarmupSteps)
	}
	return s.Warmup * one
}

// Warming reports whether the rate of a step, counted as in AtStep, belongs to the warm-up.
func (s Schedule) Warming(step, perEpoch int) bool {
	if s.byStep() {
		return float64(step) < s.warmup(float64(perEpoch))
	}
	return float64(step/perEpoch) < s.Warmup
}

// halfCosine goes from a at 0 to b at 1.
func halfCosine(a, b, x float64) float64 { return b + (a-b)/2*(1+math.Cos(math.Pi*x)) }

// String describes the schedule in a few words.
func (s Schedule) String() string {
	var t string
	switch s.Kind {
	case Linear:
		t = fmt.Sprintf("%.6g falling linearly to %.6g", s.Rate, s.final())
	case Constant:
		t = fmt.Sprintf("%.6g", s.Rate)
	case Step:
		t = fmt.Sprintf("%.6g times %g every %d epochs", s.Rate, s.Gamma, s.StepEvery)
	case Multi:
		t = fmt.Sprintf("%.6g times %g at epochs %v", s.Rate, s.Gamma, s.Milestones)
	case Cosine:
		t = fmt.Sprintf("%.6g falling to %.6g by half a cosine", s.Rate, s.final())
	case Hold:
		t = fmt.Sprintf("%.6g to epoch %.6g, then falling linearly to %.6g", s.Rate, s.Warmup+float64(s.HoldFor), s.final())
	case Poly:
		t = fmt.Sprintf("%.6g falling to %.6g by a power of %g", s.Rate, s.final(), s.Power)
	case OneCycle:
		t = fmt.Sprintf("one cycle from %.4g up to %.6g and down to %.3g", s.Rate*s.from(), s.Rate, s.final())
	}
	if s.byStep() {
		t += " by step"
	}
	switch {
	case s.WarmupSteps > 0:
		t += fmt.Sprintf(", warm-up of %d steps", s.WarmupSteps)
	case s.Warmup > 0:
		t += fmt.Sprintf(", warm-up to epoch %.6g", s.Warmup)
	}
	return t
}

// PhaseEnds lists the last epoch, counted from 1, of each phase of the run: the ends of constant rates, and the end of
// the run.
func (s Schedule) PhaseEnds() []int {
	var ends []int
	switch s.Kind {
	case Hold:
		ends = append(ends, int(s.Warmup)+s.HoldFor)
	case Multi:
		ends = append(ends, s.Milestones...)
	case Step:
		first := int(s.Warmup)
		if s.WarmupInside {
			first = 0
		}
		for m := first + s.StepEvery; m < s.Epochs; m += s.StepEvery {
			ends = append(ends, m)
		}
	}
	ends = slices.DeleteFunc(ends, func(e int) bool { return e <= 0 || e >= s.Epochs })
	return slices.Compact(append(ends, s.Epochs))
}

// ramp goes from a at 0 to b at n in equal steps, and is constant beyond either end.
func ramp(a, b, i, n float64) float64 {
	switch {
	case i <= 0:
		return a
	case i >= n:
		return b
	}
	return a + (b-a)*i/n
}
