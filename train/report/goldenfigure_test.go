package report

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"onlinerna/data"
	"onlinerna/internal/golden"
	"onlinerna/nn/device/cpu"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
	"onlinerna/train/replay"
	"onlinerna/train/runs"
	"onlinerna/train/schedule"
)

// plainly shortens texts that are the same in all figures.
var plainly = strings.NewReplacer("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;font-variant:normal;"+
	"font-weight:normal;font-style:normal;", "", "\n\tstyle", " style", ` transform="scale(1, -1)"`, "",
	` style="fill:none;stroke:#000000;stroke-width:0.5" />`, "/>", `style="fill:none;stroke:#`, `style="#`,
	"\n\txmlns", " xmlns")

// words are the texts of an SVG.
var words = regexp.MustCompile(`>[^<>\n]+</text>`)

// TestGoldenFigures: the figures of runs, of groups, of a replay and of a study, as SVG.
func TestGoldenFigures(t *testing.T) {
	all := examples()
	figure := func(name string, draw func(b *strings.Builder) error) {
		var b strings.Builder
		orError(&b, draw(&b))
		golden.Check(t, name+".svg", plainly.Replace(b.String()))
	}
	for _, name := range []string{"plain", "none"} {
		r := late(all[name], 2)
		figure("plot-"+name, func(b *strings.Builder) error { return Plot(b, "svg", r.Config, r.History) })
	}
	var marks strings.Builder
	orError(&marks, Coefficients(&marks, "svg", all["plain"].Config, late(all["plain"], 2).History))
	golden.Check(t, "coefficients-marks.txt", fmt.Sprintf("%q\n", words.FindAllString(marks.String(), -1)))
	for _, name := range []string{"plain", "none"} {
		c, h := all[name].Config, all[name].History
		figure("coefficients-"+name, func(b *strings.Builder) error { return Coefficients(b, "svg", c, h) })
	}
	long := all["first"]
	long.Name = "a name of more than 26 letters"
	long.State, long.Config.Batch = train.Done, 1
	exact := late(all["exact"], 2)
	exact.Config.Epochs, exact.History = 7, append([]hook.EpochRecord{{SGD: score(9, 1)}}, exact.History...)
	figure("plot-exact", func(b *strings.Builder) error { return Plot(b, "svg", exact.Config, exact.History) })
	for name, list := range map[string][]runs.Run{"seeds": families()["apart"],
		"tasks":   {late(all["labels"], 1), late(all["numbers"], 2)},
		"states":  {all["first"], all["short"], late(all["by-loss"], 1), long},
		"nothing": {all["none"]}} {
		figure("groups-"+name, func(b *strings.Builder) error { return PlotGroups(b, "svg", GroupRuns(list)) })
	}
	figure("confusion", func(b *strings.Builder) error {
		return Confusion(b, "svg", "lenet <on> glyphs", []string{"cat", "none", "dog & co", "bird"},
			[][]int{{17, 0, 3, 0}, {0, 0, 0, 0}, {1, 0, 41, 7}, {2, 0, 2, 2}})
	})
	var names strings.Builder
	for _, k := range []int{2, 20, 21, 60, 61, 75} {
		classes, counts := make([]string, k), make([][]int, k)
		for i := range k {
			classes[i], counts[i] = fmt.Sprint("class ", i), make([]int, k)
			counts[i][i] = 1
		}
		var b strings.Builder
		if k == 20 { // a class that is predicted once, and one that is predicted never
			counts[3], counts[7][3], counts[9][9], counts[9][8] = make([]int, k), 1, 0, 1
		}
		orError(&names, Confusion(&b, "svg", "", classes, counts))
		fmt.Fprintln(&names, k, "classes:", words.FindAllString(b.String(), -1))
	}
	for _, counts := range [][][]int{{{0, 0, 0}, {0, 3, 0}, {0, 0, 0}}, {{1, 0, 1}, {0, 0, 0}, {1, 0, 2}},
		{{0, 1}, {0, 0}}} {
		var b strings.Builder
		orError(&names, Confusion(&b, "svg", "", []string{"cat", "dog", "bird"}[:len(counts)], counts))
		fmt.Fprintln(&names, counts, words.FindAllString(b.String(), -1))
	}
	golden.Check(t, "confusion-names.txt", names.String())
	figure("confusion-one", func(b *strings.Builder) error {
		return Confusion(b, "svg", "", []string{"cat", "dog"}, [][]int{{1}})
	})
	figure("replay", func(b *strings.Builder) error { return goldenReplay().Plot(b, "svg") })
	figure("study", func(b *strings.Builder) error { return demoStudy().Plot(b, "svg") })
	figure("study-nothing", func(b *strings.Builder) error { return Study{}.Plot(b, "svg") })
}

// goldenReplay adds curves of the same images to demoReplay.
func goldenReplay() Replay {
	r := demoReplay()
	for i := range r.Curves {
		for k := range r.Curves[i].Points {
			p := &r.Curves[i].Points[k]
			if p.Val != nil {
				*p.Val = outcome("", 400, p.Val.Error(), 7*i)
			}
		}
	}
	return r
}

// TestGoldenReplay: a replay and a study as tables and CSV.
func TestGoldenReplay(t *testing.T) {
	var b strings.Builder
	held := &replay.Result{Epochs: []int{3}, Curves: []*replay.Curve{
		{Name: "SGD", Kind: network.SGD, Points: []replay.Point{{Epoch: 3, Held: score(20, .5)}}},
		{Name: strings.Repeat("a long name ", 4), Kind: network.RNA}}}
	none, one, first := goldenReplay(), goldenReplay(), goldenReplay()
	none.Curves[0].Points[1].Val.Images, one.Curves[0].Points[1].Val.Images = 0, 1
	*first.Curves[0].Points[1].Val = outcome("", 400, 5, 0)
	first.Curves = append(first.Curves, &replay.Curve{Name: "ones", Kind: network.RNA, Window: 1, Last: 1, Gamma: .5,
		Decay: .25, Points: []replay.Point{{Epoch: 1, Val: &network.Score{Images: 1, Loss: 1e-9}, Fit: pointer(1e-7)}}})
	short := goldenReplay()
	short.Curves[0].Points = short.Curves[0].Points[:1]
	numbers := goldenReplay()
	numbers.Config.Task = data.Regression
	for _, c := range numbers.Curves {
		for k := range c.Points {
			if p := &c.Points[k]; p.Val != nil {
				*p.Val = outcome(data.Regression, 400, p.Val.Error(), 0)
			}
		}
	}
	for i, r := range []Replay{demoReplay(), goldenReplay(), {Result: held}, none, one, first, short, numbers} {
		heading(&b, "%d", i)
		orError(&b, r.Table(&b))
		orError(&b, r.CSV(&b))
	}
	heading(&b, "study")
	orError(&b, demoStudy().Table(&b))
	study := demoStudy()
	study.Online, study.Config.Task = study.Online[:1], data.Regression
	for i := range study.Offline {
		study.Offline[i].RNA = nil
	}
	orError(&b, study.Table(&b))
	panels, err := study.panels()
	fmt.Fprintf(&b, "%+v, %v\n", panels, err)
	golden.Check(t, "replay.txt", b.String())
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestGoldenProgress: lines of a run without a terminal.
func TestGoldenProgress(t *testing.T) {
	var b strings.Builder
	r := examples()["plain"]
	for _, quiet := range []bool{false, true} {
		heading(&b, "quiet %v", quiet)
		p := NewProgress(&b, &b, quiet)
		p.Spec, p.Verbose = &r.Config, true
		fmt.Fprintln(&b, p.Name(), p.Async())
		s := &hook.State{Epochs: 8, Epoch: 1, Batch: 5, Batches: 20, Step: &hook.StepRecord{Loss: 2.34567}}
		step := func() {
			orError(&b, p.AfterStep(context.Background(), s))
			p.Log("a message of %d\nlines\x1b", 2)
		}
		step()
		p.next = time.Time{}
		step() // a line without the time left
		p.next, p.began = time.Time{}, time.Now().Add(-605*time.Second)
		s.Epoch, s.Batch = 3, 10
		step()
		step() // a minute later
		for _, x := range []int{2, 7} {
			p.next = time.Time{}
			s.Epoch, s.Record = x+1, &r.History[x]
			orError(&b, p.AfterEpoch(context.Background(), s))
			orError(&b, p.AfterStep(context.Background(), s)) // soon after a line
		}
		plain := r.History[0]
		plain.Best = nil
		s.Record = &plain
		orError(&b, p.AfterEpoch(context.Background(), s))
		p.Verbose, s.Record = false, &r.History[2]
		orError(&b, p.AfterEpoch(context.Background(), s))
		p.Verbose, p.out = true, broken{}
		orError(&b, p.AfterEpoch(context.Background(), s))
	}
	for _, d := range []time.Duration{0, 29500 * time.Millisecond, 59 * time.Second, time.Minute, 90 * time.Second,
		59 * time.Minute, time.Hour, 47*time.Hour + 59*time.Minute, 48 * time.Hour, 60 * time.Hour} {
		fmt.Fprintf(&b, "%v: %s\n", d, duration(d))
	}
	golden.Check(t, "progress.txt", b.String())
}

// TestGoldenLive: figures of a run in progress appear after its first epoch, and then after five seconds or more.
func TestGoldenLive(t *testing.T) {
	var b strings.Builder
	r := examples()["plain"]
	folder := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	run := &train.Run{Resolved: train.Resolved{Spec: r.Config}}
	run.Log = func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	l := &Live{Run: run}
	look := func(when string) {
		fmt.Fprintln(&b, when+":", strings.Join(there(t, folder), ", "))
		for _, name := range there(t, folder) {
			if err := os.Remove(filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	run.Resolved.Out = ""
	l.after(r.History[0])
	look("without a folder")
	l.next, run.Resolved.Out = time.Time{}, folder
	before := time.Now()
	l.after(r.History[0])
	if l.next.Before(before.Add(replot)) || l.next.After(time.Now().Add(replot)) {
		t.Errorf("the next figure comes at %v, after one at %v", l.next, before)
	}
	look("after the first epoch")
	l.next = time.Now().Add(time.Hour)
	run.History = r.History[:6]
	l.after(r.History[6])
	look("at once")
	l.next = time.Time{}
	l.after(r.History[6])
	look("later")
	l.next = time.Time{}
	l.after(r.History[7])
	look("at the end")
	if err := os.MkdirAll(filepath.Join(folder, "coefficients.svg", "blocked"), 0o755); err != nil {
		t.Fatal(err)
	}
	names, err := DrawRun(run.Resolved.Spec, r.History)
	orError(&b, err)
	fmt.Fprintln(&b, names)
	l.Draw(r.History)
	l.Draw(r.History)
	golden.Check(t, "live.txt", strings.ReplaceAll(b.String(), folder, "runs"))
}

// TestGoldenSummary: the end of a run that wrote some of its files.
func TestGoldenSummary(t *testing.T) {
	var b strings.Builder
	folder := t.TempDir()
	for _, name := range []string{"best.safetensors", "average-3.safetensors", "rna.safetensors", "config.json", "other"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"plain", "first"} {
		r := examples()[name]
		r.Config.Out = folder
		for _, verbose := range []bool{false, true} {
			heading(&b, "%s, verbose %v", name, verbose)
			orError(&b, Summarise(&b, &train.Run{Resolved: train.Resolved{Spec: r.Config}, History: r.History}, verbose))
		}
	}
	golden.Check(t, "summary.txt", strings.ReplaceAll(b.String(), folder, "runs"))
}

// TestGoldenAnnounce: the first lines of a run, by its options, of ranks, and of one that goes on.
func TestGoldenAnnounce(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	trainedTo := func(step int) *train.Run {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		c := train.Spec{Batch: 8, Epochs: 2, StepsLimit: 3, ValLimit: 1, Schedule: schedule.Schedule{Rate: .01}}
		r, err := train.New(c, train.Deps{Device: dev, Hooks: []hook.Hook{afterSteps(func(s *hook.State) {
			if s.Steps == step {
				stop()
			}
		})}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		if step == 0 {
			return r
		}
		if err := r.Train(ctx); err != nil && !errors.Is(err, train.ErrInterrupted) {
			t.Error(err)
		}
		return r
	}
	r := trainedTo(0)
	var b strings.Builder
	announce := func(name string, change func(c *train.Resolved)) {
		heading(&b, "%s", name)
		old := r.Resolved
		change(&r.Resolved)
		Announce(&b, r, "cpu")
		r.Resolved = old
	}
	announce("default", func(*train.Resolved) {})
	announce("labels", func(c *train.Resolved) {
		c.Task, c.Accumulate, c.Patience, c.TimeBudget = data.MultiLabel, 4, 1, 90*time.Second
	})
	announce("numbers", func(c *train.Resolved) {
		c.Task, c.Classes, c.Data, c.Precision = data.Regression, []string{"age"}, "data/ages", "bf16"
		c.Fit, c.Notes = &network.Fit{Batch: 96, Bytes: 5e8, Free: 9e9, Spare: 1e9}, []string{"a note", "another"}
	})
	announce("two batches a step", func(c *train.Resolved) { c.Accumulate = 2 })
	announce("online", func(c *train.Resolved) { c.RNA.Mode = average.Online })
	announce("off", func(c *train.Resolved) { c.RNA.Mode = average.Off })
	rankstest.Run(t, 3, time.Minute, func(g *ranks.Group) error {
		if g.First() {
			r.Ranks = g
		}
		return nil
	})
	announce("ranks", func(c *train.Resolved) { c.Accumulate = 2 })
	for _, step := range []int{1, 2, 5, 7} { // of six in all
		r = trainedTo(step)
		announce(fmt.Sprint("stopped at step ", step), func(*train.Resolved) {})
	}
	threads := regexp.MustCompile(`\d+ threads? a rank`)
	golden.Check(t, "announce.txt", threads.ReplaceAllString(b.String(), "… threads a rank"))
}

func there(t *testing.T, folder string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}
