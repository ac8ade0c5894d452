package config

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
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
		"multistep_repeat":   {Kind: Multi, Gamma: 0.5, Milestones: golden.Schedules["multistep_repeat"].Milestones, Epochs: 91},
		"cosine_90":          {Kind: Cosine, Epochs: 90},
		"cosine_90_min":      {Kind: Cosine, Final: ptr(0.001), Epochs: 90},
		"linear_5":           {Kind: Constant, Warmup: 5, WarmupFrom: 0.01, Epochs: 91},
		"warmup5_cosine85":   {Kind: Cosine, Warmup: 5, WarmupFrom: 0.01, Epochs: 90},
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
	s := Schedule{Kind: Hold, Rate: 1, Final: ptr(0.2), HoldFor: 3, Warmup: 1, WarmupFrom: 0.5, Epochs: 8}
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
		{"warm-up from", Schedule{Kind: Constant, Rate: 1, Epochs: 3, Warmup: 1, WarmupFrom: 2}},
		{"warm-up from", Schedule{Kind: Constant, Rate: 1, Epochs: 3, Warmup: 1, WarmupFrom: math.NaN()}},
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
		{"milestones has no meaning", Schedule{Kind: Step, Rate: 1, Epochs: 3, Gamma: 0.1, Milestones: []int{1}, StepEvery: 1}},
		{"hold has no meaning", Schedule{Kind: Linear, Rate: 1, Epochs: 3, HoldFor: 1}},
		{"warm up from has no meaning", Schedule{Kind: Linear, Rate: 1, Epochs: 3, WarmupFrom: 0.1}},
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
