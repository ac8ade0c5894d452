package train

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

// finite says whether the loss is a number.
func (s Score) finite() bool { return !math.IsNaN(s.Loss) && !math.IsInf(s.Loss, 0) }

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
	if !s.finite() {
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

// The kinds of weights, as metrics and the metadata of weights name them.
const (
	kindSGD      = "sgd"
	kindSGDStats = "sgd_bn" // SGD's, with BatchNorm statistics re-estimated
	kindRNA      = "rna"
	kindAverage  = "average"
	kindEMA      = "ema"
)

// StepRecord is a line of metrics.jsonl for a step of the optimiser.
type StepRecord struct {
	Kind   string  `json:"kind"` // "step"
	Epoch  int     `json:"epoch"`
	Step   int     `json:"step"` // since the start of the run
	Loss   float64 `json:"loss"` // as minimised: with label smoothing
	Top1   float64 `json:"top1"`
	Rate   float64 `json:"lr"`
	Images int     `json:"images"`
}

// EpochRecord is a line of metrics.jsonl for an epoch.
type EpochRecord struct {
	Kind  string  `json:"kind"` // "epoch"
	Epoch int     `json:"epoch"`
	Step  int     `json:"step"` // steps since the start of the run
	Rate  float64 `json:"lr"`

	Train Score `json:"train"` // over the epoch, while the weights moved

	// On the validation images: the iterate of SGD, the same with BatchNorm statistics re-estimated,
	// the extrapolated weights, the power average of all steps and uniform averages of the last iterates.
	SGD      *Score          `json:"sgd,omitempty"`
	SGDStats *Score          `json:"sgd_bn,omitempty"`
	RNA      *RNARecord      `json:"rna,omitempty"`
	EMA      *Score          `json:"ema,omitempty"`
	Averages []AverageRecord `json:"averages,omitempty"`

	// Held has the scores on the held-out images, if there are any.
	Held []HeldRecord `json:"held,omitempty"`

	ImagesPerSecond float64 `json:"img_per_s"` // images over the time of training them, data included
	Seconds         Seconds `json:"seconds"`
	Bad             int     `json:"bad_images,omitempty"`

	// Where the device scales the loss, its scale at the end of the epoch and the steps that were skipped because of
	// gradients that were not finite.
	LossScale float64 `json:"loss_scale,omitempty"`
	Skipped   int     `json:"skipped_steps,omitempty"`
}

// held is the newest score of a kind of weights on the held-out images, nil if there is none.
func (r *EpochRecord) held(kind string) *Score {
	for i := len(r.Held) - 1; i >= 0; i-- {
		if r.Held[i].Kind == kind {
			return &r.Held[i].Score
		}
	}
	return nil
}

// RNARecord is what an extrapolation gave.
type RNARecord struct {
	Score     *Score    `json:"score,omitempty"`  // nil when nothing was extrapolated
	Status    string    `json:"status"`           // "ok", or why there is no point
	C         []float64 `json:"c,omitempty"`      // coefficients, oldest first
	NormC     float64   `json:"c_norm,omitempty"` // ‖c‖₂
	Condition float64   `json:"condition,omitempty"`
	Lambda    *float64  `json:"lambda,omitempty"`   // that was used; nil for the average and for no solve
	Tau       *float64  `json:"tau,omitempty"`      // that gives the same c
	Injected  bool      `json:"injected,omitempty"` // the point replaced the iterate
	Outcome   string    `json:"outcome,omitempty"`  // of the test of acceptance: "accepted" or "value rose"

	// Of a search for λ: what was chosen, "kept", "averaged" or "extrapolated", among what.
	Choice     string            `json:"choice,omitempty"`
	Candidates []CandidateRecord `json:"candidates,omitempty"`
}

// CandidateRecord is a point that a search for λ considered.
type CandidateRecord struct {
	Kind   string   `json:"kind"`             // "kept": the iterate, "averaged": λ = ∞, "extrapolated"
	Lambda *float64 `json:"lambda,omitempty"` // of "extrapolated"
	NormC  float64  `json:"c_norm,omitempty"`
	Loss   *float64 `json:"loss"` // on the held-out images, null where it is not finite or Status gives no point
	Status string   `json:"status"`
}

// HeldRecord is the score of weights on the held-out images.
type HeldRecord struct {
	Kind  string `json:"kind"` // as in [Meta]
	Score Score  `json:"score"`
}

// AverageRecord is the score of the uniform average of the last snapshots.
type AverageRecord struct {
	Epochs int   `json:"epochs"` // how many: ends of epochs, unless RNAConfig.PerEpoch says otherwise
	Score  Score `json:"score"`
}

// Seconds is where the time of an epoch went.
type Seconds struct {
	Data    float64 `json:"data"`          // waiting for batches
	Compute float64 `json:"compute"`       // forward, backward, update
	Eval    float64 `json:"eval"`          // of the SGD iterate
	RNA     float64 `json:"rna"`           // snapshots, Gram products, solving, combining
	EMA     float64 `json:"ema,omitempty"` // the power average and its evaluation
	RNAEval float64 `json:"rna_eval"`      // statistics and evaluation of the extrapolated and average weights
}
