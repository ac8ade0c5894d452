package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"onlinerna/data"
	"onlinerna/internal/golden"
	"onlinerna/internal/machine"
	"onlinerna/train"
	"onlinerna/train/average"
	measures "onlinerna/train/evaluate/measure"
	"onlinerna/train/hook"
	"onlinerna/train/runs"
)

// estimated is a measure with its standard error.
func estimated(k int) measures.Estimate {
	return measures.Estimate{Value: .5 + .03125*float64(k%16), Error: .01 + .001*float64(k)}
}

func photo(k int, right bool, picture string) EvaluatedImage {
	x := EvaluatedImage{Index: k, File: fmt.Sprintf("photo %d.png", k), Label: "cat", Predicted: "dog <9.5 %>",
		Probability: .98765 - .1*float64(k), Loss: pointer(4.5 / float64(k+1)), Right: right, Picture: []byte(picture)}
	if picture == "" {
		x.Picture, x.Loss = nil, nil
	}
	return x
}

// evaluation is an evaluation of a run's best weights. The third class has no images.
func evaluation(r *runs.Run, classes int) *Evaluation {
	best := r.Best()
	e := &Evaluation{Kind: best.Kind, Snapshots: best.Snapshots, Epoch: best.Epoch, Score: best.Score,
		Note:  "The images are those of the run.",
		Worst: []EvaluatedImage{photo(0, false, "\x89PNG\r\n\x1a\n"), photo(1, false, "")},
		Best:  []EvaluatedImage{photo(2, true, "\xff\xd8\xff"), photo(3, true, "GIF89a")}}
	*e.Best[1].Loss = math.Copysign(0, -1)
	switch r.Config.Task {
	case data.MultiLabel:
		e.Targets = &Targets{Model: r.Config.Model, Score: best.Score}
		for i, to := range []**measures.Estimate{&e.Targets.AP, &e.Targets.AUC, &e.Targets.MacroF1, &e.Targets.MicroF1,
			&e.Targets.Exact} {
			x := estimated(i)
			*to = &x
		}
		for k := range classes {
			e.Targets.Classes = append(e.Targets.Classes, LabelScore{fmt.Sprintf("label|%d", k), 10 * k, .25 + .125*float64(k%4),
				estimated(k), estimated(k + 1), estimated(k + 2), estimated(k + 3), estimated(k + 4)})
		}
		return e
	case data.Regression:
		e.Targets = &Targets{Model: r.Config.Model, Score: best.Score}
		for k := range classes {
			c := ColumnScore{Name: fmt.Sprintf("column %d", k), RMSE: estimated(k), MAE: estimated(k + 5)}
			if k > 0 {
				c.R2 = pointer(1 - .125*float64(k))
			}
			e.Targets.Columns = append(e.Targets.Columns, c)
		}
		e.Pairs = [][][2]float64{{{1, 1.5}, {2.5, 2}, {4, 5.25}, {3, 3}}, {{7, 8}}}[:min(classes, 2)]
		return e
	}
	e.Interval, e.Calibration = [2]float64{best.Score.Top1 - 4, best.Score.Top1 + 3}, .03125
	e.Balanced, e.MacroF1 = estimated(3), estimated(4)
	for k := range classes {
		e.Names = append(e.Names, fmt.Sprintf("a class with the number %d", k))
		if k == 2 {
			continue
		}
		e.Classes = append(e.Classes, EvaluatedClass{e.Names[k], 1000 + k, estimated(k), estimated(k + 1),
			estimated(k + 2)})
		e.Confusion = append(e.Confusion, [3]int{k, k, 60 - k}, [3]int{k, (k + 3) % classes, 40 + k%2})
	}
	e.Confusion = slices.DeleteFunc(e.Confusion, func(c [3]int) bool { return c[1] == 2 })
	e.Confusion = append(e.Confusion, [3]int{classes - 1, 0, 1})
	return e
}

// recorded puts a run into a folder with its sessions.
func recorded(t *testing.T, folder string, r runs.Run) runs.Run {
	t.Helper()
	r.Dir = filepath.Join(folder, r.Name)
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var lines []byte
	for i, s := range []train.Session{
		{Started: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC), Device: "cpu", Ranks: 1, Machine: machine.Machine{
			System: "linux/amd64", Cores: 1, Version: "v1.2.3", Go: "go1.26"}},
		{Started: time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC), Epoch: 4, Device: "cuda", Card: "NVIDIA H100", Ranks: 4,
			Precision: "bf16", Machine: machine.Machine{System: "linux/amd64", CPU: "a processor", Cores: 16, Memory: 128e9,
				Version: "v1.2.4", Go: "go1.26"}, Chosen: []train.Choice{{Name: "lr", Value: "0.1"}, {Name: "seed", Value: "1"},
				{Name: "classes", Value: "a list"}, {Name: "data", Value: "it's mine"}}},
	} {
		s.Step = i
		line, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.WriteFile(filepath.Join(r.Dir, "sessions.jsonl"), lines, 0o644); err != nil {
		t.Fatal(err)
	}
	return r
}

// variable parts of a page are not in its golden file: the style, the script and its hash.
var variable = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>|sha256-[^']*`)

// short omits attributes that are the same everywhere.
var short = strings.NewReplacer(` scope="col"`, "", ` role="img" tabindex="0"`, "",
	`<svg viewBox="0 0 32 11" aria-hidden="true">`, "<svg>", `<path class="grid" d="`, `<path d="`, "\n\n", "\n")

// evaluatedPage is a page of a group of runs with an evaluation on a number of classes.
func evaluatedPage(classes int, list ...runs.Run) *Page {
	p := &Page{Groups: GroupRuns(list), Evaluations: map[string]*Evaluation{}}
	for _, r := range p.Shown() {
		p.Evaluations[r.Dir] = evaluation(r, classes)
	}
	return p
}

// TestGoldenPages: pages of single runs of each task, of seeds and of a sweep.
func TestGoldenPages(t *testing.T) {
	folder := t.TempDir()
	all := examples()
	plain, labels, numbers := recorded(t, folder, all["plain"]), recorded(t, folder, all["labels"]), all["numbers"]
	first := recorded(t, folder, all["distilled"])
	second := trained("second", options(2, .1), 6)
	second.Config, second.Updated = first.Config, second.Updated.Add(time.Hour)
	second.Config.Seed = 2
	var small []runs.Run // a sweep of one epoch each
	for i, rate := range []float64{.01, .1, 1} {
		c := options(uint64(i+1), rate)
		c.RNA, c.EMA, c.Batch = average.Options{Mode: average.Off}, nil, 32+i
		small = append(small, trained(fmt.Sprint("rate-", rate), c, 1))
	}
	small = append(small, all["first"])
	for name, p := range map[string]*Page{
		"plain":   evaluatedPage(4, plain),
		"seeds":   evaluatedPage(5, late(first, 3), second),
		"labels":  evaluatedPage(3, late(labels, 2)),
		"numbers": evaluatedPage(2, late(numbers, 2)),
		"sweep": {Groups: GroupRuns(small), Passed: []string{"no run in <runs/empty>"},
			Missing: map[string]string{small[0].Dir: "No evaluation: the images are not there."}},
		"none": {Groups: GroupRuns([]runs.Run{all["none"]})},
	} {
		var b strings.Builder
		orError(&b, p.Write(&b))
		page := short.Replace(variable.ReplaceAllString(b.String(), "…"))
		if name == "sweep" { // other pages have sections
			page, _, _ = strings.Cut(page, "<nav")
		}
		golden.Check(t, "page-"+name+".html", strings.ReplaceAll(page, folder, "runs"))
	}
	var b strings.Builder
	orError(&b, (&Page{}).Write(&b))
	golden.Check(t, "page-empty.txt", b.String())
}

// TestGoldenSections: the tables and the notes of pages of each kind of run and of each comparison.
func TestGoldenSections(t *testing.T) {
	var b strings.Builder
	table := func(name string, p *pageTable) {
		if p == nil {
			fmt.Fprintf(&b, "%s: none\n", name)
			return
		}
		fmt.Fprintf(&b, "%s: best %v, words %v, many %v; %s\n", name, p.Best, p.Words, p.Many(), p.Note)
		for _, row := range append([][]string{p.Head}, p.Rows...) {
			fmt.Fprintf(&b, "  %s\n", strings.Join(row, " | "))
		}
	}
	all, families := examples(), families()
	for _, name := range sorted(all) {
		groups := GroupRuns([]runs.Run{all[name]})
		missing := map[string]string{"runs/plain": "No evaluation."}
		s := (&Page{Groups: groups, Missing: missing}).section(&groups[0])
		heading(&b, "%s", name)
		for _, f := range s.Facts {
			if name != "plain" && f[0] == "Model" || f[0] == "Last record" || name[0] == 'h' && f[0] != "Images" {
				continue // as in others
			}
			fmt.Fprintf(&b, "%s: %s\n", f[0], f[1])
		}
		fmt.Fprintf(&b, "%s, %s, warnings %q\n%s\n%s\n", s.ID, s.Heading, s.Warnings, s.ChartNote, s.Missing)
		if name == "exact" || name == "infinite" { // training leaves the charts, and curves have no point
			fmt.Fprintf(&b, "%+v %+v\n", s.Charts[1].Lines, s.Legend)
		}
		fmt.Fprintf(&b, "%d characters of a verdict\n", len(s.Verdict))
		table("candidates", s.Candidates)
		if name == "plain" || name == "none" { // others take as long
			table("time", s.Time)
		}
	}
	for _, name := range sorted(families) {
		groups := GroupRuns(families[name])
		o := overviewOf(groups)
		heading(&b, "%s", name)
		fmt.Fprintln(&b, o.ChartNote)
		for _, c := range o.Charts {
			fmt.Fprintf(&b, "%s, %d marks, %d lines\n", c.Title, len(c.X), len(c.Lines))
		}
		for _, c := range o.Scatters {
			fmt.Fprintf(&b, "%s, %s, %s, %v\n", c.Title, c.Name, c.Points, c.Data.Points[0])
		}
		fmt.Fprintln(&b, len(o.Table.Rows), o.Table.Many(), o.Table.Rows[0], o.Table.Note) // compare.txt has all rows
		if d := o.Differences; d != nil {
			fmt.Fprintln(&b, len(d.Rows), d.Head, d.Rows[0], d.Note)
		}
		if len(groups[0].Runs) > 1 {
			_, charts, note := chartsOf(&groups[0])
			table("candidates", candidatesOf(&groups[0]))
			fmt.Fprintln(&b, len(charts), len(charts[0].Lines), note)
		}
	}
	for _, s := range []hook.Seconds{{}, {Data: 1}, {Compute: 150, Eval: 1}, {EMA: .001}} {
		r := late(all["plain"], 1)
		r.History[0].Seconds = s
		table(fmt.Sprintf("%+v", s), timeOf(&Group{Runs: []runs.Run{r}}))
	}
	for _, name := range []string{"plain", "labels", "numbers"} {
		for _, classes := range []int{1, 20, 21, 22} {
			r := all[name]
			r.Config.Holdout = .1
			v := evaluation(&r, classes).view(&r, classes == 20)
			fmt.Fprintln(&b, name, classes, "classes:", v.Title, v.Long, v.Lines, v.Classes.Note)
		}
	}
	golden.Check(t, "sections.txt", b.String())
}

// TestGoldenCards: model cards of each task, and their errors.
func TestGoldenCards(t *testing.T) {
	folder := t.TempDir()
	all := examples()
	var b strings.Builder
	card := func(name string, classes int, list ...runs.Run) {
		heading(&b, "%s", name)
		p := &Page{Groups: GroupRuns(list)}
		if classes > 0 {
			p = evaluatedPage(classes, list...)
		}
		orError(&b, p.WriteCard(&b))
	}
	second := trained("second", options(2, .1), 6)
	card("plain", 4, recorded(t, folder, all["plain"]))
	card("held out", 0, all["held"])
	card("seeds", 0, all["plain"], second)
	card("labels", 3, recorded(t, folder, all["labels"]))
	card("numbers", 2, all["numbers"])
	card("by loss", 101, all["by-loss"])
	card("one epoch", 0, all["first"])
	broken := second
	broken.State = train.Failed
	card("held out, one kind", 0, all["held-first"])
	card("a seed that failed", 0, all["first"], broken)
	card("none", 0, all["none"])
	card("unvalidated", 0, all["unvalidated"])
	heading(&b, "nothing")
	orError(&b, (&Page{}).WriteCard(&b))
	golden.Check(t, "cards.md", strings.ReplaceAll(b.String(), folder, "runs"))
}

// TestGoldenTargets: the measures of labels and of numbers as text.
func TestGoldenTargets(t *testing.T) {
	var b strings.Builder
	all := examples()
	labels, numbers := all["labels"], all["numbers"]
	for _, e := range []*Evaluation{evaluation(&labels, 3), evaluation(&numbers, 2)} {
		for _, classes := range []bool{false, true} {
			heading(&b, "%s, classes %v", e.Score.Task, classes)
			orError(&b, e.Targets.Print(&b, classes))
		}
	}
	golden.Check(t, "targets.txt", b.String())
}

// TestGoldenEvaluation: evaluation.json of each task.
func TestGoldenEvaluation(t *testing.T) {
	folder := t.TempDir()
	var b strings.Builder
	all := examples()
	for _, name := range []string{"by-loss", "labels", "numbers"} {
		r := all[name]
		e := evaluation(&r, 3)
		orError(&b, e.Write(folder))
		file, err := os.ReadFile(filepath.Join(folder, "evaluation.json"))
		orError(&b, err)
		b.Write(file)
		other := *r.Best()
		other.Snapshots = 9
		for _, best := range []*hook.BestRecord{r.Best(), nil, {Epoch: 8}, &other} {
			got, err := ReadEvaluation(folder, best)
			orError(&b, err)
			fmt.Fprintln(&b, got != nil, e.Of(best))
		}
	}
	for _, text := range []string{`{"targets":{},"pairs":[[]]}`, `{`} {
		if err := os.WriteFile(filepath.Join(folder, "evaluation.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := ReadEvaluation(folder, nil)
		orError(&b, err)
	}
	golden.Numbers(t, "evaluation.jsonl", strings.ReplaceAll(b.String(), folder, "runs"))
}
