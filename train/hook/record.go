package hook

import (
	"cmp"
	"fmt"
	"slices"

	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train/network"
)

// The measures that choose the best weights. For equal errors the lower loss is better.
const (
	ByError = "error"
	ByLoss  = "loss"
)

// StepRecord is a line of metrics.jsonl for an optimiser step.
type StepRecord struct {
	Kind   string  `json:"kind"` // "step"
	Epoch  int     `json:"epoch"`
	Step   int     `json:"step"` // since the start of the run
	Loss   float64 `json:"loss"` // minimised loss, including label smoothing
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

	Train network.Score `json:"train"` // over the epoch, while the weights moved

	// Scores on the validation images: the SGD iterate, the same with BatchNorm statistics re-estimated, the extrapolated
	// weights, the power average of all steps and uniform averages of the last iterates.
	SGD      *network.Score  `json:"sgd,omitempty"`
	SGDStats *network.Score  `json:"sgd_bn,omitempty"`
	RNA      *RNARecord      `json:"rna,omitempty"`
	EMA      *network.Score  `json:"ema,omitempty"`
	Averages []AverageRecord `json:"averages,omitempty"`

	// Held has the scores on the held-out images, if there are any.
	Held []ScoreRecord `json:"held,omitempty"`

	// Others has the scores on the validation images that the caller's hooks add.
	Others []ScoreRecord `json:"others,omitempty"`

	// Best describes the weights in best.safetensors at the end of the epoch: the first of Ranking in the best epoch so
	// far.
	Best *BestRecord `json:"best,omitempty"`

	ImagesPerSecond float64 `json:"img_per_s"` // training images over training time, data loading included
	Seconds         Seconds `json:"seconds"`
	Bad             int     `json:"bad_images,omitempty"`

	// Card is the state of the GPU over the epoch, if it reports one.
	Card *device.CardState `json:"card,omitempty"`

	// If the device scales the loss: its scale at the end of the epoch, and the steps skipped because of non-finite
	// gradients.
	LossScale float64 `json:"loss_scale,omitempty"`
	Skipped   int     `json:"skipped_steps,omitempty"`
}

// HeldScore returns the newest score of a kind of weights on the held-out images, nil if there is none.
func (r *EpochRecord) HeldScore(kind network.Kind) *network.Score {
	for i := len(r.Held) - 1; i >= 0; i-- {
		if r.Held[i].Kind == kind {
			return &r.Held[i].Score
		}
	}
	return nil
}

// Scores lists the scores on the validation images except Others, in the order in which a run judges weights.
func (r *EpochRecord) Scores() (list []ScoreRecord) {
	add := func(kind network.Kind, s *network.Score) {
		if s != nil {
			list = append(list, ScoreRecord{Kind: kind, Score: *s})
		}
	}
	add(network.SGD, r.SGD)
	add(network.SGDStats, r.SGDStats)
	for _, a := range r.Averages {
		list = append(list, ScoreRecord{Kind: network.Average, Snapshots: a.Epochs, Score: a.Score})
	}
	if r.RNA != nil {
		add(network.RNA, r.RNA.Score)
	}
	add(network.EMA, r.EMA)
	return list
}

// Ranking lists the epoch's candidates for best.safetensors, the best first, by a measure, [ByError] or [ByLoss]: all
// weights scored on the held-out images, if held is true, or else on the validation images.
func (r *EpochRecord) Ranking(by string) (list []ScoreRecord, held bool) {
	if held = len(r.Held) > 0; held {
		list = slices.Clone(r.Held)
	} else {
		list = append(r.Scores(), r.Others...)
	}
	list = slices.DeleteFunc(list, func(s ScoreRecord) bool { return !s.Score.Finite() })
	slices.SortStableFunc(list, func(a, b ScoreRecord) int { return Compare(a.Score, b.Score, by) })
	return list, held
}

// Compare orders scores with finite losses by a measure, [ByError] or [ByLoss], the better one first.
func Compare(a, b network.Score, by string) int {
	if by == ByLoss {
		return cmp.Compare(a.Loss, b.Loss)
	}
	return cmp.Or(cmp.Compare(a.Error(), b.Error()), cmp.Compare(a.Loss, b.Loss))
}

// BestRecord describes the best weights so far.
type BestRecord struct {
	ScoreRecord
	Epoch int `json:"epoch"` // of the weights
}

// RNARecord is the outcome of an extrapolation.
type RNARecord struct {
	Score     *network.Score `json:"score,omitempty"`  // nil if nothing was extrapolated
	Status    string         `json:"status"`           // "ok", or the reason why there is no point
	C         []float64      `json:"c,omitempty"`      // coefficients, oldest first
	NormC     float64        `json:"c_norm,omitempty"` // ‖c‖₂
	Condition float64        `json:"condition,omitempty"`
	// Distance is ‖c − 1/N‖₂. NoiseDistance is the same for residuals that consist of a common drift and independent
	// noise, where Noise is the noise's share: see [rna.NoiseCoefficients].
	Distance      *float64 `json:"c_distance,omitempty"`
	NoiseDistance *float64 `json:"c_distance_noise,omitempty"`
	Noise         float64  `json:"noise,omitempty"`
	Lambda        *float64 `json:"lambda,omitempty"`   // as used; nil for the average and if nothing was solved
	Tau           *float64 `json:"tau,omitempty"`      // giving the same c
	Injected      bool     `json:"injected,omitempty"` // the point replaced the iterate
	Outcome       string   `json:"outcome,omitempty"`  // of the acceptance test: "accepted" or "value rose"

	// Result of a search for λ: Choice is "kept", "averaged" or "extrapolated", one of the Candidates. NoDifference means
	// that one of the candidates has a lower loss, but not significantly by the test of [rna.Choose].
	Choice       string `json:"choice,omitempty"`
	NoDifference bool   `json:"no_difference,omitempty"`

	Candidates []CandidateRecord `json:"candidates,omitempty"`
}

// CandidateRecord is a point that a search for λ considered.
type CandidateRecord struct {
	Kind   string   `json:"kind"`             // "kept": the iterate; "averaged": λ = ∞; "extrapolated"
	Lambda *float64 `json:"lambda,omitempty"` // for "extrapolated"
	NormC  float64  `json:"c_norm,omitempty"`
	Loss   *float64 `json:"loss"` // on the held-out images, null if it is not finite or Status gives no point
	// Difference is the loss minus that of "kept", and Error its standard error over the images.
	Difference *float64 `json:"difference,omitempty"`
	Error      *float64 `json:"error,omitempty"`
	Status     string   `json:"status"`
}

// ScoreRecord is the score of one kind of weights.
type ScoreRecord struct {
	Kind      network.Kind  `json:"kind"`
	Snapshots int           `json:"snapshots,omitempty"` // of a uniform average: their number
	Gamma     float64       `json:"-"`                   // of a kept power average
	Score     network.Score `json:"score"`
}

// Name describes the weights in words, in a run of the given optimiser.
func (s ScoreRecord) Name(optimizer string) string {
	switch s.Kind {
	case network.SGD:
		return optimizer
	case network.SGDStats:
		return optimizer + " recalibrated"
	case network.RNA:
		return "RNA"
	case network.EMA:
		return "EMA"
	case network.Average:
		return fmt.Sprintf("average of %d", s.Snapshots)
	}
	return text.Printable(string(s.Kind)) // of a hook of the caller's, or from a file
}

// AverageRecord is the score of the uniform average of the last snapshots.
type AverageRecord struct {
	// number of averaged snapshots: ends of epochs, unless average.Options.PerEpoch differs
	Epochs int           `json:"epochs"`
	Score  network.Score `json:"score"`
}

// Seconds splits the time of an epoch.
type Seconds struct {
	Data    float64 `json:"data"`          // waiting for batches
	Compute float64 `json:"compute"`       // forward, backward, update
	Eval    float64 `json:"eval"`          // of the SGD iterate
	RNA     float64 `json:"rna"`           // snapshots, Gram products, solving, combining
	EMA     float64 `json:"ema,omitempty"` // the power average and its evaluation
	RNAEval float64 `json:"rna_eval"`      // statistics and evaluation of the extrapolated and average weights
}
