package report

import (
	"bytes"
	"context"
	"image/color"
	"slices"
	"strings"
	"testing"
	"time"

	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/runs"
)

// scores makes a series of errors in percent by epoch.
func scores(name string, wrong map[int]float64) series {
	s := series{kind: network.SGD, name: name, scores: map[int]network.Score{}}
	for e, v := range wrong {
		s.scores[e] = network.Score{Top1: 100 - v, Loss: v / 10, Images: 100}
	}
	return s
}

// The axes of a chart are from 54 to 442 for the epochs, and from 246 up to 26 for the values.
func TestChartPlaces(t *testing.T) {
	c := newChart("Error, %", 11, []int{6})
	if c.x(1, 11) != 54 || c.x(11, 11) != 442 || c.x(6, 11) != 248 || c.x(1, 1) != 54 || c.Phases[0] != 248 {
		t.Errorf("%v, %v, %v, %v, %v", c.x(1, 11), c.x(6, 11), c.x(11, 11), c.x(1, 1), c.Phases)
	}
	if c.LabelX != c.Left-5 || c.LabelY != c.Bottom+16 || c.NameY != c.Bottom+36 {
		t.Errorf("%+v", c)
	}
	named := map[string]float64{}
	for _, x := range c.X {
		named[x.Label] = x.At
	}
	if named["1"] != 54 || named["6"] != 248 && named["5"] == 0 || named["11"] != 442 {
		t.Errorf("%v", named)
	}
	list := []meanCurve{over([]series{scores("a", map[int]float64{1: 10, 6: 20, 11: 30})}),
		over([]series{scores("b", map[int]float64{6: 40}), scores("b", map[int]float64{6: 0})}),
		over([]series{scores("c", map[int]float64{1: 12, 11: 14}), scores("c", map[int]float64{1: 16, 11: 26})})}
	list[0].class = "s"
	c.curves(list, 11, span{lo: 10, hi: 30}, network.Score.Error, "%.2f", " %")
	for i, want := range []struct{ path, band, class string }{{"M54 246L248 136L442 26", "", "s"},
		{"M248 136L248 136", "", " dot"}, {"M54 202L442 136", "M54 180L442 70L442 202L54 224Z", ""}} {
		if got := c.Lines[i]; got.Path != want.path || got.Band != want.band || got.Class != want.class {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	if got := c.Data.Lines[1].Values; !slices.Equal(got, []string{"", "20.00 % (0.00 to 40.00)", ""}) {
		t.Errorf("%q", got)
	}
	if !slices.Equal(c.Data.X, []int{1, 6, 11}) || !slices.Equal(c.Data.At, []float64{54, 248, 442}) {
		t.Error(c.Data.X, c.Data.At)
	}
	places := map[string]float64{}
	for _, y := range c.Y {
		if places[y.Label] = y.At; y.TextY != y.At+4 {
			t.Errorf("%+v", y)
		}
	}
	if places["10"] != 246 || places["20"] != 136 || places["30"] != 26 {
		t.Error(places)
	}
	logs := newChart("Loss", 2, nil)
	logs.curves(list[:1], 2, span{lo: .01, hi: 1, log: true}, func(s network.Score) float64 { return s.Loss }, "%.1f", "")
	for _, y := range logs.Y {
		if want, ok := map[string]float64{"0.01": 246, "0.1": 136, "1": 26}[y.Label]; ok && y.At != want {
			t.Errorf("%+v, want %v", y, want)
		}
	}
	if len(logs.Y) < 3 || logs.Title != "Loss (log scale)" {
		t.Errorf("%+v", logs)
	}
	// Of 250 epochs every third is shown, and the last.
	long := map[int]float64{}
	for e := 1; e <= 250; e++ {
		long[e] = 20
	}
	many := newChart("Error", 250, nil)
	many.curves([]meanCurve{over([]series{scores("a", long)})}, 250, span{lo: 10, hi: 30}, network.Score.Error, "%.2f", "")
	if x := many.Data.X; len(x) != 84 || x[1] != 4 || x[83] != 250 {
		t.Error(len(x), x)
	}
	for e := 201; e <= 250; e++ { // of 200 every second
		delete(long, e)
	}
	many = newChart("Error", 200, nil)
	many.curves([]meanCurve{over([]series{scores("a", long)})}, 200, span{lo: 10, hi: 30}, network.Score.Error, "%.2f", "")
	if x := many.Data.X; len(x) != 101 || x[1] != 3 || x[100] != 200 {
		t.Error(len(x), x)
	}
}

// Cells have a path for each of 20 levels of either sign; a value near 0 has the first, 0 none.
func TestHeatLevels(t *testing.T) {
	h := &heat{Left: 46, Top: 26, rows: 2, cols: 3, cellWide: 10, cellHigh: 5}
	values := [][]float64{{1, -.05, .01}, {0, -1, 1}}
	h.fill(func(row, col int) (float64, string, bool) { return values[row][col], "w", row+col < 3 })
	want := []level{{"c2", 1, "M56 31h10v5h-10z"}, {"c2", .05, "M56 26h10v5h-10z"}, {"c1", .05, "M66 26h10v5h-10z"},
		{"c1", 1, "M46 26h10v5h-10z"}}
	if !slices.Equal(h.Levels, want) || h.W != 30 || h.H != 10 {
		t.Errorf("%+v, %v, %v", h.Levels, h.W, h.H)
	}
	if len(h.Data.Cells) != 5 || h.Data.Cells["1,0"] != "w" || h.Data.Left != 46 || h.Data.Top != 26 || h.Data.Width != 10 ||
		h.Data.Height != 5 {
		t.Errorf("%+v", h.Data)
	}
}

func texts(h *heat, class, text string) (list [][2]float64) {
	for _, x := range h.Texts {
		if x.Class == class && x.Text == text {
			list = append(list, [2]float64{x.X, x.Y})
		}
	}
	return list
}

func TestCoefficientPlaces(t *testing.T) {
	r := &runs.Run{Name: "r", History: []hook.EpochRecord{
		{Epoch: 3, RNA: &hook.RNARecord{Status: "ok", C: []float64{-.25, 1.25}}},
		{Epoch: 4, RNA: &hook.RNARecord{Status: "ok", C: []float64{.5, .5}}}}}
	h := coefficientsOf(r, false)
	for _, c := range []struct {
		class, text string
		x, y        float64
	}{{"e", "0", 41, 42}, {"e", "1", 41, 66}, {"m", "3", 66, 89}, {"m", "4", 106, 89}, {"m", "epoch", 86, 106}} {
		if got := texts(h, c.class, c.text); !slices.Equal(got, [][2]float64{{c.x, c.y}}) {
			t.Errorf("%q: %v, want %v", c.text, got, c)
		}
	}
	if h.Height != 114 || h.Data.Cells["0,0"] != "1.25" || h.Data.Cells["1,0"] != "-0.25" || h.Data.Cells["0,1"] != "0.5" ||
		!slices.Equal(h.Data.Cols, []string{"epoch 3", "epoch 4"}) || !strings.Contains(h.Note, "up to ±1.25") {
		t.Errorf("%+v", h)
	}
	// The largest is 1.25: −0.25 is a fifth of it, the fourth level of twenty.
	if !slices.Contains(h.Levels, level{"c2", .2, "M46 50h40v24h-40z"}) {
		t.Errorf("%+v", h.Levels)
	}
}

// Of two classes a cell is 177 wide. 40 of the 50 images are above three fifths, 10 are not.
func TestConfusionPlaces(t *testing.T) {
	e := &Evaluation{Names: []string{"a", "b", "c"}, Confusion: [][3]int{{0, 0, 40}, {0, 2, 10}, {2, 2, 50}}}
	h, table := e.confusion()
	want := []cellText{{X: 99, Y: 118.5, Class: "e", Text: "a"}, {X: 196.5, Y: 386, Class: "e", Text: "a", Turn: true},
		{X: 192.5, Y: 118.5, Class: "m on", Text: "40"}, {X: 369.5, Y: 118.5, Class: "m", Text: "10"},
		{X: 99, Y: 295.5, Class: "e", Text: "c"}, {X: 373.5, Y: 386, Class: "e", Text: "c", Turn: true},
		{X: 369.5, Y: 295.5, Class: "m on", Text: "50"}}
	if !slices.Equal(h.Texts, want) || h.Height != 484 {
		t.Errorf("%+v, height %d", h.Texts, h.Height)
	}
	if h.Data.Cells["0,1"] != "10 images, 20.0 %" || len(h.Data.Cells) != 3 || h.Data.Rows[1] != "label c" {
		t.Errorf("%+v", h.Data)
	}
	if table == nil || len(table.Rows) != 1 || !slices.Equal(table.Rows[0], []string{"a", "c", "10", "20.0"}) {
		t.Errorf("%+v", table)
	}
	if h, table := (&Evaluation{Names: []string{"a"}, Confusion: [][3]int{{0, 0, 4}}}).confusion(); h != nil || table != nil {
		t.Error("a matrix of one class")
	}
}

func TestLabels(t *testing.T) {
	for i, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 27: "AB", 51: "AZ", 52: "BA", 701: "ZZ", 702: "AAA"} {
		if got := label(i); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	for n, want := range map[int]int{1: 1, columns: 1, columns + 1: 2, 2 * columns: 2} {
		if got := legendRows(n); got != want {
			t.Errorf("%d entries in %d rows", n, got)
		}
	}
	if l := groupLine(10); l.Color != (color.RGBA{15, 0, 120, 255}) || l.Dashes != nil || groupLine(12).Dashes == nil {
		t.Errorf("%+v", l)
	}
	for x, want := range map[float64]string{.01234: "0.0123", 99.5: "99.5", 100: "100", 1234.4: "1234"} {
		if got := seconds(x); got != want {
			t.Errorf("%v: %s", x, got)
		}
	}
}

// One and a half of five epochs took 15 seconds since the first was done: 2.5 epochs take 25.
func TestTimeLeft(t *testing.T) {
	p := &Progress{began: time.Now().Add(-15 * time.Second), from: 1}
	s := &hook.State{Epochs: 5}
	if got := p.left(s, 2, .5); got != "  25 s left" {
		t.Errorf("%q", got)
	}
	fresh := NewProgress(&bytes.Buffer{}, &bytes.Buffer{}, true)
	shown := NewProgress(&bytes.Buffer{}, &bytes.Buffer{}, true)
	half := &hook.State{Epoch: 2, Epochs: 5, Batch: 5, Batches: 10, Step: &hook.StepRecord{}}
	if err := fresh.AfterStep(context.Background(), half); err != nil || fresh.from != 1.5 {
		t.Errorf("from %v epochs on, %v", fresh.from, err)
	}
	if shown.draw(half); shown.epoch != half.Epoch {
		t.Errorf("the bar is of epoch %d", shown.epoch)
	}
	if p.left(s, 1, 0) != "" || p.left(s, 5, 0) != "" {
		t.Error("time is left without an epoch, or at the end")
	}
	if got := p.left(s, 4, .5); !strings.HasSuffix(got, " left") {
		t.Errorf("%q", got)
	}
}

// Without a terminal a line a minute tells where the run is.
func TestProgressLine(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, &bytes.Buffer{}, false)
	s := &hook.State{Epoch: 2, Epochs: 5, Batch: 3, Batches: 10, Step: &hook.StepRecord{Loss: 1.5}}
	if err := p.AfterStep(context.Background(), s); err != nil || out.Len() > 0 {
		t.Errorf("%q, %v", &out, err)
	}
	p.next = time.Time{}
	for range 2 {
		if err := p.AfterStep(context.Background(), s); err != nil || out.String() != "epoch 2/5  batch 3/10  loss 1.5000\n" {
			t.Errorf("%q, %v", &out, err)
		}
	}
}

func TestFactsOfPages(t *testing.T) {
	one := demoRun(t, 1)
	other := demoRun(t, 2)
	groups := GroupRuns([]runs.Run{one, other})
	g := &groups[0]
	g.Runs[0].History = slices.Clone(g.Runs[0].History)
	last := &g.Runs[0].History[len(g.Runs[0].History)-1]
	last.Held = []hook.ScoreRecord{{Kind: network.SGD, Score: network.Score{Images: 123, Top1: 80}}}
	images := ""
	for _, f := range factsOf(g) {
		if f[0] == "Images" {
			images = f[1]
		}
	}
	if !strings.HasSuffix(images, ", 123 held out") {
		t.Error(images)
	}
	if m := machinesOf([]train.Session{{Epoch: 1, Device: "cpu", Ranks: 1}, {Device: "cpu", Ranks: 2}}); m.Rows[0][3] != "cpu" ||
		m.Rows[1][3] != "2 × cpu" || machinesOf(nil) != nil {
		t.Errorf("%+v", m)
	}
	failed := demoRun(t, 3)
	failed.History, failed.State = failed.History[:1], train.Failed
	lone := &Group{Runs: []runs.Run{failed}}
	if n := len(lone.drawn()); n != 1 {
		t.Errorf("%d curves of a failed run", n)
	}
	if failed.History = nil; (&Group{Runs: []runs.Run{failed}}).drawn() != nil {
		t.Error("a run without epochs is drawn")
	}
	seeds := ""
	for _, f := range factsOf(g) {
		if f[0] == "Seeds" {
			seeds = f[1]
		}
	}
	if seeds != "1, 2" {
		t.Errorf("seeds %q", seeds)
	}
	var s section
	if s.repeat(&one, &Group{Runs: []runs.Run{one}}, nil); !strings.Contains(s.RepeatNote, "does not record which") {
		t.Error(s.RepeatNote)
	}
	worse, none := demoRun(t, 4), demoRun(t, 5)
	worse.History = worse.History[:5]
	none.History = nil
	for _, list := range [][]runs.Run{{worse, none, one}, {none, worse, one}, {one, worse, none}} {
		if best := (&Group{Runs: list}).best(); best.Config.Seed != 1 {
			t.Errorf("the best is seed %d", best.Config.Seed)
		}
	}
	groups = GroupRuns([]runs.Run{one, other})
	if _, charts, note := chartsOf(&groups[0]); !strings.HasPrefix(note, "Curves are those on validation images;") ||
		!strings.Contains(note, "means of 2 seeds") || len(charts) != 2 {
		t.Error(note)
	}
	legend, charts := groupCharts(groups)
	if len(legend) != 1 || !strings.HasPrefix(legend[0].Name, "A: ") || len(charts) != 2 || !strings.HasPrefix(charts[0].Lines[0].Path, "M54 ") {
		t.Errorf("%+v", legend)
	}
	lambda := 1e-3
	search := searchOf([]hook.EpochRecord{{Epoch: 4, RNA: &hook.RNARecord{Choice: "kept", Candidates: []hook.CandidateRecord{
		{Kind: "kept", Status: "ok"}, {Kind: "extrapolated", Lambda: &lambda, Status: "rank deficient"}}}}})
	if search.Rows[0][0] != "kept" || search.Rows[1][0] != "extrapolated: rank deficient" {
		t.Errorf("%+v", search.Rows)
	}
}

// The base of a comparison is the first group with scores.
func TestBaseOfJSON(t *testing.T) {
	failed := demoRun(t, 1)
	failed.History, failed.State = nil, train.Failed
	failed.Config.Batch = 99
	c := CompareJSON(GroupRuns([]runs.Run{failed, demoRun(t, 1)}))
	if c.Base != "B" {
		t.Errorf("%+v", c)
	}
}

// Thin lines are those of single runs, of groups with several.
func TestThinLines(t *testing.T) {
	for n, want := range map[int]int{1: 0, 2: 2 * 2} { // in two panels
		var list []runs.Run
		for seed := range n {
			list = append(list, demoRun(t, uint64(seed)))
		}
		var b bytes.Buffer
		if err := PlotGroups(&b, "svg", GroupRuns(list)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(b.String(), "stroke-width:0.6"); got != want {
			t.Errorf("%d runs: %d thin lines, want %d", n, got, want)
		}
	}
}

// A card of several seeds tells their mean, and how to repeat the run.
func TestCardOfSeeds(t *testing.T) {
	list := []runs.Run{demoRun(t, 1), demoRun(t, 2)}
	var b bytes.Buffer
	if err := (&Page{Groups: GroupRuns(list)}).WriteCard(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "They are the best of 2 seeds, whose best weights have a mean of 16.50 ± 0.00 %") {
		t.Error(b.String())
	}
	_, repeat, _ := strings.Cut(b.String(), "## To repeat it\n")
	if !strings.Contains(repeat, "\n    rna train ") {
		t.Error(repeat)
	}
}
