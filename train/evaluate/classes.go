package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"onlinerna/train/evaluate/measure"
	"onlinerna/train/ranks"
)

// ClassScore holds the measures of a class with images.
type ClassScore struct {
	Name      string           `json:"name"`
	Images    int              `json:"images"`
	Top1      float64          `json:"top1"` // percent
	Precision measure.Estimate `json:"precision"`
	Recall    measure.Estimate `json:"recall"`
	F1        measure.Estimate `json:"f1"`
	// Of the class against all others, by its probability; nil without Options.Ranking.
	AUC *measure.Estimate `json:"roc_auc,omitempty"`
	AP  *measure.Estimate `json:"average_precision,omitempty"`
}

// odds holds the scores of an image by which classes rank it.
type odds struct {
	Index int // in the dataset
	Label int32
	Odds  []float64 // by class: log p/(1−p), which tells apart probabilities near 1, too
}

// newOdds computes log p/(1−p) of softmax(logits), where logits are not NaN.
func newOdds(index int, label int32, logits []float32) odds {
	x := odds{index, label, make([]float64, len(logits))}
	top := 0
	for k, z := range logits {
		if z > logits[top] {
			top = k
		}
	}
	others := 0. // than the largest, whose exponential is 1
	for k, z := range logits {
		if k != top {
			others += math.Exp(float64(z) - float64(logits[top]))
		}
	}
	for k, z := range logits {
		d := float64(z) - float64(logits[top])
		rest := 1 + others - math.Exp(d)
		if k == top {
			rest = others
		}
		x.Odds[k] = d - math.Log(rest)
	}
	return x
}

// gather collects the images of all ranks in the order of the dataset, so that sums have equal bits.
func (r *Report) gather(g *ranks.Group) (err error) {
	if r.odds, err = ranks.GatherAll(g, r.odds); err != nil {
		return err
	}
	slices.SortStableFunc(r.odds, func(a, b odds) int { return cmp.Compare(a.Index, b.Index) })
	return nil
}

// finishClasses computes the measures of classes and their means.
func (r *Report) finishClasses() {
	r.BalancedAccuracy, r.MacroF1 = r.confusion.BalancedAccuracy(), r.confusion.MacroF1()
	var each [][]measure.Estimate
	if r.ranking {
		var mean []measure.Estimate
		each, mean = measure.Classes(len(r.names), len(r.odds), r.rank, (*measure.Ranking).AUC,
			(*measure.Ranking).AveragePrecision)
		r.AUC, r.AP = &mean[0], &mean[1]
	}
	for k := range r.confusion {
		c := r.confusion.Counts(k)
		n := c.Right + c.Missed
		if n == 0 {
			continue
		}
		s := ClassScore{Name: r.names[k], Images: n, Top1: 100 * float64(c.Right) / float64(n), Precision: c.Precision(),
			Recall: c.Recall(), F1: c.F1()}
		if r.ranking {
			s.AUC, s.AP = &each[0][k], &each[1][k]
		}
		r.Classes = append(r.Classes, s)
	}
}

// rank orders the images for a class.
func (r *Report) rank(class int) *measure.Ranking {
	scores, shown := make([]float64, len(r.odds)), make([]bool, len(r.odds))
	for i, x := range r.odds {
		scores[i], shown[i] = x.Odds[class], int(x.Label) == class
	}
	return measure.Rank(scores, shown)
}

// classRows has a row for each class, below a head.
func (r *Report) classRows() [][]string {
	rows := [][]string{{"class", "images", "recall %", "precision %", "F1 %"}}
	if r.ranking {
		rows[0] = append(rows[0], "ROC-AUC %", "AP %")
	}
	for _, c := range r.Classes {
		row := []string{c.Name, strconv.Itoa(c.Images), c.Recall.String(), c.Precision.String(), c.F1.String()}
		if c.AUC != nil {
			row = append(row, c.AUC.String(), c.AP.String())
		}
		rows = append(rows, row)
	}
	return rows
}

// means describes the means over classes, with standard errors.
func (r *Report) means() string {
	s := fmt.Sprintf("balanced accuracy %v %%, macro F1 %v %%", r.BalancedAccuracy, r.MacroF1)
	if r.AUC != nil {
		s += fmt.Sprintf(", mean ROC-AUC %v %%, mean AP %v %%", r.AUC, r.AP)
	}
	return s
}
