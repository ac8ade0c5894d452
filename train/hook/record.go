package hook

import (
	"cmp"
	"fmt"
	"slices"

	"onlinerna/train/network"
)

// The measures by which the best weights are chosen. Of equal errors the lower loss is better.
const (
	ByError = "error"
	ByLoss  = "loss"
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

	Train network.Score `json:"train"` // over the epoch, while the weights moved

	// On the validation images: the iterate of SGD, the same with BatchNorm statistics re-estimated,
	// the extrapolated weights, the power average of all steps and uniform averages of the last iterates.
	SGD      *network.Score  `json:"sgd,omitempty"`
	SGDStats *network.Score  `json:"sgd_bn,omitempty"`
	RNA      *RNARecord      `json:"rna,omitempty"`
	EMA      *network.Score  `json:"ema,omitempty"`
	Averages []AverageRecord `json:"averages,omitempty"`

	// Held has the scores on the held-out images, if there are any.
	Held []ScoreRecord `json:"held,omitempty"`

	// Others has the scores on the validation images that the caller's hooks enter.
	Others []ScoreRecord `json:"others,omitempty"`

	// Best tells the weights in best.safetensors at the end of the epoch: the first of Ranking of the best epoch up to
	// then.
	Best *BestRecord `json:"best,omitempty"`

	ImagesPerSecond float64 `json:"img_per_s"` // images over the time of training them, data included
	Seconds         Seconds `json:"seconds"`
	Bad             int     `json:"bad_images,omitempty"`

	// Where the device scales the loss, its scale at the end of the epoch and the steps that were skipped because of
	// gradients that were not finite.
	LossScale float64 `json:"loss_scale,omitempty"`
	Skipped   int     `json:"skipped_steps,omitempty"`
}

// HeldScore is the newest score of a kind of weights on the held-out images, nil if there is none.
func (r *EpochRecord) HeldScore(kind network.Kind) *network.Score {
	for i := len(r.Held) - 1; i >= 0; i-- {
		if r.Held[i].Kind == kind {
			return &r.Held[i].Score
		}
	}
	return nil
}

// Scores lists the scores on the validation images, but for Others, in the order in which a run judges weights.
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

// Ranking lists the weights of the epoch that best.safetensors is chosen among, the best first, by a measure, [ByError]
// or [ByLoss]: all that were scored on the held-out images, if held, or else on the validation images.
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

// Compare orders scores whose losses are finite by a measure, [ByError] or [ByLoss], the better one first.
func Compare(a, b network.Score, by string) int {
	if by == ByLoss {
		return cmp.Compare(a.Loss, b.Loss)
	}
	return cmp.Or(cmp.Compare(b.Top1, a.Top1), cmp.Compare(a.Loss, b.Loss))
}

// BestRecord is the best weights so far.
type BestRecord struct {
	ScoreRecord
	Epoch int `json:"epoch"` // that they are from
}

// RNARecord is the outcome of an extrapolation.
type RNARecord struct {
	Score     *network.Score `json:"score,omitempty"`  // nil when nothing was extrapolated
	Status    string         `json:"status"`           // "ok", or why there is no point
	C         []float64      `json:"c,omitempty"`      // coefficients, oldest first
	NormC     float64        `json:"c_norm,omitempty"` // ‖c‖₂
	Condition float64        `json:"condition,omitempty"`
	// Distance is ‖c − 1/N‖₂. NoiseDistance is the same for residuals that are a common drift and independent noise, of
	// which Noise is the share: see [rna.NoiseCoefficients].
	Distance      *float64 `json:"c_distance,omitempty"`
	NoiseDistance *float64 `json:"c_distance_noise,omitempty"`
	Noise         float64  `json:"noise,omitempty"`
	Lambda        *float64 `json:"lambda,omitempty"`   // that was used; nil for the average and for no solve
	Tau           *float64 `json:"tau,omitempty"`      // that gives the same c
	Injected      bool     `json:"injected,omitempty"` // the point replaced the iterate
	Outcome       string   `json:"outcome,omitempty"`  // of the test of acceptance: "accepted" or "value rose"

	// Of a search for λ: what was chosen, "kept", "averaged" or "extrapolated", among what. NoDifference says that one of
	// the candidates has a lower loss, but not by the test of [rna.Choose].
	Choice       string `json:"choice,omitempty"`
	NoDifference bool   `json:"no_difference,omitempty"`

	Candidates []CandidateRecord `json:"candidates,omitempty"`
}

// CandidateRecord is a point that a search for λ considered.
type CandidateRecord struct {
	Kind   string   `json:"kind"`             // "kept": the iterate, "averaged": λ = ∞, "extrapolated"
	Lambda *float64 `json:"lambda,omitempty"` // of "extrapolated"
	NormC  float64  `json:"c_norm,omitempty"`
	Loss   *float64 `json:"loss"` // on the held-out images, null where it is not finite or Status gives no point
	// Difference is the loss less that of "kept", and Error the standard error of this over the images.
	Difference *float64 `json:"difference,omitempty"`
	Error      *float64 `json:"error,omitempty"`
	Status     string   `json:"status"`
}

// ScoreRecord is the score of weights of a kind.
type ScoreRecord struct {
	Kind      network.Kind  `json:"kind"`
	Snapshots int           `json:"snapshots,omitempty"` // of a uniform average, how many
	Score     network.Score `json:"score"`
}

// Name is the name of the weights in words, in a run of an optimiser of that name.
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
	return string(s.Kind)
}

// AverageRecord is the score of the uniform average of the last snapshots.
type AverageRecord struct {
	Epochs int           `json:"epochs"` // how many: ends of epochs, unless average.Options.PerEpoch says otherwise
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
