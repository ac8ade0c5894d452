package report

import (
	"fmt"
	"io"
	"strconv"

	"onlinerna/data"
	"onlinerna/internal/terminal"
	measures "onlinerna/train/evaluate/measure"
	"onlinerna/train/network"
)

// LabelScore holds the measures of a class of a multi-label set. Precision, Recall and F1 are those of the images whose
// probability is at least the threshold.
type LabelScore struct {
	Name      string            `json:"name"`
	Images    int               `json:"images"`
	Threshold float64           `json:"threshold"`
	Precision measures.Estimate `json:"precision"`
	Recall    measures.Estimate `json:"recall"`
	F1        measures.Estimate `json:"f1"`
	AUC       measures.Estimate `json:"roc_auc"`
	AP        measures.Estimate `json:"average_precision"`
}

// ColumnScore holds the measures of a column of a regression.
type ColumnScore struct {
	Name string            `json:"name"`
	RMSE measures.Estimate `json:"rmse"`
	MAE  measures.Estimate `json:"mae"`
	R2   *float64          `json:"r2"` // null if the column has one value
}

// Targets are the results for another task than classification.
type Targets struct {
	Model string        `json:"model"`
	Score network.Score `json:"score"`

	// Multi-label: means over classes that are shown, F1 of all pairs of an image and a class, and the share of images
	// whose classes are exactly those found.
	Classes []LabelScore       `json:"classes,omitempty"`
	AP      *measures.Estimate `json:"mean_average_precision,omitempty"`
	AUC     *measures.Estimate `json:"mean_roc_auc,omitempty"`
	MacroF1 *measures.Estimate `json:"macro_f1,omitempty"`
	MicroF1 *measures.Estimate `json:"micro_f1,omitempty"`
	Exact   *measures.Estimate `json:"exact_match,omitempty"`

	Columns []ColumnScore `json:"columns,omitempty"` // of regression
}

// Print prints the results in lines, with each class if classes is set.
func (t *Targets) Print(out io.Writer, classes bool) error {
	b := terminal.NewPage(out)
	if t.Score.Task == data.Regression {
		b.Table(t.columnRows())
		fmt.Fprintf(b, "%s on %d images: loss %.4f, RMSE %.5g ± %.2g, MAE %.5g, R² %.4f\n", t.Model, t.Score.Images,
			t.Score.Loss, t.Score.RMSE, t.Score.Deviation, t.Score.MAE, t.Score.R2)
		return b.Flush(out)
	}
	if classes {
		b.Table(t.classRows())
	}
	fmt.Fprintln(b, t.found())
	fmt.Fprintf(b, "%s on %d images: loss %.4f, mAP %v %%, mean ROC-AUC %v %%\n", t.Model, t.Score.Images, t.Score.Loss,
		t.AP, t.AUC)
	return b.Flush(out)
}

// found describes the classes that are found at the thresholds.
func (t *Targets) found() string {
	return fmt.Sprintf("at the thresholds: macro F1 %v %%, micro F1 %v %%, all classes right %v %%", t.MacroF1, t.MicroF1,
		t.Exact)
}

// classRows has a row for each class of a multi-label set, below a head.
func (t *Targets) classRows() [][]string {
	rows := [][]string{{"class", "images", "threshold", "recall %", "precision %", "F1 %", "ROC-AUC %", "AP %"}}
	for _, c := range t.Classes {
		rows = append(rows, []string{c.Name, strconv.Itoa(c.Images), fmt.Sprintf("%.3f", c.Threshold), c.Recall.String(),
			c.Precision.String(), c.F1.String(), c.AUC.String(), c.AP.String()})
	}
	return rows
}

// columnRows has a row for each column of a regression, below a head.
func (t *Targets) columnRows() [][]string {
	rows := [][]string{{"column", "RMSE", "MAE", "R²"}}
	for _, c := range t.Columns {
		r2 := "-"
		if c.R2 != nil {
			r2 = fmt.Sprintf("%.4f", *c.R2)
		}
		rows = append(rows, []string{c.Name, numbers(c.RMSE), numbers(c.MAE), r2})
	}
	return rows
}

// numbers writes an estimate in units of the numbers.
func numbers(e measures.Estimate) string { return fmt.Sprintf("%.5g ± %.2g", e.Value, e.Error) }
