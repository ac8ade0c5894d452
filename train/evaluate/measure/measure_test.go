package measure_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"onlinerna/train/evaluate/measure"
)

// pair is a value and its standard error; null is undefined.
type pair [2]*float64

type testCase struct {
	Scores                [][]float64
	Shown                 [][]bool
	Guess                 []int
	Precision, Recall, F1 []pair
	AUC, AP               []pair
	Mean_AUC, Mean_AP     pair
	Macro_F1              pair
	Balanced_Accuracy     pair
}

func near(t *testing.T, what string, got measure.Estimate, want pair) {
	t.Helper()
	for i, x := range []float64{got.Value, got.Error} {
		w := want[i]
		if w == nil != math.IsNaN(x) || w != nil && math.Abs(x-*w) > 1e-12 {
			t.Errorf("%s: %v, want %v", what, got, want)
			if w != nil {
				t.Errorf("%.17g, want %.17g", x, *w)
			}
		}
	}
}

// scikit-learn's measures, and standard errors by their definitions.
func TestAgainstScikitLearn(t *testing.T) {
	b, err := os.ReadFile("testdata/measures.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []testCase
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) != 7 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		classes := len(c.AUC)
		rank := func(k int) *measure.Ranking {
			scores, shown := make([]float64, len(c.Scores)), make([]bool, len(c.Scores))
			for i := range scores {
				scores[i], shown[i] = c.Scores[i][k], c.Shown[i][k]
			}
			return measure.Rank(scores, shown)
		}
		each, mean := measure.Classes(classes, len(c.Scores), rank, (*measure.Ranking).AUC,
			(*measure.Ranking).AveragePrecision)
		for k := range classes {
			near(t, "AUC", each[0][k], c.AUC[k])
			near(t, "AP", each[1][k], c.AP[k])
		}
		near(t, "mean AUC", mean[0], c.Mean_AUC)
		near(t, "mean AP", mean[1], c.Mean_AP)
		if c.Guess == nil {
			continue
		}
		m := make(measure.Confusion, classes)
		for k := range m {
			m[k] = make([]int, classes)
		}
		for i, guess := range c.Guess {
			for k, shown := range c.Shown[i] {
				if shown {
					m[k][guess]++
				}
			}
		}
		for k := range m {
			counts := m.Counts(k)
			near(t, "precision", counts.Precision(), c.Precision[k])
			near(t, "recall", counts.Recall(), c.Recall[k])
			near(t, "F1", counts.F1(), c.F1[k])
		}
		near(t, "macro F1", m.MacroF1(), c.Macro_F1)
		near(t, "balanced accuracy", m.BalancedAccuracy(), c.Balanced_Accuracy)
	}
}

// Undefined measures are null in JSON, and come back.
func TestEstimateJSON(t *testing.T) {
	for want, e := range map[string]measure.Estimate{
		`{"value":null,"standard_error":null}`: measure.Counts{}.Recall(),
		`{"value":0.5,"standard_error":0.25}`:  measure.Counts{Right: 2, Missed: 2}.Recall(),
		`{"value":1,"standard_error":null}`:    measure.Rank([]float64{2, 1}, []bool{true, false}).AUC(nil),
	} {
		b, err := json.Marshal(e)
		var back measure.Estimate
		if err != nil || string(b) != want || json.Unmarshal(b, &back) != nil || back.String() != e.String() {
			t.Errorf("%v is %s, %v; want %s", e, b, err, want)
		}
	}
	if s := (measure.Counts{Right: 2, Missed: 2}).Recall().String(); s != "50.00 ± 25.00" {
		t.Error(s)
	}
}
