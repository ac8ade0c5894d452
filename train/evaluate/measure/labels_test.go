package measure_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"onlinerna/train/evaluate/measure"
)

// scikit-learn's measures of multi-label predictions, its best thresholds, and its measures of regressions.
func TestLabelsAgainstScikitLearn(t *testing.T) {
	b, err := os.ReadFile("testdata/labels.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Width                           int
		Scores, Targets, Thresholds, F1 []float64
		Found                           []bool
		Macro, Micro, RMSE, MAE         [2]float64
		Exact, R2                       float64
		Truth, Guess, RMSEs             []float64
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	close := func(what string, got, want, by float64) {
		t.Helper()
		if !(math.Abs(got-want) <= by) {
			t.Errorf("%s: %.17g, want %.17g", what, got, want)
		}
	}
	both := func(what string, got measure.Estimate, want [2]float64) {
		t.Helper()
		close(what, got.Value, want[0], 1e-12)
		close("error of "+what, got.Error, want[1], 1e-7) // by differences
	}
	// of equal F1, 2/3, the lowest
	scores := []float64{3, 2, 1, 0}
	if at, _, _ := measure.Rank(scores, []bool{true, false, false, true}).BestThreshold(scores); at != 0 {
		t.Errorf("threshold %g, want 0", at)
	}
	for _, c := range cases {
		n := len(c.Targets) / c.Width
		for k := range c.Width {
			scores, shown := make([]float64, n), make([]bool, n)
			for i := range n {
				scores[i], shown[i] = c.Scores[i*c.Width+k], c.Targets[i*c.Width+k] > 0
			}
			at, f1, ok := measure.Rank(scores, shown).BestThreshold(scores)
			close("F1", f1.Value, c.F1[k], 1e-12)
			for i, s := range scores { // half-way to the next lower score
				if !ok || (s >= at) != (s >= c.Thresholds[k]) || s == at && len(scores) > 1 && at != c.Thresholds[k] {
					t.Errorf("class %d, image %d: threshold %g, want just below %g", k, i, at, c.Thresholds[k])
				}
			}
		}
		l := measure.Found(c.Found, c.Targets, c.Width)
		both("macro F1", l.MacroF1, c.Macro)
		both("micro F1", l.MicroF1, c.Micro)
		close("exact", l.Exact.Value, c.Exact, 1e-12)
		each, mean := measure.Fits(c.Guess, c.Truth, c.Width)
		both("RMSE", mean.RMSE, c.RMSE)
		both("MAE", mean.MAE, c.MAE)
		close("R²", mean.R2, c.R2, 1e-12)
		for k, want := range c.RMSEs {
			close("RMSE of a column", each[k].RMSE.Value, want, 1e-12)
		}
	}
}
