package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"onlinerna/data"
	"onlinerna/internal/golden"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/runs"
	"onlinerna/train/schedule"
)

// outcome is a score of a task on n images, about x per cent of them wrong; shift moves the wrong ones.
func outcome(task data.Task, n int, x float64, shift int) network.Score {
	x = math.Round(1e4*x) / 1e4 // without the rounding of sums
	s := network.Score{Loss: x / 25, Images: n}
	switch task {
	case data.MultiLabel:
		s.Task, s.MAP, s.Deviation = task, 100-x, .5+x/50
	case data.Regression:
		s.Task, s.RMSE, s.MAE, s.R2, s.Deviation, s.Loss = task, x/8, x/11, 1-x/120, x/200, x*x/64
	default:
		wrong, right := int(math.Round(x*float64(n)/100)), make([]bool, n)
		for i := range right {
			right[i] = (37*i+shift)%n >= wrong
		}
		s.Right = network.NewOutcomes(right)
		s.Top1, s.Top5 = 100-100*float64(wrong)/float64(n), 100-20*float64(wrong)/float64(n)
	}
	return s
}

func pointer(x float64) *float64 { return &x }

// options are those of a run with all kinds of weights and four phases of the learning rate.
func options(seed uint64, rate float64) train.Spec {
	return train.Spec{Model: "resnet20", Data: "cifar10", Seed: seed, Batch: 64, Accumulate: 2, Epochs: 8, ImageSize: 32,
		Classes:   []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse"},
		Schedule:  schedule.Schedule{Kind: schedule.Multi, Rate: rate, Gamma: .1, Milestones: []int{2, 4, 6}, Epochs: 8},
		Optimizer: "sgd", Momentum: pointer(.9), WeightDecay: pointer(5e-4), BestBy: hook.ByError, EMA: []float64{4, 12},
		Out: "runs", RNA: average.Options{Mode: average.Offline, Window: 3, Search: true, Beta: pointer(1), Start: 2,
			Averages: []int{2, 3}}}
}

// extrapolation is RNA's record of an epoch: one snapshot, two, none, the newest of several, then a search.
func extrapolation(epoch int, score network.Score) *hook.RNARecord {
	switch epoch {
	case 1, 3:
		return nil
	case 2:
		return &hook.RNARecord{Score: &score, Status: "ok", C: []float64{1}, NormC: 1}
	case 4:
		return &hook.RNARecord{Score: &score, Status: "ok", C: []float64{.25, .75}, NormC: .79057, Distance: pointer(.35355)}
	case 5:
		return &hook.RNARecord{Status: "rank deficient"}
	case 6:
		return &hook.RNARecord{Score: &score, Status: "ok", Choice: "kept"}
	}
	c := []float64{-.25, .5, .75}
	if epoch == 8 {
		c = []float64{-1.5, 1.25, 1.25}
	}
	return &hook.RNARecord{Score: &score, Status: "ok", C: c, NormC: .93541, Condition: 1e4,
		Distance: pointer(.7360), NoiseDistance: pointer(.25), Noise: .875, Lambda: pointer(1e-3), Choice: "extrapolated",
		NoDifference: epoch == 7, Candidates: []hook.CandidateRecord{
			{Kind: "kept", NormC: 1, Loss: pointer(.5), Status: "ok"},
			{Kind: "averaged", NormC: .57735, Loss: pointer(.49), Difference: pointer(-.01), Error: pointer(.004), Status: "ok"},
			{Kind: "extrapolated", Lambda: pointer(1e-3), NormC: .93541, Loss: pointer(.48), Difference: pointer(-.02),
				Error: pointer(.005), Status: "ok"},
			{Kind: "extrapolated", Lambda: pointer(1e-9), Status: "rank deficient"}}}
}

// trained is a run of the given number of epochs, with a score of each kind of weights that its options ask for.
func trained(name string, c train.Spec, done int) runs.Run {
	r := runs.Run{Name: name, Dir: "runs/" + name, Config: c, State: train.Done,
		Updated: time.Date(2026, 3, int(c.Seed%28)+1, 14, 5, 0, 0, time.UTC)}
	for e := 1; e <= done; e++ {
		of := func(n int, less float64, shift int) *network.Score {
			seed, rate := float64(c.Seed), c.Schedule.Rate
			s := outcome(c.Task, n, 8+30/float64(e)+1.5*seed+20*rate+2.5*seed*seed*rate-less*(1+.15*(seed-1)), shift)
			return &s
		}
		x := hook.EpochRecord{Kind: "epoch", Epoch: e, Step: 40 * e, Rate: c.Schedule.At(e - 1),
			Train: *of(5000+int(c.Seed), -4, 0), SGD: of(400, 0, 0), ImagesPerSecond: 1234.5 + float64(e),
			Seconds: hook.Seconds{Data: .25, Compute: 1.5 * float64(e), Eval: .5, RNA: .125, EMA: .0625, RNAEval: 1}}
		x.Train.Right = ""
		if e > 1 {
			x.SGDStats = of(400, .5, 3)
		}
		if c.RNA.Mode != average.Off {
			x.RNA = extrapolation(e, *of(400, 3, 11))
			for i, k := range c.RNA.Averages {
				if e > k {
					x.Averages = append(x.Averages, hook.AverageRecord{Epochs: k, Score: *of(400, 1.25+.25*float64(i), 5*k)})
				}
			}
		}
		if c.ScoredEMA() > 0 || c.EMADecay > 0 {
			x.EMA = of(400, 2.25, 7)
		}
		if c.Holdout > 0 {
			for _, s := range x.Scores() {
				less := map[network.Kind]float64{network.RNA: 2, network.EMA: 4, network.Average: 1}[s.Kind]
				s.Score = *of(250, less, 2*len(x.Held))
				x.Held = append(x.Held, s)
			}
		}
		r.History = append(r.History, x)
		r.History[e-1].Best = bestOf(r.History, c.BestBy)
	}
	return r
}

// examples are runs of each kind, by name.
func examples() map[string]runs.Run {
	list := map[string]runs.Run{}
	add := func(name string, done int, change func(c *train.Spec), after func(r *runs.Run)) {
		c := options(1, .1)
		if change != nil {
			change(&c)
		}
		r := trained(name, c, done)
		if after != nil {
			after(&r)
		}
		list[name] = r
	}
	each := func(f func(x *hook.EpochRecord)) func(r *runs.Run) {
		return func(r *runs.Run) {
			for i := range r.History {
				x := &r.History[i]
				f(x)
				x.Best = bestOf(r.History[:i+1], r.Config.BestBy)
			}
		}
	}
	add("plain", 8, nil, func(r *runs.Run) {
		last := &r.History[7]
		last.Others = []hook.ScoreRecord{{Kind: "mine\x1b", Score: outcome("", 400, 16.75, 9)}}
		last.Bad, last.Skipped, last.LossScale = 1, 2, 1024
	})
	add("held", 8, func(c *train.Spec) { c.Holdout = .05 }, nil)
	add("held-only", 8, func(c *train.Spec) { c.Holdout, c.RNA.PerEpoch = .05, 2 }, each(func(x *hook.EpochRecord) {
		x.SGD, x.SGDStats, x.EMA, x.Averages, x.Held = nil, nil, nil, nil, x.Held[:len(x.Held)-1]
		if x.RNA != nil {
			x.RNA.Score = nil
		}
	}))
	add("labels", 8, func(c *train.Spec) {
		c.Task, c.Model, c.Data, c.Accumulate, c.EMA = data.MultiLabel, "mobilenet_v2", "my photos", 1, nil
	}, nil)
	add("numbers", 8, func(c *train.Spec) {
		c.Task, c.Data, c.Classes, c.EMA, c.EMADecay = data.Regression, "data/ages", []string{"age", "height"}, nil, .999
	}, nil)
	add("by-loss", 8, func(c *train.Spec) {
		c.BestBy, c.Optimizer, c.Momentum, c.Beta1 = hook.ByLoss, "adamw", nil, pointer(.9)
		c.RNA, c.Schedule.Milestones, c.Out = average.Options{Mode: average.Off}, []int{5}, ""
	}, nil)
	add("labels-by-loss", 8, func(c *train.Spec) { c.Task, c.BestBy = data.MultiLabel, hook.ByLoss }, nil)
	add("short", 5, nil, func(r *runs.Run) { r.State = train.Interrupted })
	add("first", 1, nil, func(r *runs.Run) { r.State = train.Running })
	add("none", 0, nil, func(r *runs.Run) {
		r.State, r.Failure, r.Updated = train.Failed, &train.Failure{Error: "no memory\x1b left", Epoch: 1}, time.Time{}
	})
	add("unvalidated", 3, func(c *train.Spec) { c.EMA = nil }, each(func(x *hook.EpochRecord) {
		x.SGD, x.SGDStats, x.Averages, x.RNA = nil, nil, nil, nil
	}))
	add("diverged", 3, nil, func(r *runs.Run) {
		for i, loss := range []float64{12.5, 123456, math.NaN()} {
			r.History[i].SGD.Loss, r.History[i].Train.Loss = loss, 10*loss
		}
		r.State, r.Failure = train.Failed, &train.Failure{Error: "the loss is not finite", Epoch: 4, Diverged: true}
	})
	add("exact", 8, func(c *train.Spec) { c.EMA, c.RNA.Averages = nil, nil }, each(func(x *hook.EpochRecord) {
		for _, s := range []*network.Score{x.SGD, x.SGDStats, &x.Train} {
			if s != nil {
				s.Top1, s.Right, s.Loss = 100, "", 1e-9*float64(9-x.Epoch)
			}
		}
		x.Train.Loss = 1e-14
	}))
	single := func(c *train.Spec) { c.Holdout, c.EMA, c.RNA.Mode = .05, nil, average.Off }
	add("held-first", 1, single, nil)
	add("held-alone", 1, single, each(func(x *hook.EpochRecord) { x.SGD, x.Bad, x.Skipped = nil, 2, 1 }))
	add("one-image", 2, nil, each(func(x *hook.EpochRecord) { x.SGD.Images = 1 }))
	add("falling", 8, func(c *train.Spec) {
		c.Accumulate, c.Schedule.Milestones = 3, []int{4, 5, 6, 7}
	}, func(r *runs.Run) {
		for i := range r.History {
			r.History[i].Best = nil
		}
	})
	add("infinite", 2, nil, each(func(x *hook.EpochRecord) {
		x.SGD.Loss, x.SGD.Images, x.EMA.Loss, x.SGD.Right = math.Inf(1), 0, math.Inf(1), ""
	}))
	add("distilled", 8, func(c *train.Spec) {
		c.Init, c.Teacher, c.TeacherAlpha, c.TeacherTemperature = "resnet20.pth", "best.safetensors", .5, 4
		c.RNA.Mode, c.RNA.PerEpoch, c.RNA.SegmentMeans, c.RNA.Search, c.RNA.Tau = average.Online, 2, true, false, pointer(.5)
		c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: .1, Epochs: 8}
	}, each(func(x *hook.EpochRecord) { // the iterate is the best
		x.SGD.Top1, x.SGD.Right = 99, ""
	}))
	return list
}

// late leaves a run its last n epochs.
func late(r runs.Run, n int) runs.Run {
	r.History = r.History[max(0, len(r.History)-n):]
	return r
}

// heading separates the parts of a golden file.
func heading(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "\n== "+format+" ==\n", args...)
}

// orError writes an error, if there is one.
func orError(w io.Writer, err error) {
	if err != nil {
		fmt.Fprintln(w, "error:", err)
	}
}

// TestGoldenTables: the table and the lines of each kind of run.
func TestGoldenTables(t *testing.T) {
	var tables, lines strings.Builder
	list := examples()
	for _, name := range sorted(list) {
		r := list[name]
		heading(&tables, "%s", name)
		orError(&tables, Table(&tables, r.Config, r.History))
		if name == "plain" || name == "short" || name == "none" { // others have the same coefficients
			orError(&tables, CoefficientTable(&tables, r.History))
		}
		if name == "short" || name == "falling" {
			last := late(r, 1) // the rates of other epochs follow from the schedule
			orError(&tables, Table(&tables, last.Config, last.History))
		}
		fmt.Fprintln(&tables, "drawable", Drawable(r.Config, r.History), Extrapolated(r.History))
		heading(&lines, "%s", name)
		for _, x := range late(r, 2).History {
			fmt.Fprintf(&lines, "%s\n%s\n", EpochLine(&r.Config, &x), rankingLine(&r.Config, &x))
		}
	}
	golden.Check(t, "tables.txt", tables.String())
	heading(&lines, "no finite loss")
	x := list["infinite"].History[0]
	x.Best = list["plain"].History[0].Best
	c := list["plain"].Config
	fmt.Fprintf(&lines, "%s\n%s\n", EpochLine(&c, &x), rankingLine(&c, &x))
	golden.Check(t, "lines.txt", lines.String())
}

func sorted[T any](list map[string]T) (names []string) {
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// families are lists of runs to compare, by name.
func families() map[string][]runs.Run {
	all := examples()
	with := func(r runs.Run, change func(r *runs.Run)) runs.Run {
		change(&r)
		return r
	}
	var seeds []runs.Run
	for _, rate := range []float64{.1, .2, .05} {
		for seed := range uint64(3) {
			c := options(seed+1, rate)
			c.EMA, c.RNA.Averages = nil, nil
			done := 8 - int(seed)*int(20*rate)%3
			seeds = append(seeds, trained(fmt.Sprintf("rate-%g/seed-%d", rate, seed+1), c, done))
		}
	}
	again := trained("again", seeds[0].Config, 4)
	again.State = train.Stopped
	failed := with(trained("broken", seeds[3].Config, 2), func(r *runs.Run) {
		r.Config.Seed, r.State, r.Failure = 9, train.Failed, &train.Failure{Error: "the disk is full", Epoch: 3}
	})
	seeds = append(seeds, again, failed)
	division := func(seed uint64, split float64) runs.Run {
		c := options(seed, .1)
		c.ValSplit, c.Momentum = split, pointer(.5+split)
		return trained(fmt.Sprintf("split-%g-%d", split, seed), c, 2)
	}
	faster := func(task data.Task) runs.Run {
		c := options(1, .4)
		c.Task = task
		return trained("faster", c, 8)
	}
	return map[string][]runs.Run{
		"seeds": seeds, "one": {all["plain"]},
		"held":   {all["held"], with(all["plain"], func(r *runs.Run) { r.Config.Seed = 2 })},
		"same":   {all["plain"], with(all["plain"], func(r *runs.Run) { r.Name, r.Dir = "twin", "runs/twin" })},
		"states": {all["none"], all["diverged"], all["first"], all["short"], all["by-loss"]},
		"tasks": {all["plain"], all["labels"], all["numbers"],
			with(all["none"], func(r *runs.Run) { r.Config.Batch = 1 })},
		"twins":     {all["numbers"], with(all["numbers"], func(r *runs.Run) { r.Config.Seed, r.Name = 2, "twin" })},
		"ragged":    {trained("longer", options(2, .1), 5), all["first"], trained("shorter", options(3, .1), 2)},
		"bestless":  {all["falling"], with(all["plain"], func(r *runs.Run) { r.Config.Batch = 32 })},
		"images":    {with(all["plain"], func(r *runs.Run) { r.Config.Seed = 2 }), all["held-only"], all["held-alone"]},
		"scatters":  scattered(all["none"]),
		"labels":    {all["labels"], faster(data.MultiLabel), all["labels-by-loss"]},
		"numbers":   {all["numbers"], faster(data.Regression)},
		"apart":     {division(1, .1), division(2, .2), division(3, .1)},
		"strangers": {seeds[0], seeds[1], division(5, .1)},
		"nothing":   {all["none"]}, "unscored": {all["none"], all["unvalidated"]},
		"exact": {all["exact"], with(all["infinite"], func(r *runs.Run) { r.Config.Batch = 1 })},
		"given": {with(all["plain"], func(r *runs.Run) { r.Config.Given = []string{"lr"} }),
			with(all["plain"], func(r *runs.Run) { r.Config.Given, r.Config.Batch = []string{"lr"}, 32 })},
		"held-only": {all["held-only"], with(all["held-only"], func(r *runs.Run) { r.Config.Batch, r.Name = 32, "small" })},
	}
}

// scattered are runs that differ in many options.
func scattered(none runs.Run) (list []runs.Run) {
	for i := range 5 {
		x := float64(i + 1)
		c := options(1, .05*x)
		c.Batch, c.Momentum, c.WeightDecay, c.LabelSmoothing, c.HeadRate = 8<<i, pointer(x/8), pointer(x/1e4), x/50, x
		c.RNA.Window, c.RNA.Start, c.Optimizer = 2+i, 1+i, []string{"sgd", "adamw", "lion", "sgd", "sgd"}[i]
		list = append(list, trained(fmt.Sprint("run ", i), c, 1))
	}
	none.Config = list[3].Config
	list[3] = none
	list[4].Config.Task, list[4].History[0].Best.Score.Top1 = "", math.Inf(-1)
	return list
}

// TestGoldenCompare: comparisons as text, CSV and JSON, and tables of runs.
func TestGoldenCompare(t *testing.T) {
	var texts, tables, lines, objects strings.Builder
	list := families()
	for _, name := range sorted(list) {
		groups := GroupRuns(list[name])
		for _, b := range []io.Writer{&texts, &tables, &lines, &objects} {
			heading(b, "%s", name)
		}
		orError(&texts, Compare(&texts, groups))
		orError(&tables, RunTable(&tables, list[name]))
		orError(&lines, CompareCSV(&lines, groups))
		made := CompareJSON(groups)
		for i := range made.Groups {
			if name != "states" { // in others they are alike
				made.Groups[i].Runs = nil
			}
		}
		b, err := json.Marshal(made)
		orError(&objects, err)
		fmt.Fprintln(&objects, strings.ReplaceAll(string(b), "},", "},\n")) // lines to read
	}
	golden.Check(t, "compare.txt", texts.String())
	golden.Check(t, "runs.txt", tables.String())
	golden.Check(t, "compare.csv", lines.String())
	golden.Numbers(t, "compare.json", objects.String())
}

// TestGoldenGroups: the order of groups by each column, and their differences with all digits.
func TestGoldenGroups(t *testing.T) {
	var b strings.Builder
	list := families()
	for _, by := range append(GroupColumns(), "lr", "batch", "optimizer", "speed") {
		for _, reverse := range []bool{false, true} {
			heading(&b, "by %s, reversed %v", by, reverse)
			groups := GroupRuns(slices.Concat(list["states"], list["scatters"], list["seeds"], list["apart"]))
			orError(&b, SortGroups(groups, by, reverse))
			for i := range groups {
				fmt.Fprintf(&b, "%s %s\n", groups[i].Label, groups[i].names())
			}
		}
	}
	for _, name := range sorted(list) {
		heading(&b, "%s", name)
		groups := GroupRuns(list[name])
		for i := range groups {
			g := &groups[i]
			fmt.Fprintf(&b, "%s epoch %d, state %s, going %d, drawn %d, best %s\n", g.Label, g.Epoch, g.state(), g.going(),
				len(g.drawn()), g.best().Name)
			for _, m := range []Measure{g.Last, g.Best} {
				fmt.Fprintf(&b, "  of %d: error %.12g ± %.12g, loss %.12g ± %.12g\n", m.N, m.Error, m.ErrorSE, m.Loss, m.LossSE)
			}
			for _, score := range []func(runs.Run, int) *network.Score{lastAt, bestAt} {
				if d := g.from(&groups[0], score); d != nil {
					fmt.Fprintf(&b, "  %.12g ± %.12g, p %.12g, %s\n", d.Points, d.Half, d.P, d.how())
				}
			}
		}
	}
	golden.Numbers(t, "groups.txt", b.String())
}
