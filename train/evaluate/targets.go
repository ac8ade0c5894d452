package evaluate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"onlinerna/data"
	"onlinerna/internal/text"
	"onlinerna/train/evaluate/measure"
	"onlinerna/train/network"
)

// LabelScore holds the measures of a class of a multi-label set. Precision, Recall and F1 are those of the images whose
// probability is at least the threshold.
type LabelScore struct {
	Name      string           `json:"name"`
	Images    int              `json:"images"`
	Threshold float64          `json:"threshold"`
	Precision measure.Estimate `json:"precision"`
	Recall    measure.Estimate `json:"recall"`
	F1        measure.Estimate `json:"f1"`
	AUC       measure.Estimate `json:"roc_auc"`
	AP        measure.Estimate `json:"average_precision"`
}

// ColumnScore holds the measures of a column of a regression.
type ColumnScore struct {
	Name string           `json:"name"`
	RMSE measure.Estimate `json:"rmse"`
	MAE  measure.Estimate `json:"mae"`
	R2   *float64         `json:"r2"` // null if the column has one value
}

// Targets are the results for another task than classification.
type Targets struct {
	Model string        `json:"model"`
	Score network.Score `json:"score"`

	// Multi-label: means over classes that are shown, F1 of all pairs of an image and a class, and the share of images
	// whose classes are exactly those found.
	Classes []LabelScore      `json:"classes,omitempty"`
	AP      *measure.Estimate `json:"mean_average_precision,omitempty"`
	AUC     *measure.Estimate `json:"mean_roc_auc,omitempty"`
	MacroF1 *measure.Estimate `json:"macro_f1,omitempty"`
	MicroF1 *measure.Estimate `json:"micro_f1,omitempty"`
	Exact   *measure.Estimate `json:"exact_match,omitempty"`

	Columns []ColumnScore `json:"columns,omitempty"` // of regression
}

// MarshalJSON writes the results of the task.
func (r *Report) MarshalJSON() ([]byte, error) {
	if r.Targets != nil {
		return json.Marshal(r.Targets)
	}
	type plain Report
	return json.Marshal((*plain)(r))
}

// finishTargets computes the measures.
func (r *Report) finishTargets(model string, s network.Score, m *network.Meaning) {
	r.Targets = &Targets{Model: model, Score: s}
	values, targets, images := r.outputs.Values()
	k := len(r.names)
	if m.Task == data.Regression {
		each, _ := measure.Fits(values, targets, k)
		for i, f := range each {
			c := ColumnScore{Name: r.names[i], RMSE: f.RMSE, MAE: f.MAE}
			if !math.IsNaN(f.R2) {
				c.R2 = &each[i].R2
			}
			r.Targets.Columns = append(r.Targets.Columns, c)
		}
		return
	}
	t := r.Targets
	each, mean := measure.Classes(k, len(images), func(class int) *measure.Ranking {
		rank, _ := r.outputs.Ranking(class)
		return rank
	}, (*measure.Ranking).AveragePrecision, (*measure.Ranking).AUC)
	found := make([]bool, len(values))
	for i, p := range values {
		found[i] = p >= m.Threshold(i%k)
	}
	labels := measure.Found(found, targets, k)
	for i, c := range labels.Classes {
		t.Classes = append(t.Classes, LabelScore{Name: r.names[i], Images: c.Right + c.Missed, Threshold: m.Threshold(i),
			Precision: c.Precision(), Recall: c.Recall(), F1: c.F1(), AP: each[0][i], AUC: each[1][i]})
	}
	t.AP, t.AUC, t.MacroF1, t.MicroF1, t.Exact = &mean[0], &mean[1], &labels.MacroF1, &labels.MicroF1, &labels.Exact
}

// print prints the results in lines, with each class if classes is set.
func (t *Targets) print(out io.Writer, classes bool) (err error) {
	if t.Score.Task == data.Regression {
		rows := [][]string{{"column", "RMSE", "MAE", "R²"}}
		for _, c := range t.Columns {
			r2 := "-"
			if c.R2 != nil {
				r2 = fmt.Sprintf("%.4f", *c.R2)
			}
			rows = append(rows, []string{c.Name, numbers(c.RMSE), numbers(c.MAE), r2})
		}
		_, err = fmt.Fprintf(out, "%s%s on %d images: loss %.4f, RMSE %.5g ± %.2g, MAE %.5g, R² %.4f\n", text.Table(rows),
			t.Model, t.Score.Images, t.Score.Loss, t.Score.RMSE, t.Score.Deviation, t.Score.MAE, t.Score.R2)
		return err
	}
	if classes {
		rows := [][]string{{"class", "images", "threshold", "recall %", "precision %", "F1 %", "ROC-AUC %", "AP %"}}
		for _, c := range t.Classes {
			rows = append(rows, []string{c.Name, strconv.Itoa(c.Images), fmt.Sprintf("%.3f", c.Threshold), c.Recall.String(),
				c.Precision.String(), c.F1.String(), c.AUC.String(), c.AP.String()})
		}
		fmt.Fprint(out, text.Table(rows))
	}
	fmt.Fprintf(out, "at the thresholds: macro F1 %v %%, micro F1 %v %%, all classes right %v %%\n", t.MacroF1, t.MicroF1,
		t.Exact)
	_, err = fmt.Fprintf(out, "%s on %d images: loss %.4f, mAP %v %%, mean ROC-AUC %v %%\n", t.Model, t.Score.Images,
		t.Score.Loss, t.AP, t.AUC)
	return err
}

// numbers writes an estimate in units of the numbers.
func numbers(e measure.Estimate) string { return fmt.Sprintf("%.5g ± %.2g", e.Value, e.Error) }
