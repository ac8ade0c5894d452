package schedule

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/option"
)

// TestSchedulesAgainstPyTorch compares rates with those of torch.optim.lr_scheduler, stepped once an epoch.
func TestSchedulesAgainstPyTorch(t *testing.T) {
	b, err := os.ReadFile("testdata/lr.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Base      float64 `json:"base_lr"`
		Schedules map[string]struct {
			LR         []float64
			Milestones []int
			Gamma      float64
		}
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	base := golden.Base
	for name, s := range map[string]Schedule{
		"step_30_0p1":        {Kind: Step, Gamma: 0.1, StepEvery: 30, Epochs: 91},
		"multistep_30_60_80": {Kind: Multi, Gamma: 0.1, Milestones: []int{30, 60, 80}, Epochs: 91},
		"multistep_repeat": {Kind: Multi, Gamma: 0.5, Milestones: golden.Schedules["multistep_repeat"].Milestones,
			Epochs: 91},
		"cosine_90":        {Kind: Cosine, Epochs: 90},
		"cosine_90_min":    {Kind: Cosine, Final: ptr(0.001), Epochs: 90},
		"linear_5":         {Kind: Constant, Warmup: 5, WarmupFrom: ptr(0.01), Epochs: 91},
		"warmup5_cosine85": {Kind: Cosine, Warmup: 5, WarmupFrom: ptr(0.01), Epochs: 90},
	} {
		s.Rate = base
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := golden.Schedules[name].LR
		if len(want) < s.Epochs {
			t.Fatalf("%s: %d golden rates", name, len(want))
		}
		for e := range s.Epochs {
			if got := s.At(e); math.Abs(got-want[e]) > 1e-15 {
				t.Errorf("%s: epoch %d: rate %.17g, PyTorch's is %.17g", name, e, got, want[e])
				break
			}
		}
	}
}

func TestLinearSchedule(t *testing.T) {
	s := Schedule{Kind: Linear, Rate: 0.1, Final: ptr(0.001), Epochs: 90} // the paper's
	for e := range 90 {
		if got, want := s.At(e), 0.1-0.099*float64(e)/89; math.Abs(got-want) > 1e-16 {
			t.Errorf("epoch %d: rate %g, want %g", e, got, want)
		}
	}
	if s.At(0) != 0.1 || s.At(89) != 0.001 {
		t.Errorf("from %g to %g", s.At(0), s.At(89))
	}
	s.Epochs = 1
	if s.At(0) != 0.1 {
		t.Errorf("a run of one epoch has rate %g", s.At(0))
	}
}

func TestHoldSchedule(t *testing.T) {
	s := Schedule{Kind: Hold, Rate: 1, Final: ptr(0.2), HoldFor: 3, Warmup: 1, WarmupFrom: ptr(0.5), Epochs: 8}
	want := []float64{0.5, 1, 1, 1, 0.8, 0.6, 0.4, 0.2}
	for e, w := range want {
		if math.Abs(s.At(e)-w) > 1e-15 {
			t.Errorf("epoch %d: rate %g, want %g", e, s.At(e), w)
		}
	}
}

func TestScheduleValidate(t *testing.T) {
	for _, c := range []struct {
		message string
		s       Schedule
	}{
		{"unknown schedule", Schedule{Kind: "linea", Rate: 1, Epochs: 1}},
		{"learning rate", Schedule{Kind: Constant, Epochs: 1}},
		{"learning rate", Schedule{Kind: Constant, Rate: -1, Epochs: 1}},
		{"learning rate", Schedule{Kind: Constant, Rate: math.NaN(), Epochs: 1}},
		{"learning rate", Schedule{Kind: Constant, Rate: math.Inf(1), Epochs: 1}},
		{"final learning rate", Schedule{Kind: Linear, Rate: 1, Final: ptr(2), Epochs: 1}},
		{"final learning rate", Schedule{Kind: Linear, Rate: 1, Final: ptr(-1), Epochs: 1}},
		{"final learning rate", Schedule{Kind: Linear, Rate: 1, Final: ptr(math.NaN()), Epochs: 1}},
		{"epochs 0", Schedule{Kind: Constant, Rate: 1}},
		{"warm-up of 3 epochs", Schedule{Kind: Constant, Rate: 1, Epochs: 3, Warmup: 3}},
		{"warm-up of -1 epochs", Schedule{Kind: Constant, Rate: 1, Epochs: 3, Warmup: -1}},
		{"warm-up from", Schedule{Kind: Constant, Rate: 1, Epochs: 3, Warmup: 1, WarmupFrom: ptr(2)}},
		{"warm-up from", Schedule{Kind: Constant, Rate: 1, Epochs: 3, Warmup: 1, WarmupFrom: ptr(math.NaN())}},
		{"every 0 epochs", Schedule{Kind: Step, Rate: 1, Epochs: 3, Gamma: 0.1}},
		{"gamma", Schedule{Kind: Step, Rate: 1, Epochs: 3, StepEvery: 1, Gamma: 2}},
		{"gamma", Schedule{Kind: Multi, Rate: 1, Epochs: 3, Milestones: []int{1}}},
		{"milestones []", Schedule{Kind: Multi, Rate: 1, Epochs: 3, Gamma: 0.1}},
		{"milestones [2 1]", Schedule{Kind: Multi, Rate: 1, Epochs: 3, Gamma: 0.1, Milestones: []int{2, 1}}},
		{"milestones [0 1]", Schedule{Kind: Multi, Rate: 1, Epochs: 3, Gamma: 0.1, Milestones: []int{0, 1}}},
		{"hold for 3 epochs", Schedule{Kind: Hold, Rate: 1, Epochs: 3, HoldFor: 3, Warmup: 1}},
		{"a final rate has no meaning", Schedule{Kind: Constant, Rate: 1, Epochs: 3, Final: ptr(0.1)}},
		{"gamma has no meaning", Schedule{Kind: Cosine, Rate: 1, Epochs: 3, Gamma: 0.1}},
		{"steps has no meaning", Schedule{Kind: Multi, Rate: 1, Epochs: 3, Gamma: 0.1, Milestones: []int{1}, StepEvery: 1}},
		{"milestones has no meaning", Schedule{Kind: Step, Rate: 1, Epochs: 3, Gamma: 0.1, Milestones: []int{1},
			StepEvery: 1}},
		{"by \"week\"", Schedule{Kind: Constant, Rate: 1, Epochs: 3, By: "week"}},
		{"say one of them", Schedule{Kind: Constant, Rate: 1, Epochs: 3, By: ByStep, Warmup: 1, WarmupSteps: 3}},
		{"needs a schedule by step", Schedule{Kind: Constant, Rate: 1, Epochs: 3, Warmup: 0.5}},
		{"power 0 must be", Schedule{Kind: Poly, Rate: 1, Epochs: 3}},
		{"a power has no meaning", Schedule{Kind: Cosine, Rate: 1, Epochs: 3, Power: 2}},
		{"hold has no meaning", Schedule{Kind: Linear, Rate: 1, Epochs: 3, HoldFor: 1}},
		{"warm up from has no meaning", Schedule{Kind: Linear, Rate: 1, Epochs: 3, WarmupFrom: ptr(0.1)}},
	} {
		if err := c.s.Validate(); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%+v: error %v, want one about %q", c.s, err, c.message)
		}
	}
}

func TestPhaseEnds(t *testing.T) {
	for _, c := range []struct {
		s    Schedule
		want []int
	}{
		{Schedule{Kind: Constant, Epochs: 5}, []int{5}},
		{Schedule{Kind: Linear, Epochs: 5}, []int{5}},
		{Schedule{Kind: Cosine, Epochs: 5, Warmup: 2}, []int{5}},
		{Schedule{Kind: Hold, Epochs: 25, HoldFor: 15}, []int{15, 25}},
		{Schedule{Kind: Hold, Epochs: 25, HoldFor: 15, Warmup: 2}, []int{17, 25}},
		{Schedule{Kind: Hold, Epochs: 5, HoldFor: 5}, []int{5}},
		{Schedule{Kind: Step, Epochs: 90, StepEvery: 30}, []int{30, 60, 90}},
		{Schedule{Kind: Step, Epochs: 91, StepEvery: 30}, []int{30, 60, 90, 91}},
		{Schedule{Kind: Multi, Epochs: 90, Milestones: []int{30, 30, 60, 120}}, []int{30, 60, 90}},
	} {
		got := c.s.PhaseEnds()
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: phases end at %v, want %v", c.s, got, c.want)
		}
		c.s.Rate, c.s.Gamma = 1, 0.1
		for _, e := range got[:len(got)-1] {
			if c.s.At(e-1) == c.s.At(e) {
				t.Errorf("%+v: the rate does not change after epoch %d", c.s, e)
			}
		}
	}
}

// TestSchedulesByStep compares rates with those of torch.optim.lr_scheduler, stepped once a step: see
// testdata/schedules.py.
func TestSchedulesByStep(t *testing.T) {
	b, err := os.ReadFile("testdata/schedules.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		PerEpoch int `json:"per_epoch"`
		Epochs   int
		Base     float64
		Rates    map[string][]float64
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	n := float64(golden.PerEpoch * golden.Epochs)
	for name, s := range map[string]Schedule{
		"cosine":                 {Kind: Cosine},
		"cosine_floor":           {Kind: Cosine, Final: ptr(0.01)},
		"warmup_2_epochs_cosine": {Kind: Cosine, Warmup: 2, WarmupFrom: ptr(0.01)},
		"warmup_10_steps_cosine": {Kind: Cosine, WarmupSteps: 10, WarmupFrom: ptr(0.1)},
		"warmup_10_steps_poly2":  {Kind: Poly, Power: 2, Warmup: 10 / 7., WarmupFrom: ptr(0.1)},
		"poly2":                  {Kind: Poly, Power: 2},
		"poly1":                  {Kind: Poly},
		"linear":                 {Kind: Linear, Final: ptr(0.1)},
		"one_cycle":              {Kind: OneCycle},
		"one_cycle_10":           {Kind: OneCycle, WarmupSteps: 10, WarmupFrom: ptr(0.1), Final: ptr(0.4 / 1000)},
		"step_2_epochs":          {Kind: Step, Gamma: 0.1, StepEvery: 2},
		"multi":                  {Kind: Multi, Gamma: 0.5, Milestones: []int{1, 3}},
	} {
		s.Rate, s.By = golden.Base, ByStep
		s.Resolve(golden.Epochs, "", 0)
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := golden.Rates[name]
		if len(want) != int(n) {
			t.Fatalf("%s: %d golden rates", name, len(want))
		}
		for i, w := range want {
			if got := s.AtStep(i, golden.PerEpoch); math.Abs(got-w) > 1e-14 {
				t.Errorf("%s: step %d: rate %.17g, PyTorch's is %.17g", name, i, got, w)
				break
			}
		}
	}
}

// TestScheduleByEpochIsConstantInIt checks the rates of the steps within epochs.
func TestScheduleByEpochIsConstantInIt(t *testing.T) {
	s := Schedule{Kind: Cosine, Rate: 1, Warmup: 2, WarmupFrom: ptr(0.1), Epochs: 8}
	for step := range 8 * 5 {
		if got, want := s.AtStep(step, 5), s.At(step/5); got != want {
			t.Errorf("step %d has rate %g, its epoch %g", step, got, want)
		}
	}
}

// TestWarmupInside compares with timm's CosineLRScheduler(t_initial=10, lr_min=0.01, warmup_t=2, warmup_lr_init=0.1),
// rate 1.
func TestWarmupInside(t *testing.T) {
	s := Schedule{Kind: Cosine, Rate: 1, Final: ptr(0.01), Warmup: 2, WarmupFrom: ptr(0.1), WarmupInside: true, Epochs: 10}
	for e, want := range []float64{0.1, 0.55, 0.905463412215599, 0.7959536998847742, 0.657963412215599, 0.505} {
		if got := s.At(e); math.Abs(got-want) > 1e-14 {
			t.Errorf("epoch %d: rate %.17g, timm's is %.17g", e, got, want)
		}
	}
}

// TestOneCycleOfWarmup: a run that consists of warm-up only ends at the peak rate.
func TestOneCycleOfWarmup(t *testing.T) {
	s := Schedule{Kind: OneCycle, Rate: .1, Epochs: 1, WarmupSteps: 2}
	s.Resolve(1, "", 0)
	for step, want := range []float64{s.Rate * s.from(), .1} {
		if got := s.AtStep(step, 2); math.IsNaN(got) || math.Abs(got-want) > 1e-12 {
			t.Errorf("step %d: %g, want %g", step, got, want)
		}
	}
}

// TestWords resolves schedules as users choose them, and describes them in words.
func TestWords(t *testing.T) {
	for _, c := range []struct{ options, want string }{
		{"", "0.1 to epoch 10, then falling linearly to 0.001"},
		{"schedule linear", "0.1 falling linearly to 0.001"},
		{"schedule constant lr 0.5", "0.5"},
		{"schedule step", "0.1 times 0.1 every 4 epochs"},
		{"schedule multi lr-milestones 3,6 lr-gamma 0.5", "0.1 times 0.5 at epochs [3 6]"},
		{"schedule cosine warmup 2", "0.1 falling to 0 by half a cosine, warm-up to epoch 2"},
		{"schedule cosine warmup-steps 50", "0.1 falling to 0 by half a cosine by step, warm-up of 50 steps"},
		{"schedule poly lr-power 2", "0.1 falling to 0 by a power of 2"},
		{"schedule one-cycle lr 1", "one cycle from 0.04 up to 1 and down to 4e-06 by step, warm-up to epoch 3.6"},
		{"schedule cosine warmup 0.5", "0.1 falling to 0 by half a cosine by step, warm-up to epoch 0.5"},
	} {
		var s Schedule
		err := Options("by the data").Apply(&s, option.Settings(c.options)...)
		s.Resolve(12, Hold, 0.1)
		if err == nil {
			err = s.Validate()
		}
		if got := s.String(); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.options, got, err, c.want)
		}
	}
}

// TestWarming: the steps of the warm-up, by epochs and by steps.
func TestWarming(t *testing.T) {
	for _, c := range []struct {
		s      Schedule
		warmed int // the first step after the warm-up, of 5 per epoch
	}{{Schedule{Warmup: 2}, 10}, {Schedule{By: ByStep, Warmup: 0.4}, 2}, {Schedule{By: ByStep, WarmupSteps: 7}, 7},
		{Schedule{}, 0}} {
		for step := range 15 {
			if got := c.s.Warming(step, 5); got != (step < c.warmed) {
				t.Errorf("%+v: step %d is in the warm-up: %v", c.s, step, got)
			}
		}
	}
}

func ptr(x float64) *float64 { return &x }
