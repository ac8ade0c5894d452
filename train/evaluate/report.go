package evaluate

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"onlinerna/data"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train/evaluate/measure"
	"onlinerna/train/network"
	"onlinerna/train/report"
)

// Report holds the results of an evaluation.
type Report struct {
	Model       string        `json:"model"`
	Score       network.Score `json:"score"`
	Interval    [2]float64    `json:"top1_interval"`     // 95 %, Wilson's, in percent
	Calibration float64       `json:"calibration_error"` // expected, over 15 bins of confidence
	Classes     []ClassScore  `json:"classes"`

	// Means over classes with images, or, for MacroF1, that occur; the last two are nil without Options.Ranking.
	BalancedAccuracy measure.Estimate  `json:"balanced_accuracy"`
	MacroF1          measure.Estimate  `json:"macro_f1"`
	AUC              *measure.Estimate `json:"roc_auc,omitempty"`
	AP               *measure.Estimate `json:"average_precision,omitempty"`

	Targets *report.Targets `json:"-"` // of another task than classification; then all the above is empty

	outputs   *network.Collector // for Targets
	names     []string
	confusion measure.Confusion
	ranking   bool   // by the odds
	odds      []odds // of all images, if ranking
	bins      [15]struct{ n, right, confidence float64 }
	worst     *worst // nil if not requested
	best      *worst
	files     map[int]string // of the listed images, by their index
}

// lists are the requested lists of images.
func (r *Report) lists() (list []*worst) {
	for _, l := range []*worst{r.worst, r.best} {
		if l != nil {
			list = append(list, l)
		}
	}
	return list
}

func newReport(names []string, outputs int) *Report {
	r := &Report{confusion: make(measure.Confusion, outputs)}
	for i := range r.confusion {
		r.confusion[i] = make([]int, outputs)
		name := strconv.Itoa(i)
		if i < len(names) {
			name = names[i]
		}
		r.names = append(r.names, name)
	}
	return r
}

// add adds the logits of a batch.
func (r *Report) add(b *data.Batch, logits []float32) {
	if r.outputs != nil {
		r.outputs.Add(b, logits)
		return
	}
	k := len(r.names)
	for i, label := range b.Labels[:b.N] {
		p := network.Softmax(logits[i*k : (i+1)*k])
		best := 0
		for j, x := range p {
			if x > p[best] {
				best = j
			}
		}
		if int(label) < 0 || int(label) >= k || math.IsNaN(p[best]) {
			continue
		}
		r.confusion[label][best]++
		if r.ranking {
			r.odds = append(r.odds, newOdds(b.Index[i], label, logits[i*k:(i+1)*k]))
		}
		bin := &r.bins[min(int(p[best]*float64(len(r.bins))), len(r.bins)-1)]
		bin.n++
		bin.confidence += p[best]
		if int(label) == best {
			bin.right++
		}
	}
}

// finish computes the interval, the calibration error and the scores of classes.
func (r *Report) finish(model string, s network.Score) {
	r.Model, r.Score = model, s
	r.Interval = wilson(s.Top1/100, s.Images)
	for _, b := range r.bins {
		r.Calibration += math.Abs(b.right-b.confidence) / float64(max(s.Images, 1))
	}
	r.finishClasses()
}

// wilson returns Wilson's 95 % interval for a share p of n, in percent.
func wilson(p float64, n int) [2]float64 {
	if n == 0 {
		return [2]float64{0, 100}
	}
	const z = 1.959963984540054
	k := float64(n)
	mid, half := p+z*z/(2*k), z*math.Sqrt(p*(1-p)/k+z*z/(4*k*k))
	// rounding may exceed the range
	return [2]float64{max(0, 100*(mid-half)/(1+z*z/k)), min(100, 100*(mid+half)/(1+z*z/k))}
}

// writeConfusion writes the confusion matrix: a row for each label that occurs, a column for each class.
func (r *Report) writeConfusion(w io.Writer) error {
	c := csv.NewWriter(w)
	head := []string{"label"}
	for _, name := range r.names {
		head = append(head, text.Cell(name))
	}
	if err := c.Write(head); err != nil {
		return err
	}
	for i, row := range r.confusion {
		line, n := []string{head[i+1]}, 0
		for _, x := range row {
			line, n = append(line, strconv.Itoa(x)), n+x
		}
		if n > 0 {
			if err := c.Write(line); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

// Print prints the report in lines, with each class if classes is set.
func (r *Report) Print(out io.Writer, classes bool) error {
	if r.Targets != nil {
		return r.Targets.Print(out, classes)
	}
	b := terminal.NewPage(out)
	if classes {
		b.Table(r.classRows())
	}
	fmt.Fprintln(b, r.means())
	fmt.Fprintf(b, "top-1 between %.2f and %.2f %% (95 %%, Wilson), calibration error %.4f\n", r.Interval[0], r.Interval[1],
		r.Calibration)
	fmt.Fprintf(b, "%s on %d images: loss %.4f, top-1 %.2f %%", r.Model, r.Score.Images, r.Score.Loss, r.Score.Top1)
	if len(r.names) > 5 {
		fmt.Fprintf(b, ", top-5 %.2f %%", r.Score.Top5)
	}
	fmt.Fprintln(b)
	return b.Flush(out)
}
