package schedule

import (
	"math"
	"reflect"
	"testing"
)

// Stretched schedules are valid, keep the shape of the rate, and go back.
func TestStretched(t *testing.T) {
	for _, s := range []Schedule{
		{Kind: Linear}, {Kind: Cosine, Warmup: 5}, {Kind: Hold}, {Kind: Hold, Warmup: 10}, {Kind: Step},
		{Kind: Multi, Milestones: []int{30, 60, 90}}, {Kind: OneCycle}, {Kind: Poly, WarmupSteps: 70},
		{Kind: Cosine, By: ByStep, Warmup: 2.5}, {Kind: Constant},
	} {
		s.Resolve(100, s.Kind, .1)
		for _, epochs := range []int{1, 2, 3, 50, 100, 200, 1000} {
			x := s.Stretched(epochs)
			if err := x.Validate(); err != nil {
				t.Errorf("%v over %d epochs: %v", s, epochs, err)
			}
			if epochs < 50 {
				continue
			}
			for _, part := range []float64{0, .2, .45, .7, .97} {
				at := func(s Schedule) float64 { return s.AtStep(int(part*float64(s.Epochs)*10), 10) }
				if got, want := at(x), at(s); math.Abs(got-want) > .006 {
					t.Errorf("%v over %d epochs: rate %g after %g of the run, want %g", s, epochs, got, part, want)
				}
			}
			if back := x.Stretched(100); epochs >= 100 && !reflect.DeepEqual(back, s) {
				t.Errorf("%v, stretched to %d and back: %v", s, epochs, back)
			}
		}
	}
}
