package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"onlinerna/data"
	"onlinerna/internal/files"
	measures "onlinerna/train/evaluate/measure"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// Evaluation tells how a run's best weights do on each class, for its page. evaluation.json in the run's folder holds
// it.
type Evaluation struct {
	Kind      network.Kind `json:"kind"` // of the weights
	Snapshots int          `json:"snapshots,omitempty"`
	Epoch     int          `json:"epoch"`
	Note      string       `json:"note,omitempty"` // about the choice of the images

	Score       network.Score     `json:"score"`
	Interval    [2]float64        `json:"top1_interval"` // 95 %, in percent
	Calibration float64           `json:"calibration_error"`
	Balanced    measures.Estimate `json:"balanced_accuracy"`
	MacroF1     measures.Estimate `json:"macro_f1"`
	Classes     []EvaluatedClass  `json:"classes"`
	Names       []string          `json:"names"`     // of all outputs
	Confusion   [][3]int          `json:"confusion"` // label, prediction, count above 0
	Worst       []EvaluatedImage  `json:"worst"`     // the highest losses
	Best        []EvaluatedImage  `json:"best"`      // the lowest losses

	// Of another task than classification, which has no interval, calibration, classes, names and confusion. Pairs are of
	// regression: for each column the labels and predictions of some images.
	Targets *Targets       `json:"targets,omitempty"`
	Pairs   [][][2]float64 `json:"pairs,omitempty"`
}

// EvaluatedClass holds the measures of a class.
type EvaluatedClass struct {
	Name      string            `json:"name"`
	Images    int               `json:"images"`
	Recall    measures.Estimate `json:"recall"`
	Precision measures.Estimate `json:"precision"`
	F1        measures.Estimate `json:"f1"`
}

// EvaluatedImage is an image with its prediction.
type EvaluatedImage struct {
	Index       int      `json:"index"` // in the set
	File        string   `json:"file"`
	Label       string   `json:"label"`                 // of other tasks several, or numbers
	Predicted   string   `json:"predicted"`             // with probabilities, if several
	Probability float64  `json:"probability,omitempty"` // of the predicted class
	Loss        *float64 `json:"loss"`                  // null if it is not finite
	Right       bool     `json:"right"`

	Picture []byte `json:"-"` // a PNG or JPEG; nil for none
}

const evaluationName = "evaluation.json"

// Of reports whether the evaluation is that of the weights.
func (e *Evaluation) Of(best *hook.BestRecord) bool {
	return best != nil && e.Kind == best.Kind && e.Snapshots == best.Snapshots && e.Epoch == best.Epoch
}

// Write writes evaluation.json into the folder of a run.
func (e *Evaluation) Write(dir string) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, evaluationName), append(b, '\n'))
}

// maxEvaluation bounds the bytes of evaluation.json: the confusion of 20,000 classes.
const maxEvaluation = 256 << 20

// ReadEvaluation reads evaluation.json from the folder of a run, nil if there is none of its best weights.
func ReadEvaluation(dir string, best *hook.BestRecord) (*Evaluation, error) {
	path := filepath.Join(dir, evaluationName)
	b, err := files.ReadFileAtMost(path, maxEvaluation)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var e Evaluation
	if err == nil {
		if err = json.Unmarshal(b, &e); err == nil {
			err = e.check()
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: delete it, and it is made again", err)
	case !e.Of(best):
		return nil, nil
	}
	return &e, nil
}

func (e *Evaluation) check() error {
	task := e.Score.Task
	if plain := task == "" || task == data.Classification; !plain && (e.Targets == nil || e.Targets.Score.Task != task) {
		return fmt.Errorf("no measures of the task %s", task)
	}
	if e.Targets != nil && len(e.Pairs) > len(e.Targets.Columns) {
		return fmt.Errorf("pairs of %d columns, and %d columns", len(e.Pairs), len(e.Targets.Columns))
	}
	for _, c := range e.Confusion {
		if c[0] < 0 || c[0] >= len(e.Names) || c[1] < 0 || c[1] >= len(e.Names) || c[2] < 1 {
			return fmt.Errorf("confusion %v of %d classes", c, len(e.Names))
		}
	}
	return nil
}
