package network

import (
	"math"
	"slices"
	"testing"

	"onlinerna/data"
)

func TestScoreJSON(t *testing.T) {
	for _, s := range []Score{{Loss: 0.5, Top1: 90, Top5: 99, Images: 10}, {Loss: math.NaN(), Top1: 10, Top5: 20, Images: 30, Right: "\x01\xff\x00"},
		{Loss: math.Inf(1), Top1: 10, Top5: 20, Images: 30},
		{Task: data.MultiLabel, MAP: 80, Deviation: 2, Images: 3}, {Task: data.Regression, RMSE: 2, MAE: 1, R2: .5, Deviation: .1}} {
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

func TestOutcomes(t *testing.T) {
	nan := float32(math.NaN())
	b := &data.Batch{N: 5, Labels: []int32{0, 1, 2, 1, 1}, Index: []int{9, 0, 3, 4, 5}}
	right := make([]bool, 10)
	MarkRight(right, b, []float32{
		5, 5, 1, // the first of two equal logits
		5, 5, 1, // the second of them
		1, 2, 3,
		nan, 2, 1,
		1, 2, 3,
	})
	if want := []bool{9: true, 3: true}; !slices.Equal(right, want) {
		t.Errorf("right on %v, want %v", right, want)
	}
	x := NewOutcomes(right)
	y := NewOutcomes([]bool{true, true, true, true, 9: false})
	if alone, other, ok := x.Against(y); alone != 1 || other != 3 || !ok {
		t.Errorf("%d and %d images alone, %v", alone, other, ok)
	}
	for _, z := range []Outcomes{"", NewOutcomes(make([]bool, 17))} {
		if _, _, ok := x.Against(z); ok {
			t.Errorf("outcomes of %d bytes and of %d", len(x), len(z))
		}
	}
	if _, _, ok := Outcomes("").Against(""); ok {
		t.Error("outcomes that are not known")
	}
}
