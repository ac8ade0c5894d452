package network

import (
	"encoding/json"
	"math"
)

// Score is how a set of weights does on a set of images.
type Score struct {
	Loss   float64 // mean cross-entropy, without label smoothing
	Top1   float64 // percent right
	Top5   float64
	Images int
}

// Error is the top-1 error in percent.
func (s Score) Error() float64 { return 100 - s.Top1 }

// Finite says whether the loss is a number.
func (s Score) Finite() bool { return !math.IsNaN(s.Loss) && !math.IsInf(s.Loss, 0) }

// scoreJSON is a Score in JSON, which has no NaN: a loss that is not finite is null.
type scoreJSON struct {
	Loss   *float64 `json:"loss"`
	Top1   float64  `json:"top1"`
	Top5   float64  `json:"top5"`
	Images int      `json:"images"`
}

// MarshalJSON writes a loss that is not finite as null.
func (s Score) MarshalJSON() ([]byte, error) {
	j := scoreJSON{&s.Loss, s.Top1, s.Top5, s.Images}
	if !s.Finite() {
		j.Loss = nil
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads null as NaN.
func (s *Score) UnmarshalJSON(b []byte) error {
	loss := math.NaN()
	j := scoreJSON{Loss: &loss}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	if j.Loss == nil {
		j.Loss = &loss
	}
	*s = Score{*j.Loss, j.Top1, j.Top5, j.Images}
	return nil
}

// Tally sums up results over images.
type Tally struct {
	Loss, Top1, Top5 float64 // sum of losses, numbers of images right
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
