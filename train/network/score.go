package network

import (
	"encoding/json"
	"math"
	"math/bits"

	"onlinerna/data"
)

// Score is the result of evaluating weights on a set of images.
type Score struct {
	// Loss is the mean cross-entropy, without label smoothing; multi-label the mean binary cross-entropy of images and
	// classes, of regression the mean square of the error on the scale of the outputs.
	Loss   float64
	Top1   float64 // percent right
	Top5   float64
	Images int

	// Right records the correctly classified images, if known, for comparisons on the same images.
	Right Outcomes

	Task          data.Task // empty: classification, with Top1, Top5 and Right
	MAP           float64   // multi-label: the mean average precision in percent, over classes that are shown
	RMSE, MAE, R2 float64   // of regression, means over columns
	Deviation     float64   // of other tasks than classification: the standard error of Error
}

// Outcomes is a bit for each image of a set, in its order. Images that were not evaluated have 0.
type Outcomes string

// NewOutcomes packs outcomes.
func NewOutcomes(right []bool) Outcomes {
	b := make([]byte, (len(right)+7)/8)
	for i, r := range right {
		if r {
			b[i/8] |= 1 << (i % 8)
		}
	}
	return Outcomes(b)
}

// Against compares two weights: it counts the images that only o classifies correctly, and those that only p does. It
// is not ok unless both are known and of sets of the same size.
func (o Outcomes) Against(p Outcomes) (alone, other int, ok bool) {
	if len(o) != len(p) || len(o) == 0 {
		return 0, 0, false
	}
	for i := range len(o) {
		alone += bits.OnesCount8(o[i] &^ p[i])
		other += bits.OnesCount8(p[i] &^ o[i])
	}
	return alone, other, true
}

// MarkRight sets right, indexed by the images' numbers in their set, for images whose label has the largest of the N×K
// logits, the first among equal ones, as Top1 counts them.
func MarkRight(right []bool, b *data.Batch, logits []float32) {
	k := len(logits) / b.N
	for i, label := range b.Labels[:b.N] {
		row, first := logits[i*k:(i+1)*k], true
		for j, v := range row {
			if !(v < row[label]) && (j < int(label) || j > int(label) && v != row[label]) {
				first = false
			}
		}
		right[b.Index[i]] = first && row[label] == row[label]
	}
}

// Error is the measure of a task, the lower the better: the top-1 error in percent; multi-label, how much the mean
// average precision is below 100 %; of regression, the RMSE.
func (s Score) Error() float64 {
	switch s.Task {
	case data.MultiLabel:
		return 100 - s.MAP
	case data.Regression:
		return s.RMSE
	}
	return 100 - s.Top1
}

// A Number is one of a score's numbers, with its name in CSV files.
type Number struct {
	Name  string
	Value float64
}

// Numbers are those that a score of the task has beside the loss.
func (s Score) Numbers() []Number {
	switch s.Task {
	case data.MultiLabel:
		return []Number{{"map", s.MAP}}
	case data.Regression:
		return []Number{{"rmse", s.RMSE}, {"mae", s.MAE}, {"r2", s.R2}}
	}
	return []Number{{"top1", s.Top1}, {"top5", s.Top5}}
}

// Finite reports whether the loss is finite.
func (s Score) Finite() bool { return !math.IsNaN(s.Loss) && !math.IsInf(s.Loss, 0) }

// scoreJSON is a Score in JSON, which has no NaN: a loss that is not finite is null.
type scoreJSON struct {
	Loss   *float64 `json:"loss"`
	Top1   *float64 `json:"top1,omitempty"`
	Top5   *float64 `json:"top5,omitempty"`
	Images int      `json:"images"`
	Right  []byte   `json:"right,omitempty"`

	Task      data.Task `json:"task,omitempty"`
	MAP       *float64  `json:"map,omitempty"`
	RMSE      *float64  `json:"rmse,omitempty"`
	MAE       *float64  `json:"mae,omitempty"`
	R2        *float64  `json:"r2,omitempty"`
	Deviation *float64  `json:"standard_error,omitempty"`
}

// fields lists the numbers that a score of a task has.
func (j *scoreJSON) fields(s *Score) map[**float64]*float64 {
	switch s.Task {
	case data.MultiLabel:
		return map[**float64]*float64{&j.MAP: &s.MAP, &j.Deviation: &s.Deviation}
	case data.Regression:
		return map[**float64]*float64{&j.RMSE: &s.RMSE, &j.MAE: &s.MAE, &j.R2: &s.R2, &j.Deviation: &s.Deviation}
	}
	return map[**float64]*float64{&j.Top1: &s.Top1, &j.Top5: &s.Top5}
}

// MarshalJSON writes a loss that is not finite as null, and leaves out other numbers that are not.
func (s Score) MarshalJSON() ([]byte, error) {
	j := scoreJSON{Loss: &s.Loss, Images: s.Images, Right: []byte(s.Right), Task: s.Task}
	for to, x := range j.fields(&s) {
		if !math.IsNaN(*x) && !math.IsInf(*x, 0) {
			*to = x
		}
	}
	if !s.Finite() {
		j.Loss = nil
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads null and missing numbers as NaN.
func (s *Score) UnmarshalJSON(b []byte) error {
	var j scoreJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*s = Score{Loss: math.NaN(), Images: j.Images, Right: Outcomes(j.Right), Task: j.Task}
	if j.Loss != nil {
		s.Loss = *j.Loss
	}
	for from, x := range j.fields(s) {
		if *from != nil {
			*x = **from
		} else if s.Task != "" {
			*x = math.NaN()
		}
	}
	return nil
}

// Tally sums results over images.
type Tally struct {
	Loss, Top1, Top5 float64 // sum of losses, numbers of correct images
	Images           int
}

// Add adds u to t.
func (t *Tally) Add(u Tally) {
	t.Loss += u.Loss
	t.Top1 += u.Top1
	t.Top5 += u.Top5
	t.Images += u.Images
}

// Score is the mean over the images.
func (t Tally) Score() Score {
	if t.Images == 0 {
		return Score{}
	}
	n := float64(t.Images)
	return Score{Loss: t.Loss / n, Top1: 100 * t.Top1 / n, Top5: 100 * t.Top5 / n, Images: t.Images}
}
