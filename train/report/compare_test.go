package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"image/color"
	"io"
	"math"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/runs"
	"onlinerna/train/schedule"
)

// compared is the text of Compare.
func compared(t *testing.T, list ...runs.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := Compare(&b, GroupRuns(list)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCompare(t *testing.T) {
	c, h := demo()
	for i := range h {
		h[i].Best = &hook.BestRecord{ScoreRecord: hook.ScoreRecord{Kind: network.RNA, Score: *score(16, .3)}, Epoch: 9}
	}
	other := c
	other.Schedule.Rate, other.Classes, other.Out = 0.2, []string{"a rather long name of a class", "b"}, "elsewhere"
	third := c
	third.Epochs = 11
	list := []runs.Run{{Name: "first", Config: c, History: h, State: train.Done},
		{Name: "second", Config: other, History: h[:7], State: train.Running},
		{Name: "third", Config: third, State: train.Failed, Failure: &train.Failure{Error: "no memory"}}}
	got := compared(t, list...)
	want := strings.TrimPrefix(`
A  first
B  second
C  third

   classes                   epochs  lr   epoch  error %  loss    best %  loss    state
A  -                         10      0.1  10     20.00    0.4000  16.00   0.3000  done
B  a rather lo…of a class,b  10      0.2  7      26.00    0.5714  16.00   0.3000  running
C  -                         11      0.1  0      -        -       -       -       failed
Errors and losses are those on validation images; best by error.
third failed: no memory

Errors less those of A, in points:
   last − A      p  best − A     p  over
B  +6.00 ± 1.19  -  0.00 ± 1.04  -  two sets of images
C  -             -  -            -  -
Over images: ± is a standard error, p is McNemar's, of the same images. Neither knows of other seeds.
p is not corrected for 2 comparisons: below 0.025 it is significant at 5 % for all of them (Bonferroni).
- stands for groups that have no seed in common with it, or no finished epoch.
`, "\n")
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := compared(t, list[0]); strings.Contains(got, "less") || !strings.Contains(got, "A  10") {
		t.Errorf("one run:\n%s", got)
	}
}

// The images that chose the best weights are named where they are others, and scores of several tasks have their names.
func TestCompareChoosers(t *testing.T) {
	held, plain, other := run(1, .1, 200), run(1, .2, 190), run(1, .3, 0)
	for _, r := range []*runs.Run{&held, &plain, &other} {
		r.History[0].Best = &hook.BestRecord{ScoreRecord: hook.ScoreRecord{Kind: network.SGD, Score: *score(16, .3)},
			Epoch: 1}
	}
	held.History[0].Held = []hook.ScoreRecord{{Kind: network.SGD, Score: *score(16, .3)}}
	if got := compared(t, plain); !strings.Contains(got, "on validation images; best by loss.") {
		t.Errorf("one set:\n%s", got)
	}
	if got := compared(t, held); !strings.Contains(got, "on validation images; best by loss on held-out images.") {
		t.Errorf("two sets:\n%s", got)
	}
	var b bytes.Buffer
	if err := RunTable(&b, []runs.Run{held}); err != nil || !strings.Contains(b.String(), "by loss on held-out images.") {
		t.Errorf("%v\n%s", err, b.String())
	}
	rows := Rows([]runs.Run{held, plain})
	if rows[0].Images != onValidation || rows[0].Best.Images != onHeldOut || rows[1].Best.Images != onValidation {
		t.Errorf("%+v %+v", rows[0].Best, rows[1].Best)
	}
	other.Config.Task = data.Regression
	other.History[0].SGD = &network.Score{Task: data.Regression, RMSE: 1.25, Images: 9}
	other.History[0].Best.Score = *other.History[0].SGD
	got := compared(t, plain, other)
	for _, want := range []string{"  error 19.00 %  ", "  RMSE 1.25  ", "\nScores and losses are those on"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if rows := Rows([]runs.Run{other}); rows[0].Measure != "RMSE" || *rows[0].Error != 1.25 {
		t.Errorf("%+v", rows[0])
	}
}

// run is a run with one epoch.
func run(seed uint64, rate float64, wrong int) runs.Run {
	c := train.Spec{Data: "d", Seed: seed, Epochs: 1, Schedule: schedule.Schedule{Rate: rate}}
	return runs.Run{Name: "r", Config: c, History: []hook.EpochRecord{{Epoch: 1, SGD: known(0, wrong)}}, State: train.Done}
}

// Runs on the same images have paired errors; other data, or another seed that divides the data, prevents pairing.
func TestComparePairs(t *testing.T) {
	const paired = "\nB  -1.00 ± 0.31  0.002  -         -  same images\n"
	a, b := run(1, .1, 200), run(1, .2, 190)
	if got := compared(t, a, b); !strings.Contains(got, paired) || strings.Contains(got, "over seeds") {
		t.Errorf("the same images\n%s", got)
	}
	b.Config.Seed = 2
	if got := compared(t, a, b); !strings.Contains(got, "-1.00 ± 0.31  0.002") {
		t.Errorf("another seed\n%s", got)
	}
	a.Config.ValSplit, b.Config.ValSplit = .1, .1
	if got := compared(t, a, b); strings.Contains(got, "0.002") || !strings.Contains(got, "-1.00 ± 1.77") {
		t.Errorf("another division\n%s", got)
	}
	b.Config.Data, b.Config.Seed = "e", 1
	if got := compared(t, a, b); !strings.Contains(got, "-1.00 ± 1.77") {
		t.Errorf("other data\n%s", got)
	}
}

// By hand: standard errors 0.1/√3 and 0.2646/√3; differences by seed -1, -1, -1.3, whose mean has the standard error 0.1
// and t = -11 with two degrees of freedom: p = 0.0082, and a 95 % interval of ± 4.303·0.1.
func TestGroups(t *testing.T) {
	failed := run(7, .1, 900)
	failed.State = train.Failed
	list := []runs.Run{run(1, .1, 200), run(2, .1, 201), run(3, .1, 199), run(3, .2, 186), run(1, .2, 190), run(2, .2, 191),
		run(4, .3, 100), failed}
	got := compared(t, list...)
	for _, want := range []string{"\nA  0.1  1      20.00 ± 0.06  0.5000 ± 0.0000", "  3     3 done, 1 failed\n",
		"\nB  0.2  1      18.90 ± 0.15", "\nC  0.3  1      10.00         0.5000",
		"\nB  -1.10 ± 0.43  0.0082  ", "  3 seeds\n", "\nC  -             -  "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	groups := GroupRuns(list)
	if err := SortGroups(groups, "last", false); err != nil || groups[0].Runs[0].Config.Seed != 4 ||
		groups[0].Label != "A" || groups[2].Last.Error < 19.99 {
		t.Errorf("sorted by error: %v %+v", err, groups)
	}
	if err := SortGroups(groups, "lr", true); err != nil || groups[0].Runs[0].Config.Schedule.Rate != .3 {
		t.Errorf("by rate: %v", err)
	}
	if err := SortGroups(groups, "bets", false); err == nil || !strings.Contains(err.Error(), `unknown option "bets"`) {
		t.Errorf("by an unknown name: %v", err)
	}
	if label(25) != "Z" || label(26) != "AA" || label(27+26) != "BB" {
		t.Error("labels", label(25), label(26), label(53))
	}
}

// A group's scores are those after the last epoch that all of its runs have finished.
func TestCommonEpoch(t *testing.T) {
	long, short := run(1, .1, 200), run(2, .1, 100)
	long.History = append(long.History, hook.EpochRecord{Epoch: 2, SGD: known(0, 0)})
	short.State = train.Running
	g := GroupRuns([]runs.Run{long, short})[0]
	if g.Epoch != 1 || math.Abs(g.Last.Error-15) > 1e-9 || g.Last.N != 2 || g.state() != "1 running, 1 done" {
		t.Errorf("%+v, %s", g, g.state())
	}
}

func TestCompareFiles(t *testing.T) {
	groups := GroupRuns([]runs.Run{run(1, .1, 200), run(2, .1, 210), run(1, .2, 100), run(2, .2, 120)})
	b, err := json.Marshal(CompareJSON(groups))
	if err != nil {
		t.Fatal(err)
	}
	var c Comparison
	if err := json.Unmarshal(b, &c); err != nil || len(c.Groups) != 2 || c.Base != "A" || c.Groups[1].Options["lr"] != "0.2" {
		t.Fatalf("%v: %s", err, b)
	}
	if d := c.Groups[1].ToLast; d == nil || math.Abs(*d.Points+9.5) > 1e-9 || d.Seeds != 2 || d.Half95 == nil ||
		math.Abs(*d.Half95-.5*12.7062047) > 1e-6 || d.SE != nil || c.Groups[0].ToLast != nil || c.Groups[0].Best != nil {
		t.Errorf("%s", b)
	}
	var text bytes.Buffer
	if err := CompareCSV(&text, groups); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil || len(rows) != 5 || strings.Join(rows[0][10:], " ") != "lr seed" && strings.Join(rows[0][10:],
		" ") != "seed lr" || rows[4][1] != "B" || rows[4][4] != "12" {
		t.Errorf("%v %q", err, rows)
	}
}

func TestPlotGroups(t *testing.T) {
	c, h := demo()
	going := c
	going.Schedule.Rate = .2
	list := []runs.Run{{Name: "first", Config: c, History: h, State: train.Done},
		{Name: "second", Config: going, History: h[:7], State: train.Running}}
	var b bytes.Buffer
	draw := func(list ...runs.Run) string {
		b.Reset()
		if err := PlotGroups(&b, "svg", GroupRuns(list)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := draw(list...)
	for _, want := range []string{"A: first", "B: second, still going", "; 1 still going",
		"Phase of the learning rate ends"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the figure", want)
		}
	}
	short, long := run(1, .1, 200), run(1, .2, 200)
	long.Config.Epochs = 7
	for _, pair := range [][2]runs.Run{{short, long}, {long, short}} {
		if !strings.Contains(draw(pair[0], pair[1]), ">7<") {
			t.Error("the axis ends before the last epoch of a run")
		}
	}
	again := list[0]
	again.Config.Seed = 2
	if got := draw(list[0], again); !strings.Contains(got, "A: mean of 2 runs") || strings.Contains(got, "going") ||
		!strings.Contains(got, "2 runs in 1 group, last iterates") {
		t.Error("no group in the figure")
	}
	steady := list[0]
	steady.Config.Schedule.Kind = schedule.Constant
	if strings.Contains(draw(list[0], steady), "Phase of the learning rate ends") {
		t.Error("a line where the phases of one run end")
	}
	if PlotGroups(io.Discard, "svg", GroupRuns([]runs.Run{{Config: c}})) == nil || PlotGroups(io.Discard, "svg", nil) == nil {
		t.Error("nothing is drawn without an error")
	}
}

// Errors 20 and 30, then 10 and 12 per cent: the means are 25 and 11, beside a thin line for each run.
func TestGroupCurves(t *testing.T) {
	a, b := run(1, .1, 200), run(2, .1, 300)
	a.History = append(a.History, hook.EpochRecord{Epoch: 2, SGD: known(0, 100)})
	b.History = append(b.History, hook.EpochRecord{Epoch: 2, SGD: known(0, 120)})
	for _, c := range []struct {
		runs []runs.Run
		want []map[int]float64
	}{
		{[]runs.Run{a, b}, []map[int]float64{{1: 20, 2: 10}, {1: 30, 2: 12}, {1: 25, 2: 11}}},
		{[]runs.Run{run(1, .1, 200), run(2, .1, 300)}, []map[int]float64{{1: 20}, {1: 30}, {1: 25}}},
		{[]runs.Run{a}, []map[int]float64{{1: 20, 2: 10}}},
		{[]runs.Run{{Name: "r", State: train.Running}}, nil},
	} {
		list := GroupRuns(c.runs)[0].curves(series{style: groupLine(0), scores: map[int]network.Score{}})
		if len(list) != len(c.want) {
			t.Fatalf("%d curves, want %v", len(list), c.want)
		}
		for i, s := range list {
			if len(s.scores) != len(c.want[i]) || (s.style.Width < 1) != (i < len(list)-1) {
				t.Errorf("curve %d: %+v, want %v", i, s, c.want[i])
			}
			for e, want := range c.want[i] {
				if got := s.scores[e]; math.Abs(got.Error()-want) > 1e-12 {
					t.Errorf("curve %d, epoch %d: %v, want %v", i, e, got.Error(), want)
				}
			}
		}
	}
	other, third := run(3, .2, 100), run(4, .3, 100)
	other.Config.ValSplit, third.Config.ValSplit = .1, .1
	for n, list := range map[int][]runs.Run{2: {run(1, .1, 100), run(2, .1, 100), other},
		3: {run(1, .1, 100), run(2, .1, 100), other, third}} {
		if got := compared(t, list...); !strings.Contains(got, "in common with A") ||
			strings.Contains(got, "--sort and --reverse") != (n > 2) {
			t.Errorf("%d groups:\n%s", n, got)
		}
	}
	if got := compared(t, a); strings.Contains(got, "the same options") || strings.Contains(got, "differences") {
		t.Error(got)
	}
}

// The first twelve groups have colours that differ by 25 in CIE L*a*b* or more, and later ones other dashes.
func TestGroupColours(t *testing.T) {
	if len(groupColours) != 12 {
		t.Fatal(len(groupColours), "colours")
	}
	for i, a := range groupColours {
		for _, b := range groupColours[:i] {
			if d := distance(a, b); d < 25 {
				t.Errorf("%v and %v: %.1f", a, b, d)
			}
		}
		if d := distance(a, color.RGBA{255, 255, 255, 255}); d < 40 {
			t.Errorf("%v is pale", a)
		}
	}
	if x, y := groupLine(3), groupLine(15); x.Color != y.Color || len(x.Dashes) == len(y.Dashes) {
		t.Error("groups 3 and 15 look alike")
	}
}

// distance is that of two colours in CIE L*a*b*, with the white point D65.
func distance(a, b color.RGBA) float64 {
	lab := func(c color.RGBA) [3]float64 {
		linear := func(v uint8) float64 {
			x := float64(v) / 255
			if x <= .04045 {
				return x / 12.92
			}
			return math.Pow((x+.055)/1.055, 2.4)
		}
		f := func(t float64) float64 {
			if t > .008856 {
				return math.Cbrt(t)
			}
			return 7.787*t + 16./116
		}
		r, g, bl := linear(c.R), linear(c.G), linear(c.B)
		x, y, z := f((.4124*r+.3576*g+.1805*bl)/.95047), f(.2126*r+.7152*g+.0722*bl), f((.0193*r+.1192*g+.9505*bl)/1.08883)
		return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
	}
	x, y := lab(a), lab(b)
	return math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2])
}

// Long values with equal beginnings stay distinguishable, and rates have six digits.
func TestOptionText(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spec       train.Spec
	}{
		{"init", "runs/the-sa…f-runs/a.pth", train.Spec{Init: "runs/the-same-long-folder-of-runs/a.pth"}},
		{"head-lr", "0.028125", train.Spec{HeadRate: 0.028124999999999997}},
		{"model", "-", train.Spec{}},
	} {
		if got := optionText(&runs.Run{Config: c.spec}, c.name); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestRunTable(t *testing.T) {
	c, h := demo()
	list := []runs.Run{{Name: "a", Config: c, History: h, State: train.Done},
		{Name: "b", Config: train.Spec{Model: "lenet", Epochs: 3}, State: train.Failed,
			Failure: &train.Failure{Error: "the disk is full", Epoch: 1}}}
	var b bytes.Buffer
	if err := RunTable(&b, list); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(`
run  model  data       epochs  best %  loss    state
a    conv6  shapes<&>  10/10   16.50   0.3500  done
b    lenet  glyphs     0/3     -       -       failed
b failed in epoch 1: the disk is full
2 runs: 1 done, 1 failed; best: of all weights and epochs, by error or loss on validation images.
`, "\n")
	if got := b.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	rows := Rows(list)
	if r := rows[0]; r.State != train.Done || *r.Error != 20 || r.Best.Epoch != 10 || r.Best.Weights != "RNA" ||
		r.Options["model"] != "conv6" || rows[1].Best != nil || rows[1].Data != "glyphs" {
		t.Errorf("%+v", rows)
	}
}

// Tables of runs of other tasks than classification name their measures.
func TestTablesOfTasks(t *testing.T) {
	made := func(task data.Task, rmse, best float64) runs.Run {
		c, h := demo()
		c.Task, c.RNA.Mode = task, average.Off
		of := func(x float64) network.Score {
			return network.Score{Task: task, Images: 50, Loss: x / 10, RMSE: x, MAP: 100 - x, Deviation: 1.5}
		}
		h = h[:1]
		s := of(rmse)
		h[0] = hook.EpochRecord{Epoch: 1, SGD: &s, Best: &hook.BestRecord{ScoreRecord: hook.ScoreRecord{Kind: network.SGD,
			Score: of(best)}, Epoch: 1}}
		return runs.Run{Name: string(task), Config: c, History: h, State: train.Done}
	}
	other := made(data.Regression, 1200, 1)
	other.Config.Schedule.Rate = 7
	number, label := made(data.Regression, 1234.5, 0.0123), made(data.MultiLabel, 25, 20)
	for _, c := range []struct {
		list           []runs.Run
		compare, table []string
	}{
		{[]runs.Run{number, other}, []string{"RMSE  loss    best    loss", "1234  123.45  0.0123",
			"RMSE less that of A:", "B  -34.5 ± 2.12"}, []string{"best RMSE", "0.0123"}},
		{[]runs.Run{label}, []string{"100 − mAP %", "best %", "25.00", "20.00"}, []string{"best mAP %", "80.00", "by mAP on"}},
		{[]runs.Run{number, label}, []string{"  error  ", "No differences: the runs have different tasks"}, []string{"  best  ", "RMSE 0.0123", "mAP 80.00\u00a0%"}},
	} {
		var table bytes.Buffer
		if err := RunTable(&table, c.list); err != nil {
			t.Fatal(err)
		}
		for i, got := range []string{compared(t, c.list...), table.String()} {
			for _, want := range [][]string{c.compare, c.table}[i] {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
			if strings.Contains(got, "McNemar") {
				t.Errorf("a test of wrong images:\n%s", got)
			}
		}
	}
}

// A run that is repeated with the same seed is no other seed: only the one with most epochs counts.
func TestCompareRepeated(t *testing.T) {
	c, h := demo()
	other := c
	other.Schedule.Rate = .2
	got := compared(t, runs.Run{Name: "short", Config: c, History: h[:5], State: train.Done},
		runs.Run{Name: "long", Config: c, History: h, State: train.Done},
		runs.Run{Name: "other", Config: other, History: h, State: train.Done})
	for _, want := range []string{"short does not count: another run of A has the same seed", "A  0.1  10"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	if strings.Contains(got, "2 seeds") {
		t.Error(got)
	}
}
