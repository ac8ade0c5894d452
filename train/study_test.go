package train

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/schedule"
)

// studied is a setting of the study.
type studied struct {
	name   string
	config Spec
	epochs []int // epochs to average over
	check  func(t *testing.T, r results)
}

// results holds a setting's mean differences from the SGD iterate by kind of weights, one number per seed.
type results struct {
	sgd    []float64            // error of SGD in percent
	points map[string][]float64 // differences of errors
	loss   map[string][]float64
}

// The kinds of weights that the study compares, in the order of its table.
var compared = []string{"SGD, BatchNorm recalibrated", "RNA 5", "average 5", "average 10", "EMA"}

// TestStudy measures the effect of RNA on small nets, compares it with measurements in PyTorch, and prints a Markdown
// table. It runs when ONLINERNA_STUDY is 1, which takes minutes for the glyphs and far longer for CIFAR-10; "quick"
// runs the same code on a few images and checks no number.
func TestStudy(t *testing.T) {
	how := os.Getenv("ONLINERNA_STUDY")
	if how != "1" && how != "quick" {
		t.Skip("set ONLINERNA_STUDY to 1, or to quick, to run it")
	}
	seeds := 3
	if how == "quick" {
		seeds = 2
	}
	var table strings.Builder
	fmt.Fprintf(&table, "| setting | SGD error %% | %s |\n|-|-%s|\n", strings.Join(compared, " | "),
		strings.Repeat("|-", len(compared)))
	for _, s := range settings(t) {
		if how == "quick" {
			s.config.StepsLimit, s.config.ValLimit, s.config.RNA.Batches = 2, 1, 1
		}
		r := study(t, s, seeds)
		fmt.Fprintf(&table, "| %s | %s", s.name, spread("%.1f", r.sgd))
		for _, k := range compared {
			if len(r.points[k]) == 0 {
				table.WriteString(" | ")
				continue
			}
			fmt.Fprintf(&table, " | %s / %s", spread("%+.2f", r.points[k]), spread("%+.3f", r.loss[k]))
		}
		table.WriteString(" |\n")
		if how == "1" {
			s.check(t, r)
		}
	}
	fmt.Printf("Error minus SGD's in points / loss minus SGD's, mean ± spread of %d seeds, all on "+
		"validation images.\n\n%s", seeds, table.String())
}

// settings returns the study's settings whose data is available.
func settings(t *testing.T) []studied {
	glyphs := Spec{Model: "lenet", Batch: 128, Epochs: 15, WeightDecay: ptr(5e-4), EMA: []float64{12},
		Schedule: schedule.Schedule{Kind: schedule.Constant, Rate: 0.05}, RNA: average.Options{Window: 5,
			Averages: []int{5, 10}}}
	linear := glyphs
	linear.Schedule = schedule.Schedule{Kind: schedule.Linear, Rate: 0.05, Final: ptr(0.0005)}
	late := []int{11, 12, 13, 14, 15}
	list := []studied{
		{"glyphs, LeNet, rate 0.05, epochs 11–15", glyphs, late, func(t *testing.T, r results) {
			r.most(t, "RNA 5", -0.8, -0.05)
			if d := averaged(r.points["RNA 5"]) - averaged(r.points["average 5"]); math.Abs(d) > 0.3 {
				t.Errorf("RNA is %+.2f points from the average, want 0.3 at most", d)
			}
		}},
		{"glyphs, LeNet, rate 0.05 → 0.0005, epochs 11–15", linear, late, func(t *testing.T, r results) {
			if d := averaged(r.points["RNA 5"]); math.Abs(d) > 0.4 {
				t.Errorf("falling rate: RNA is %+.2f points from SGD, want 0.4 at most", d)
			}
			if d := averaged(r.points["average 10"]); d < 1 {
				t.Errorf("falling rate: the average of 10 is %+.2f points from SGD, want 1 at least", d)
			}
		}},
	}
	cifar := cifarFolder()
	if _, err := os.Stat(cifar); err != nil {
		t.Logf("without CIFAR-10: %v", err)
		return list
	}
	conv := glyphs
	conv.Model, conv.Data, conv.Schedule = "conv6", cifar, schedule.Schedule{Kind: schedule.Constant, Rate: 0.1}
	step := conv
	step.Schedule = schedule.Schedule{Kind: schedule.Multi, Rate: 0.1, Gamma: 0.1, Milestones: []int{10}}
	return append(list,
		studied{"CIFAR-10, conv6, rate 0.1, epochs 12 and 15", conv, []int{12, 15}, func(t *testing.T, r results) {
			r.most(t, "RNA 5", -3.5, 0)
			if d := averaged(r.points["RNA 5"]) - averaged(r.points[compared[0]]); d > -2 {
				t.Errorf("RNA is %+.2f points from SGD with statistics re-estimated, want -2 at most", d)
			}
		}},
		studied{"CIFAR-10, conv6, rate 0.1, a tenth from epoch 11, epochs 12–15", step, late[1:],
			func(t *testing.T, r results) {
				if d := averaged(r.points["RNA 5"]); math.Abs(d) > 0.4 {
					t.Errorf("falling rate: RNA is %+.2f points from SGD, want 0.4 at most", d)
				}
				if d := averaged(r.points["average 10"]); d < 1 {
					t.Errorf("falling rate: the average of 10 is %+.2f points from SGD, want 1 at least", d)
				}
			}})
}

// cifarFolder is the folder of CIFAR-10, which may be missing.
func cifarFolder() string {
	if dir := os.Getenv("ONLINERNA_CIFAR10"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "shared", "data", "cifar10")
}

// most fails if a kind of weights exceeds SGD by more than points or loss.
func (r results) most(t *testing.T, kind string, points, loss float64) {
	t.Helper()
	if p, l := averaged(r.points[kind]), averaged(r.loss[kind]); p > points || l > loss {
		t.Errorf("%s is %+.2f points and %+.3f loss from SGD, want %+.2f and %+.3f at most", kind, p, l, points, loss)
	}
}

func study(t *testing.T, s studied, seeds int) results {
	res := results{points: map[string][]float64{}, loss: map[string][]float64{}}
	dev := cpuDevice(t, 0)
	for seed := range seeds {
		c := s.config
		c.Seed = uint64(seed + 1)
		r := newRun(t, c, dev)
		if err := r.Train(context.Background()); err != nil {
			t.Fatal(err)
		}
		var sgd []float64
		points, loss := map[string][]float64{}, map[string][]float64{}
		for _, rec := range r.History {
			if !slices.Contains(s.epochs, rec.Epoch) {
				continue
			}
			sgd = append(sgd, rec.SGD.Error())
			for k, v := range scoresOf(rec) {
				if v != nil {
					points[k] = append(points[k], v.Error()-rec.SGD.Error())
					loss[k] = append(loss[k], v.Loss-rec.SGD.Loss)
				}
			}
		}
		res.sgd = append(res.sgd, averaged(sgd))
		for k := range points {
			res.points[k] = append(res.points[k], averaged(points[k]))
			res.loss[k] = append(res.loss[k], averaged(loss[k]))
		}
		r.Close()
		t.Logf("%s: seed %d done", s.name, seed+1)
	}
	return res
}

// scoresOf lists the scores of a record by the study's names.
func scoresOf(rec hook.EpochRecord) map[string]*network.Score {
	m := map[string]*network.Score{compared[0]: rec.SGDStats, "RNA 5": scoreOf(rec.RNA), "EMA": rec.EMA}
	for _, a := range rec.Averages {
		m[fmt.Sprintf("average %d", a.Epochs)] = &a.Score
	}
	return m
}

func averaged(x []float64) float64 { return mean(uniform(len(x)), column(x))[0] }

// column returns x as vectors of one number.
func column(x []float64) [][]float64 {
	var v [][]float64
	for _, a := range x {
		v = append(v, []float64{a})
	}
	return v
}

// spread formats the mean and the standard deviation over seeds.
func spread(format string, x []float64) string {
	m, sum := averaged(x), 0.
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return fmt.Sprintf(format, m) + fmt.Sprintf(" ± "+strings.ReplaceAll(format, "+", ""),
		math.Sqrt(sum/float64(max(1, len(x)-1))))
}
