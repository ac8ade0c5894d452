package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"onlinerna/data"
	"onlinerna/nn/device/cpu"
	"onlinerna/train"
	"onlinerna/train/average"
	measures "onlinerna/train/evaluate/measure"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/runs"
	"onlinerna/train/schedule"
)

func rowsAre(t *testing.T, name string, got *pageTable, want [][]string) {
	t.Helper()
	if got == nil || !slices.EqualFunc(got.Rows, want, slices.Equal) {
		t.Errorf("%s: %+v, want %v", name, got, want)
	}
}

// The last search's candidates; the chosen one is marked.
func TestSearchTable(t *testing.T) {
	ptr := func(x float64) *float64 { return &x }
	r := hook.EpochRecord{Epoch: 3, RNA: &hook.RNARecord{Choice: "averaged", NoDifference: true,
		Candidates: []hook.CandidateRecord{
			{Kind: "kept", Status: "ok", NormC: 1, Loss: ptr(.5)},
			{Kind: "averaged", Status: "ok", NormC: .57735, Loss: ptr(.49), Difference: ptr(-.01), Error: ptr(.004)},
			{Kind: "extrapolated", Status: "rank deficient", Lambda: ptr(1e-9)}}}}
	earlier := hook.EpochRecord{Epoch: 2, RNA: &hook.RNARecord{Choice: "kept", Candidates: r.RNA.Candidates[:1]}}
	table := searchOf([]hook.EpochRecord{earlier, r, {Epoch: 4}})
	rowsAre(t, "search", table, [][]string{{"kept", "-", "1.000", "0.50000", "-"},
		{"averaged", "-", "0.577", "0.49000", "-0.01000 ± 0.00400"},
		{"extrapolated: rank deficient", "1e-09", "-", "-", "-"}})
	if !slices.Equal(table.Best, []int{1}) || table.Note != "Epoch 3 chose: averaged. ± is a standard error over images. "+
		"No candidate is significantly better." {
		t.Errorf("%+v", table)
	}
	if searchOf([]hook.EpochRecord{{Epoch: 4, RNA: &hook.RNARecord{}}}) != nil {
		t.Error("a search without candidates")
	}
}

// Means of two runs: 3 and 7 seconds of steps, 15 in all, and 2000 images in 10 of them.
func TestTimeTable(t *testing.T) {
	of := func(seed uint64, images int, s hook.Seconds) runs.Run {
		r := run(seed, .1, 100)
		r.History[0].Seconds, r.History[0].Train.Images = s, images
		return r
	}
	list := []runs.Run{of(1, 1600, hook.Seconds{Data: 2, Compute: 6, Eval: 2, RNA: 1, RNAEval: 1}),
		of(2, 2400, hook.Seconds{Data: 4, Compute: 8, Eval: 2, RNA: 1, RNAEval: 3})}
	table := timeOf(&GroupRuns(list)[0])
	rowsAre(t, "time", table, [][]string{{"waiting for images", "3", "20.0"}, {"steps", "7", "46.7"},
		{"evaluation of the iterate", "2", "13.3"}, {"RNA: snapshots, solving, combining", "1", "6.7"},
		{"evaluation of RNA's point and averages", "2", "13.3"}, {"all", "15", "100"}})
	if !slices.Equal(table.Best, []int{5}) ||
		table.Note != "200 training images a second while steps ran. Means of 2 runs." {
		t.Errorf("%+v", table)
	}
	if table := timeOf(&GroupRuns(list[:1])[0]); table.Note != "200 training images a second while steps ran." {
		t.Errorf("%+v", table)
	}
	if timeOf(&GroupRuns([]runs.Run{run(1, .1, 100)})[0]) != nil {
		t.Error("no time is listed")
	}
}

// Groups are compared after the last epoch that all of a group's runs have.
func TestOverviewTables(t *testing.T) {
	a, b := demoRun(t, 1), demoRun(t, 2)
	b.History = b.History[:9]
	table := candidatesOf(&GroupRuns([]runs.Run{a, b})[0])
	if !strings.HasPrefix(table.Note, "After epoch 9, on validation images. Means of 2 seeds: ") || table.Rows[0][1] !=
		"22.00 ± 0.00" || !strings.HasSuffix(table.Note, " p is not corrected for several comparisons.") {
		t.Errorf("%+v", table)
	}
	table = candidatesOf(&GroupRuns([]runs.Run{a})[0])
	if !strings.HasPrefix(table.Note, "After epoch 10, on validation images. ± is a standard error over images; p is ") {
		t.Errorf("%+v", table)
	}
	o := overviewOf(GroupRuns([]runs.Run{run(1, .1, 100), run(1, .2, 90)}))
	if o.Differences == nil || len(o.Differences.Rows) != 1 || len(o.Table.Rows) != 2 ||
		!strings.HasSuffix(o.Table.Note, " ± is a standard error over seeds.") {
		t.Errorf("%+v", o)
	}
	if candidatesOf(&Group{}) != nil || !strings.HasPrefix(o.ChartNote, "Curves are the last iterates'. ") {
		t.Errorf("%+v", o)
	}
	if !strings.HasPrefix(o.Table.Rows[0][0], "A: ") || strings.Contains(o.ChartNote, "They show") {
		t.Errorf("%+v", o)
	}
}

// Titles and headings of pages of one run and of several groups.
func TestHeadings(t *testing.T) {
	a, b := run(1, .1, 100), run(1, .2, 90)
	a.Name, a.Config.Model = "first", "lenet"
	b.Name = "second"
	one := paged(t, &Page{Groups: GroupRuns([]runs.Run{a})})
	for _, want := range []string{"<title>lenet on d", ">first</h2>", "<dt>Model</dt><dd>lenet</dd>"} {
		if !strings.Contains(one, want) {
			t.Errorf("one run: no %q", want)
		}
	}
	if strings.Contains(one, "<nav") || strings.Contains(one, "<dt>Seeds") {
		t.Error("one run has contents or seeds")
	}
	again := a
	again.Config.Seed = 2
	seeds := paged(t, &Page{Groups: GroupRuns([]runs.Run{a, again})})
	for _, want := range []string{"<title>2 runs, all done, in 1 group</title>", "<dt>Seeds</dt><dd>1, 2</dd>"} {
		if !strings.Contains(seeds, want) {
			t.Errorf("two seeds: no %q", want)
		}
	}
	two := paged(t, &Page{Groups: GroupRuns([]runs.Run{a, b})})
	for _, want := range []string{"<title>2 runs, all done</title>", `<a href="#group-B">B: second</a>`,
		">A: first</h2>", ">B: second</h2>"} {
		if !strings.Contains(two, want) {
			t.Errorf("two runs: no %q", want)
		}
	}
}

// The commands that repeat a group's runs have the options of their last session, and a seed each.
func TestRepeat(t *testing.T) {
	sessions := []train.Session{{Chosen: []train.Choice{{Name: "lr", Value: "1"}}},
		{Chosen: []train.Choice{{Name: "lr", Value: "0.1"}, {Name: "classes", Value: "list"}, {Name: "seed", Value: "3"},
			{Name: "data", Value: "my photos"}}}}
	var s section
	one := run(3, .1, 100)
	s.repeat(&one, &Group{Runs: []runs.Run{one}}, sessions)
	rowsAre(t, "options", &s.Options, [][]string{{"lr", "0.1"}, {"classes", "list"}, {"seed", "3"}, {"data", "my photos"}})
	if want := []string{"rna train --lr 0.1 --classes FILE --seed 3 --data 'my photos'"}; !slices.Equal(s.Repeat, want) {
		t.Errorf("%q, want %q", s.Repeat, want)
	}
	s = section{}
	s.repeat(&one, &Group{Runs: []runs.Run{one, run(4, .1, 90)}}, sessions)
	if want := []string{"rna train --lr 0.1 --classes FILE --data 'my photos' --seed 3",
		"rna train --lr 0.1 --classes FILE --data 'my photos' --seed 4"}; !slices.Equal(s.Repeat, want) {
		t.Errorf("%q, want %q", s.Repeat, want)
	}
	s = section{}
	one.Dir = "runs/x"
	if s.repeat(&one, &Group{Runs: []runs.Run{one}}, nil); !slices.Equal(s.Repeat,
		[]string{"rna train --config runs/x/config.json"}) || s.OptionsTitle != "Options" {
		t.Errorf("%+v", s)
	}
}

// The card of a run names its program, and says that weights were chosen if there was a choice.
func TestCardOfRun(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for epochs := 1; epochs <= 2; epochs++ {
		r, err := train.New(train.Spec{Batch: 8, Epochs: epochs, StepsLimit: 1, ValLimit: 1,
			Out: filepath.Join(t.TempDir(), "run"), Schedule: schedule.Schedule{Rate: 0.01}}, train.Deps{Device: dev})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		names, err := DrawRun(r.Resolved.Spec, r.History)
		if err != nil || !slices.Equal(names, []string{"plot.svg"}) {
			t.Errorf("figures %v, %v", names, err)
		}
		var b bytes.Buffer
		if err := Summarise(&b, r, true); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(b.String()), " "); !strings.HasSuffix(got, ": plot.svg, final.safetensors, "+
			"best.safetensors, metrics.jsonl, config.json") || strings.Contains(got, "RNA coefficients") {
			t.Errorf("summary %s", got)
		}
		b.Reset()
		p := &Page{Groups: GroupRuns([]runs.Run{{Name: "r", Dir: r.Resolved.Out, Config: r.Resolved.Spec, History: r.History,
			State: train.Done}})}
		if err := p.WriteCard(&b); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if got := b.String(); strings.Contains(got, "slightly too good") != (epochs > 1) ||
			!strings.Contains(got, ", "+runtime.Version()+" on ") || !strings.Contains(got, "\n- Training: ") ||
			strings.Contains(got, "datasets:") || !strings.Contains(got, "\nTrained with rna ") {
			t.Errorf("%d epochs:\n%s", epochs, got)
		}
	}
}

// Facts and notes of a run whose steps have one batch, at a constant rate.
func TestPlainFacts(t *testing.T) {
	r := run(1, .1, 100)
	r.Config.Batch, r.Config.Accumulate, r.Config.Schedule.Epochs = 8, 1, 1
	groups := GroupRuns([]runs.Run{r})
	for _, f := range factsOf(&groups[0]) {
		if f[0] == "Training" && !strings.HasPrefix(f[1], "1 epoch, batch 8, ") {
			t.Error(f)
		}
	}
	if _, charts, note := chartsOf(&groups[0]); len(charts) == 0 || strings.Contains(note, "phases") ||
		strings.Contains(note, "seeds") {
		t.Errorf("%d charts, %s", len(charts), note)
	}
	demo := GroupRuns([]runs.Run{demoRun(t, 1)})
	if _, _, note := chartsOf(&demo[0]); !strings.HasSuffix(note, " Dotted lines end phases of the learning rate.") {
		t.Error(note)
	}
}

// Names and times by hand.
func TestSmallTexts(t *testing.T) {
	if got := title(train.Spec{Model: "lenet", Batch: 8}); !strings.HasPrefix(got, "lenet on glyphs, batch 8, rate ") {
		t.Error(got)
	}
	for minutes, want := range map[float64]string{.5: "30 s", 30: "30 min", 90: "1 h 30 min", 49 * 60: "2.0 days"} {
		if got := duration(time.Duration(minutes * float64(time.Minute))); got != want {
			t.Errorf("%v minutes: %s, want %s", minutes, got, want)
		}
	}
	var c train.Spec
	for want, o := range map[string]average.Options{"epochs": {PerEpoch: 1}, "snapshots": {PerEpoch: 2},
		"means": {PerEpoch: 2, SegmentMeans: true}} {
		if c.RNA = o; snapshots(c) != want {
			t.Errorf("%+v: %s", o, snapshots(c))
		}
	}
	s := trainingOf([]hook.EpochRecord{{Epoch: 3, Train: *score(20, .5)}})
	if s.scores[3].Loss != .5 || len(s.scores) != 1 {
		t.Errorf("%+v", s)
	}
	e := &Evaluation{}
	image := []EvaluatedImage{{Right: true, Probability: .9999}}
	if got := e.tiles(image)[0]; got.Share != "99.9\u00a0%, " || got.Class != " right" || got.Loss != "not finite" {
		t.Errorf("%+v", got)
	}
	e.Targets = &Targets{}
	if got := e.tiles(image)[0]; got.Share != "" {
		t.Errorf("%+v", got)
	}
}

// The condition number of the residuals' products at the end of a run.
func TestSpectrumLine(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for epochs, there := range map[int]bool{3: false, 4: true, 5: true} { // residuals end in the epochs 3 and 4
		c := train.Spec{Batch: 8, Epochs: epochs, StepsLimit: 1, ValLimit: 1, Schedule: schedule.Schedule{Rate: 0.01}}
		if epochs == 5 { // averages need more snapshots than RNA
			c.RNA.Window = 2
		}
		r, err := train.New(c, train.Deps{Device: dev})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := ""
		if there {
			g := r.Hook("rna").(*average.RNA).Window().Gram(2)
			a, b, c := g.At(0, 0), g.At(0, 1), g.At(1, 1)
			root := math.Sqrt((a-c)*(a-c) + 4*b*b) // of the quadratic equation of the eigenvalues
			from := r.Hook("rna").(*average.RNA).Window().Spectrum(2).Lambdas()[0]
			want = fmt.Sprintf("The last residuals: RᵀR has the condition number %.3g; lambda changes c from about %.1g on.\n",
				(a+c+root)/(a+c-root), from)
		}
		if got := Spectrum(r); got != want || (got != "") != there {
			t.Errorf("%d epochs: %q, want %q", epochs, got, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Looks of curves by their rank, and coordinates with all digits.
func TestLooks(t *testing.T) {
	for rank, want := range []string{"c2", "c3", "c4", "c6", "c2"} {
		if colour, class := (series{kind: network.Average, rank: rank}).looks(); colour != want || class != " d1" {
			t.Errorf("average %d: %s%s", rank, colour, class)
		}
	}
	for i, want := range map[int]string{0: "c1", 11: "c11", 12: "c1 d1", 24: "c1 d2", 36: "c1 d3", 48: "c1"} {
		if colour, class := groupLooks(i); colour+class != want {
			t.Errorf("group %d: %s%s, want %s", i, colour, class, want)
		}
	}
	if got := place(1.25, 2.5); got != "1.25 2.5" {
		t.Error(got)
	}
}

// Heat maps show at most 50 extrapolations and a name for at most ten rows; counts are in cells of up to 12 classes.
func TestHeatLimits(t *testing.T) {
	r := &runs.Run{}
	for e := 1; e <= 100; e++ {
		r.History = append(r.History, hook.EpochRecord{Epoch: e, RNA: &hook.RNARecord{C: make([]float64, 11)}})
		r.History[e-1].RNA.C[10] = 1
	}
	h := coefficientsOf(r, false)
	if n := len(h.Data.Cols); n != 50 || h.Data.Cols[1] != "epoch 3" {
		t.Errorf("%d columns, %v", n, h.Data.Cols)
	}
	if n := len(coefficientsOf(&runs.Run{History: r.History[:51]}, false).Data.Cols); n != 26 { // every second of 51
		t.Errorf("%d columns", n)
	}
	few := coefficientsOf(&runs.Run{History: r.History[:12]}, false) // all twelve epochs are named
	for e := 1; e <= 12; e++ {
		if len(texts(few, "m", fmt.Sprint(e))) != 1 {
			t.Errorf("epoch %d of 12 has no name", e)
		}
	}
	for row := range 11 {
		if got := len(texts(h, "e", fmt.Sprint(row))); got != (row+1)%2 {
			t.Errorf("row %d has %d names", row, got)
		}
	}
	for classes, named := range map[int]int{32: 32, 33: 17} { // rows of 11.1 and of 10.7
		e := &Evaluation{}
		for k := range classes {
			e.Names = append(e.Names, fmt.Sprint(k))
			e.Confusion = append(e.Confusion, [3]int{k, k, 7})
		}
		h, _ := e.confusion()
		if got := len(h.Texts); got != 2*named {
			t.Errorf("%d classes: %d names, want %d", classes, got, 2*named)
		}
	}
	for _, classes := range []int{40, 41} {
		e := &Evaluation{Names: make([]string, classes)}
		for k := range classes {
			e.Confusion = append(e.Confusion, [3]int{k, k, 7})
		}
		if h, _ := e.confusion(); (h != nil) != (classes == 40) {
			t.Errorf("%d classes are drawn, or not", classes)
		}
	}
	for _, classes := range []int{12, 13} {
		e := &Evaluation{}
		for k := range classes {
			e.Names = append(e.Names, fmt.Sprint("class ", k))
			e.Confusion = append(e.Confusion, [3]int{k, k, 7})
		}
		h, _ := e.confusion()
		if got, want := len(texts(h, "m on", "7")), map[int]int{12: 12}[classes]; got != want {
			t.Errorf("%d classes: %d counts", classes, got)
		}
	}
}

// Names of a legend in three columns of 100 points, in rows of 0.6 cm.
func TestLegendPlaces(t *testing.T) {
	var c recorder.Canvas
	dc := draw.NewCanvas(&c, 310, 200)
	dc.Min.X = 10
	drawLegend(dc, []entry{{name: "a", line: draw.LineStyle{Color: color.Black, Width: 1}}, {name: "b"}, {name: "c"},
		{name: "d"}})
	for _, a := range c.Actions {
		if s, ok := a.(*recorder.Stroke); ok { // 1.1 cm to the right
			if from, to := s.Path[0].Pos.X, s.Path[1].Pos.X; math.Abs(float64(to-from-1.1*vg.Centimeter)) > 1e-9 {
				t.Errorf("a line from %v to %v", from, to)
			}
		}
	}
	var got []string
	var top vg.Length
	for _, a := range c.Actions {
		if f, ok := a.(*recorder.FillString); ok {
			if len(got) == 0 {
				top = f.Point.Y
			}
			got = append(got, fmt.Sprintf("%s %.1f row %.1f", f.String, f.Point.X.Points(), 100*(top-f.Point.Y)/vg.Centimeter))
		}
	}
	sample := float64(1.1*vg.Centimeter) + 6
	want := []string{fmt.Sprintf("a %.1f row 0.0", 10+sample), fmt.Sprintf("b %.1f row 0.0", 110+sample),
		fmt.Sprintf("c %.1f row 0.0", 210+sample), fmt.Sprintf("d %.1f row 60.0", 10+sample)}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The colour scale fills its 202 points from the lowest colour to the highest.
func TestScalePlaces(t *testing.T) {
	var c recorder.Canvas
	dc := draw.NewCanvas(&c, 100, 303)
	dc.Min.Y = 101
	drawScale(dc, 1)
	var fills []vg.Path
	var words []string
	for _, a := range c.Actions {
		switch a := a.(type) {
		case *recorder.Fill:
			fills = append(fills, a.Path)
		case *recorder.FillString:
			words = append(words, a.String)
		}
	}
	if !slices.Equal(words, []string{"coefficient", "-1", "0", "1"}) {
		t.Errorf("%q", words)
	}
	if len(fills) != 101 {
		t.Fatalf("%d colours", len(fills))
	}
	for i, path := range fills { // two points each
		lo, hi := path[0].Pos.Y, path[0].Pos.Y
		for _, p := range path {
			if p.Type != vg.CloseComp {
				lo, hi = min(lo, p.Pos.Y), max(hi, p.Pos.Y)
			}
		}
		if math.Abs(float64(lo)-101-2*float64(i)) > 1e-9 || math.Abs(float64(hi-lo)-2) > 1e-9 {
			t.Errorf("colour %d from %v to %v", i, lo, hi)
		}
	}
}

// A card has the top-5 accuracy of more than five classes, and rows for up to 100 of them.
func TestCardLimits(t *testing.T) {
	s := network.Score{Top1: 90, Top5: 99, Loss: .5, Images: 10}
	for classes, n := range map[int]int{2: 2, 5: 2, 6: 3} {
		if got := cardMetrics(s, classes); len(got) != n {
			t.Errorf("%d classes: %+v", classes, got)
		}
	}
	half := &measures.Estimate{Value: 50, Error: 5}
	for _, n := range []int{100, 101} {
		var plain, labels bytes.Buffer
		(&Evaluation{Classes: make([]EvaluatedClass, n)}).card(&plain)
		(&Evaluation{Targets: &Targets{AP: half, AUC: half, MacroF1: half, MicroF1: half, Exact: half,
			Classes: make([]LabelScore, n)}}).card(&labels)
		for _, text := range []string{plain.String(), labels.String()} {
			if rows := strings.Count(text, "\n|"); rows != map[int]int{100: 102}[n] || strings.Contains(text, "There are 101") !=
				(n == 101) {
				t.Errorf("%d classes have %d rows", n, rows)
			}
		}
	}
}

// The measures of several labels, with a row for each class if asked for.
func TestPrintLabels(t *testing.T) {
	half := &measures.Estimate{Value: 50, Error: 5}
	x := &Targets{Model: "lenet", Score: network.Score{Task: data.MultiLabel, Images: 4, Loss: .5}, AP: half, AUC: half,
		MacroF1: half, MicroF1: half, Exact: half, Classes: []LabelScore{{Name: "cat", Images: 3, Threshold: .25}}}
	for _, classes := range []bool{false, true} {
		var b strings.Builder
		if err := x.Print(&b, classes); err != nil || strings.Contains(b.String(), "0.250") != classes ||
			!strings.Contains(b.String(), "lenet on 4 images: loss 0.5000, mAP ") {
			t.Errorf("%v: %v\n%s", classes, err, b.String())
		}
	}
}

// An evaluation of numbers is described by their measures.
func TestTargetsView(t *testing.T) {
	s := network.Score{Task: data.Regression, Images: 4, RMSE: 2, Deviation: .5, MAE: 1.5, R2: .75, Loss: 2}
	e := &Evaluation{Epoch: 1, Score: s, Targets: &Targets{Score: s}}
	r := run(1, .1, 100)
	r.History[0].Best = &hook.BestRecord{Epoch: 1, ScoreRecord: hook.ScoreRecord{Kind: network.SGD, Score: s}}
	v := e.view(&r, false)
	want := "The best weights (SGD, epoch 1) on 4 images: RMSE 2 ± 0.5, MAE 1.5, R² 0.7500, loss 2.0000; ± is a " +
		"standard error."
	if v.Title != "Numbers" || len(v.Lines) != 1 || v.Lines[0] != want {
		t.Errorf("%+v, want %s", v, want)
	}
}
