package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/stat"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/schedule"
)

// A contest is a net with its data, and the epochs after which ways to train are compared.
type contest struct {
	name   string
	config Spec
	epochs int
	rivals bool // the runs at a constant rate are followed by rivals
	brief  bool // one seed chooses the rates, and images are scored after the last epoch alone
}

// A way is an optimiser with the form of its schedule.
type way struct {
	name   string
	change func(c *Spec, rate float64, epochs int)
	rate   float64 // middle of the rates to choose among
	tuned  string  // the weights by which the rate is chosen
}

// The weights of all runs, beside the rivals'.
const (
	iterate = "SGD"
	restat  = "SGD, BatchNorm recalibrated"
	byEMA   = "EMA 12"
	byRNA   = "RNA of 5 epochs' ends"
)

// A mark is the score of weights: error in percent and loss on the validation images, and the loss on held-out ones.
type mark struct {
	Name  string  `json:"name"`
	Error float64 `json:"error"`
	Loss  float64 `json:"loss"`
	Held  float64 `json:"held"`
}

// Another step of a linear decay would have the rate zero.
var (
	linear = way{"linear decay", func(c *Spec, rate float64, epochs int) {
		c.Schedule = schedule.Schedule{Kind: schedule.Linear, Rate: rate, Final: ptr(rate / float64(epochs))}
	}, 0.1, iterate}
	constant = way{"constant rate", func(c *Spec, rate float64, _ int) {
		c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: rate}
		averages(c)
	}, 0.05, byEMA}
)

// averages adds the EMA and RNA to a run.
func averages(c *Spec) {
	c.EMA, c.RNA = []float64{12}, average.Options{Mode: average.Offline, Window: 5, Averages: []int{}}
}

// contests are three nets on three sets: LeNet, and without rivals two with BatchNorm, conv6 on the same budget and
// ResNet-20 on a brief one.
func contests() []contest {
	base := Spec{Model: "lenet", Batch: 128, WeightDecay: ptr(5e-4), Holdout: 0.1, Threads: 1, Workers: 1,
		RNA: average.Options{Mode: average.Off}}
	cifar, mnist := base, base
	cifar.Data, cifar.StepsLimit = cifarFolder(), 70
	mnist.Data = filepath.Join(filepath.Dir(cifarFolder()), "mnist")
	conv6 := func(c Spec) Spec {
		c.Model = "conv6"
		return c
	}
	brief := func(c Spec) Spec {
		c.Model, c.Batch, c.StepsLimit, c.ValLimit, c.Holdout = "resnet20", 32, 25, 64, 0
		return c
	}
	return []contest{
		{name: "LeNet, glyphs", config: base, epochs: 10, rivals: true},
		{name: "LeNet, CIFAR-10", config: cifar, epochs: 5, rivals: true},
		{name: "LeNet, MNIST", config: mnist, epochs: 10},
		{name: "conv6, glyphs", config: conv6(base), epochs: 10},
		{name: "conv6, CIFAR-10", config: conv6(cifar), epochs: 5},
		{name: "conv6, MNIST", config: conv6(mnist), epochs: 10},
		{name: "ResNet-20, glyphs, brief", config: brief(base), epochs: 7, brief: true},
		{name: "ResNet-20, CIFAR-10, brief", config: brief(cifar), epochs: 7, brief: true},
		{name: "ResNet-20, MNIST, brief", config: brief(mnist), epochs: 7, brief: true},
	}
}

// TestRivals compares averages of all kinds, computed along one run at a constant rate, with a run whose rate falls
// linearly to zero. It prints a Markdown table for each contest. ONLINERNA_STUDY is "rivals", or "quick" for a mere trial.
func TestRivals(t *testing.T) {
	studyOf(t, "rivals", func(t *testing.T, l *ledger, c contest, seeds int) {
		if !c.rivals {
			t.Skip("it has no rivals")
		}
		results, rates := c.compete(t, l, []way{linear, constant}, seeds)
		var rows [][]mark
		for _, r := range results {
			all := r[1][1:] // without the iterate at a constant rate
			rows = append(rows, slices.Concat(r[0][:1], r[1], []mark{
				least("the best on held-out images of averages", all[:5]), least("the best on held-out images of all", all)}))
			rows[len(rows)-1][0].Name = linear.name
		}
		fmt.Printf("\n%s, %d epochs, %d seeds, linear from %g, constant %g\n\n%s", c.name, c.epochs, len(rows), rates[0],
			rates[1], compare(rows))
	})
}

// studyOf runs a study of contests, if ONLINERNA_STUDY names it, on those with ONLINERNA_SETS in their names.
func studyOf(t *testing.T, name string, f func(t *testing.T, l *ledger, c contest, seeds int)) {
	how := os.Getenv("ONLINERNA_STUDY")
	if how != name && how != "quick" {
		t.Skipf("set ONLINERNA_STUDY to %s, or to quick, to run it", name)
	}
	seeds := 10
	if how == "quick" {
		seeds = 2
		t.Setenv("ONLINERNA_RESULTS", t.TempDir())
	}
	l := openLedger(t)
	for _, c := range contests() {
		if !strings.Contains(c.name, os.Getenv("ONLINERNA_SETS")) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if _, err := os.Stat(c.config.Data); c.config.Data != "" && err != nil {
				t.Skip(err)
			}
			if how == "quick" {
				c.epochs, c.config.StepsLimit, c.config.ValLimit = 3, 4, 1
			}
			f(t, l, c, seeds)
		})
	}
}

// compete returns the outcomes of the ways for each seed, and their rates: the best of five, each twice another, on two
// other seeds, a brief contest's on one. It stops at the seed at which the time is over.
func (c contest) compete(t *testing.T, l *ledger, ways []way, seeds int) (results [][][]mark, rates []float64) {
	for _, w := range ways {
		best, lowest := 0.0, 101.0
		others := []uint64{101, 102}
		if c.brief {
			others = others[:1]
		}
		for _, by := range []float64{1, 2, .5, 4, .25} {
			wrong := 0.0
			for _, seed := range others {
				r, ok := c.result(t, l, w, w.rate*by, seed)
				if !ok {
					t.Skip("the time is over: run it again to go on")
				}
				wrong += r[slices.IndexFunc(r, func(o mark) bool { return o.Name == w.tuned })].Error / float64(len(others))
			}
			if wrong < lowest {
				best, lowest = w.rate*by, wrong
			}
			t.Logf("%s, %s, rate %g: error of %s %.2f %%", c.name, w.name, w.rate*by, w.tuned, wrong)
		}
		rates = append(rates, best)
	}
	for seed := range uint64(seeds) {
		var row [][]mark
		for i, w := range ways {
			r, ok := c.result(t, l, w, rates[i], seed+1)
			if !ok {
				return results, rates
			}
			row = append(row, r)
		}
		results = append(results, row)
	}
	return results, rates
}

// shorten leaves out of a brief contest's run the averages that nothing reads, and scores iterates with BatchNorm
// recalibrated beside themselves.
func (c contest) shorten(x *Spec, w way, seed uint64) {
	switch {
	case seed > 100: // it chooses a rate
		if x.RNA.Mode = average.Off; w.tuned != byEMA {
			x.EMA = nil
		}
	case x.RNA.Mode == average.Off: // too late for an extrapolation
		x.RNA = average.Options{Mode: average.Offline, Window: 5, Start: c.epochs, Averages: []int{}}
	default:
		x.RNA.Every = c.epochs
	}
}

// train trains a run. A brief contest's has validation images in its last epoch only.
func (c contest) train(r *Run) error {
	if c.brief {
		val := r.in.val
		r.in.val = nil
		err := r.TrainTo(context.Background(), c.epochs-1)
		if r.in.val = val; err != nil {
			return err
		}
	}
	return r.Train(context.Background())
}

// result returns the outcomes of a run, the iterate's first. A run that diverges has those of guessing.
func (c contest) result(t *testing.T, l *ledger, w way, rate float64, seed uint64) ([]mark, bool) {
	key := fmt.Sprintf("%s, %d epochs, %s %g, seed %d", c.name, c.epochs, w.name, rate, seed)
	return recall(t, l, key, func() []mark {
		x := c.config
		x.Seed, x.Epochs = seed, c.epochs
		w.change(&x, rate, c.epochs)
		var h *rivals
		var hooks []hook.Hook
		if c.rivals && w.name == constant.name && seed <= 100 {
			h = &rivals{at: c.epochs}
			hooks, x.EMA, x.RNA.Mode = append(hooks, h), nil, average.Off
		}
		if c.brief {
			c.shorten(&x, w, seed)
		}
		r := newRun(t, x, cpuDevice(t, 1), hooks...)
		defer r.Close()
		if h != nil {
			h.run = r
		}
		err := c.train(r)
		var list []mark
		if d := (*DivergedError)(nil); errors.As(err, &d) {
			for _, name := range []string{iterate, restat, byRNA, byEMA} {
				list = append(list, mark{name, 90, 2.303, 2.303})
			}
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		if h != nil {
			return h.marks
		}
		rec := r.History[c.epochs-1]
		names := map[network.Kind]string{network.SGD: iterate, network.SGDStats: restat, network.RNA: byRNA,
			network.EMA: byEMA}
		for _, s := range rec.Scores() {
			if name := names[s.Kind]; name != "" {
				m := mark{Name: name, Error: s.Score.Error(), Loss: s.Score.Loss}
				if held := rec.HeldScore(s.Kind); held != nil {
					m.Held = held.Loss
				}
				list = append(list, m)
			}
		}
		return list
	})
}

// least returns the mark with the lowest loss on the held-out images.
func least(name string, list []mark) mark {
	b := slices.MinFunc(list, func(a, b mark) int {
		if a.Held < b.Held {
			return -1
		}
		return 1
	})
	b.Name = name
	return b
}

// compare returns a table of outcomes against the first of them and against the power average with γ = 12: differences
// and their 95 % intervals over seeds.
func compare(seeds [][]mark) string {
	if len(seeds) == 0 {
		return "no seed yet\n"
	}
	base := slices.IndexFunc(seeds[0], func(o mark) bool { return o.Name == byEMA })
	var s strings.Builder
	s.WriteString("| weights | error % | loss | to linear: points | loss | to EMA 12: points | loss |\n|-|-|-|-|-|-|-|\n")
	for i, v := range seeds[0] {
		column := func(format string, value func(list []mark) float64) {
			var x []float64
			for _, list := range seeds {
				x = append(x, value(list))
			}
			fmt.Fprintf(&s, " | %s", withInterval(format, x))
		}
		fmt.Fprintf(&s, "| %s", v.Name)
		column("%.2f", func(l []mark) float64 { return l[i].Error })
		column("%.4f", func(l []mark) float64 { return l[i].Loss })
		for _, to := range []int{0, base} {
			column("%+.2f", func(l []mark) float64 { return l[i].Error - l[to].Error })
			column("%+.4f", func(l []mark) float64 { return l[i].Loss - l[to].Loss })
		}
		s.WriteString(" |\n")
	}
	return s.String()
}

// withInterval writes a mean with half of its 95 % interval by Student's t, in bold if the whole interval is below
// zero.
func withInterval(format string, x []float64) string {
	m, e := stat.Interval(x)
	s := fmt.Sprintf(format, m) + fmt.Sprintf(" ± "+strings.ReplaceAll(format, "+", ""), e)
	if m < -e {
		s = "**" + s + "**"
	}
	return s
}
