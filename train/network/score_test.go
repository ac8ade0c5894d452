package network

import (
	"math"
	"testing"
)

func TestScoreJSON(t *testing.T) {
	for _, s := range []Score{{0.5, 90, 99, 10}, {math.NaN(), 10, 20, 30}, {math.Inf(1), 10, 20, 30}} {
		b, err := s.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var got Score
		if err := got.UnmarshalJSON(b); err != nil {
			t.Fatal(err)
		}
		if !s.Finite() {
			if !math.IsNaN(got.Loss) {
				t.Errorf("%v comes back as %v from %s", s, got, b)
			}
			got.Loss, s.Loss = 0, 0
		}
		if got != s {
			t.Errorf("%v comes back as %v from %s", s, got, b)
		}
	}
}
