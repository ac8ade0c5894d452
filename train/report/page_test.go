package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/train"
	measures "onlinerna/train/evaluate/measure"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/runs"
)

// hostile is a name that means something in HTML, in scripts, in YAML, in Markdown and in a shell.
const hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`|#\n---\n$(x)"

// evaluated is an evaluation of demo's best weights with names of strangers.
func evaluated(t *testing.T, best *hook.BestRecord, classes int) *Evaluation {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	e := &Evaluation{Kind: best.Kind, Snapshots: best.Snapshots, Epoch: best.Epoch, Score: best.Score, Note: hostile}
	half := measures.Estimate{Value: .5, Error: .05}
	for k := range classes {
		e.Names = append(e.Names, fmt.Sprint(hostile, k))
		e.Classes = append(e.Classes, EvaluatedClass{Name: e.Names[k], Images: 50, Recall: half, Precision: half, F1: half})
		e.Confusion = append(e.Confusion, [3]int{k, k, 40}, [3]int{k, (k + 1) % classes, 10})
	}
	loss := 7.5
	e.Worst = []EvaluatedImage{{File: hostile, Label: e.Names[0], Predicted: e.Names[1], Probability: .9999, Loss: &loss,
		Picture: b.Bytes()}}
	e.Best = []EvaluatedImage{{Label: e.Names[1], Predicted: e.Names[1], Right: true, Loss: &loss}}
	return e
}

// paged writes the page of groups.
func paged(t *testing.T, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// demoRun is the run of demo in a folder of its own.
func demoRun(t *testing.T, seed uint64) runs.Run {
	c, h := demo()
	c.Seed, c.Classes, c.Init = seed, []string{hostile, "b"}, hostile
	return runs.Run{Name: hostile, Dir: t.TempDir(), Config: c, History: h, State: train.Done}
}

// Names of strangers are text on the page, and nothing on it is loaded from elsewhere.
func TestPageEscapes(t *testing.T) {
	r := demoRun(t, 1)
	r.Failure, r.State = &train.Failure{Error: hostile}, train.Failed
	p := &Page{Groups: GroupRuns([]runs.Run{r}), Passed: []string{hostile},
		Evaluations: map[string]*Evaluation{r.Dir: evaluated(t, r.Best(), 3)}, Missing: map[string]string{r.Dir: hostile}}
	page := paged(t, p)
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") || strings.Contains(page, "ZgotmplZ") {
		t.Error("a name became HTML")
	}
	if n := strings.Count(page, "onerror="); n == 0 || n != strings.Count(page, "&lt;img src=x onerror=")+
		strings.Count(page, `\u003cimg src=x onerror=`) {
		t.Errorf("%d names, not all of them escaped", n)
	}
	for _, m := range regexp.MustCompile(`(?:src|href|action)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(m[1], "data:image/png;base64,") && !strings.HasPrefix(m[1], "#") {
			t.Errorf("the page refers to %s", m[1])
		}
	}
	if strings.Contains(page, "://") || strings.Contains(page, "url(") || strings.Contains(page, "@import") {
		t.Error("the page names an address")
	}
	for _, tag := range []string{"section", "figure", "svg", "table", "tr", "td", "div", "dl", "ul", "details", "script", "text"} {
		open := len(regexp.MustCompile(`<`+tag+`[\s>]`).FindAllString(page, -1))
		if n := strings.Count(page, "</"+tag+">"); n != open {
			t.Errorf("%d <%s>, %d ends", open, tag, n)
		}
	}
	var card bytes.Buffer
	if err := p.WriteCard(&card); err != nil {
		t.Fatal(err)
	}
	if head := strings.Split(card.String(), "\n---\n"); len(head) != 2 {
		t.Errorf("a name divides the card into %d parts", len(head))
	}
	if strings.Contains(card.String(), "%!") || !strings.Contains(card.String(), "Error 16.50 %, with a standard error of 0.74") {
		t.Errorf("the card tells no error:\n%s", card.String())
	}
	if strings.Contains(card.String(), "<script>") {
		t.Error("a name became HTML in the card")
	}
}

// The curves of several seeds are means within their extremes, and the pointer sees the values of the records.
func TestPageCurves(t *testing.T) {
	a, b := demoRun(t, 1), demoRun(t, 2)
	b.History = slices.Clone(b.History)
	for i := range b.History {
		s := *b.History[i].SGD
		s.Top1, s.Loss = s.Top1-4, s.Loss+2
		b.History[i].SGD = &s
	}
	groups := GroupRuns([]runs.Run{a, b})
	if len(groups) != 1 {
		t.Fatalf("%d groups", len(groups))
	}
	_, charts, note := chartsOf(&groups[0])
	if len(charts) != 2 || !strings.Contains(note, "2 seeds") {
		t.Fatalf("%d charts, %s", len(charts), note)
	}
	for i, want := range []string{"22.00 % (20.00 to 24.00)", "1.4000 (0.4000 to 2.4000)"} {
		at := slices.IndexFunc(charts[i].Data.Lines, func(l chartText) bool { return l.Name == "SGD" })
		if got := charts[i].Data.Lines[at].Values[9]; got != want {
			t.Errorf("%s: %s, want %s", charts[i].Title, got, want)
		}
		if line := charts[i].Lines[at]; line.Band == "" || strings.Count(line.Band, "L") != 19 {
			t.Errorf("%s: band %q", charts[i].Title, line.Band)
		}
	}
	table := candidatesOf(&groups[0])
	// differences by seed: RNA 16.5 − 20 and 16.5 − 24, whose mean is −5.5; t(0.975, 1) = 12.706 times 2
	if row := table.Rows[2]; row[0] != "RNA of the last 3 epochs, offline" || row[1] != "16.50 ± 0.00" ||
		row[3] != "-5.50 ± 25.41" || row[4] != "0.22" { // 1 − (2/π) atan(5.5/2)
		t.Errorf("%v", row)
	}
	if !slices.Equal(table.Best, []int{2}) {
		t.Errorf("best: %v", table.Best)
	}
	one := candidatesOf(&GroupRuns([]runs.Run{a})[0])
	if row := one.Rows[2]; row[1] != "16.50 ± 0.74" || row[3] != "-3.50 ± 1.09" || row[4] != "-" { // √(0.165·0.835/2500)
		t.Errorf("one run: %v", row)
	}
}

// A page of many groups of long runs stays below a megabyte, and describes as many as it says.
func TestPageSize(t *testing.T) {
	var list []runs.Run
	p := &Page{Evaluations: map[string]*Evaluation{}}
	for i := range 20 {
		r := demoRun(t, 1)
		r.Name = fmt.Sprintf("r%d", i)
		r.Config.Epochs, r.Config.Schedule.Rate = 600, float64(i+1)/100
		first := r.History[9]
		for e := 11; e <= 600; e++ {
			first.Epoch = e
			x := *first.RNA
			x.C = []float64{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1}
			first.RNA = &x
			r.History = append(r.History, first)
		}
		list = append(list, r)
		e := evaluated(t, r.Best(), 40)
		e.Worst, e.Best = nil, nil
		for k := range e.Names {
			e.Names[k] = fmt.Sprint("class ", k)
			e.Classes[k].Name = e.Names[k]
		}
		p.Evaluations[r.Dir] = e
	}
	p.Groups = GroupRuns(list)
	page := paged(t, p)
	if len(page) > 1<<20 {
		t.Errorf("%d bytes", len(page))
	}
	if n := strings.Count(page, "<section"); n != MaxSections || !strings.Contains(page, "first 12 groups") ||
		!strings.Contains(page, "r19") {
		t.Errorf("%d sections", n)
	}
}

// evaluation.json counts only for the best weights, and a damaged one is an error.
func TestEvaluationFile(t *testing.T) {
	r := demoRun(t, 1)
	e := evaluated(t, r.Best(), 3)
	if err := e.Write(r.Dir); err != nil {
		t.Fatal(err)
	}
	got, err := ReadEvaluation(r.Dir, r.Best())
	if err != nil || got == nil || got.Score.Loss != e.Score.Loss || len(got.Confusion) != 6 || got.Worst[0].File != hostile {
		t.Fatalf("%+v, %v", got, err)
	}
	other := *r.Best()
	other.Epoch--
	if got, err := ReadEvaluation(r.Dir, &other); got != nil || err != nil {
		t.Errorf("of other weights: %v, %v", got, err)
	}
	if got, err := ReadEvaluation(t.TempDir(), r.Best()); got != nil || err != nil {
		t.Errorf("without a file: %v, %v", got, err)
	}
	whole := e.Confusion
	for _, bad := range [][3]int{{3, 0, 1}, {0, 3, 1}, {-1, 0, 1}, {0, -1, 1}, {0, 0, 0}} {
		e.Confusion = append(slices.Clone(whole), bad)
		if err := e.Write(r.Dir); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadEvaluation(r.Dir, r.Best()); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprint("confusion ", bad)) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	// Another task needs its measures.
	e.Confusion, e.Score.Task = whole, data.Regression
	for name, c := range map[string]struct {
		targets *Targets
		good    bool
	}{"none": {nil, false}, "of another task": {&Targets{}, false}, "its own": {&Targets{Score: e.Score}, true}} {
		e.Targets = c.targets
		if err := e.Write(r.Dir); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadEvaluation(r.Dir, r.Best()); (err == nil) != c.good {
			t.Errorf("measures: %s: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.Dir, evaluationName), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEvaluation(r.Dir, r.Best()); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("cut short: %v", err)
	}
}

// luminance is WCAG's relative luminance of a colour #rrggbb.
func luminance(t *testing.T, colour string) float64 {
	v, err := strconv.ParseUint(colour[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.
	for i, weight := range []float64{.2126, .7152, .0722} {
		x := float64(v>>(16-8*i)&255) / 255
		if x <= .04045 {
			x /= 12.92
		} else {
			x = math.Pow((x+.055)/1.055, 2.4)
		}
		sum += weight * x
	}
	return sum
}

// TestContrast: text has WCAG's ratio of 4.5 on its backgrounds, and lines have 3, in light, in dark and on paper.
func TestContrast(t *testing.T) {
	blocks := regexp.MustCompile(`:root \{([^}]*)\}`).FindAllStringSubmatch(pageStyle, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d lists of colours", len(blocks))
	}
	for i, b := range blocks {
		colour := map[string]float64{}
		for _, m := range regexp.MustCompile(`--(\w+): (#\w{6});`).FindAllStringSubmatch(b[1], -1) {
			colour[m[1]] = luminance(t, m[2])
		}
		check := func(text, back string, least float64) {
			x, ok1 := colour[text]
			y, ok2 := colour[back]
			if r := (max(x, y) + .05) / (min(x, y) + .05); !ok1 || !ok2 || r < least {
				t.Errorf("list %d: %s on %s has a contrast of %.2f, want %g", i, text, back, r, least)
			}
		}
		for _, text := range []string{"text", "faint", "accent"} {
			check(text, "back", 4.5)
			check(text, "panel", 4.5)
		}
		check("text", "mark", 4.5)
		check("back", "text", 4.5) // the pointer's box
		for _, line := range append([]string{"good", "bad"}, colourNames...) {
			check(line, "back", 3)
		}
		check("back", "c1", 3) // counts in dark cells
	}
}

// The data for the pointer is JSON that a browser reads back.
func TestPageData(t *testing.T) {
	r := demoRun(t, 1)
	both := paged(t, &Page{Groups: GroupRuns([]runs.Run{r, demoRun(t, 2)}),
		Evaluations: map[string]*Evaluation{r.Dir: evaluated(t, r.Best(), 3)}})
	page := paged(t, &Page{Groups: GroupRuns([]runs.Run{r}),
		Evaluations: map[string]*Evaluation{r.Dir: evaluated(t, r.Best(), 3)}})
	if strings.Contains(page, "The best weights of the group") ||
		!strings.Contains(both, "The best weights of the group") ||
		strings.Contains(page, " They are those of ") || !strings.Contains(both, " They are those of ") {
		t.Error("whose weights were evaluated is not said, or of one run")
	}
	list := regexp.MustCompile(`(?s)<script type="application/json">(.*?)</script>`).FindAllStringSubmatch(page, -1)
	if len(list) != 4 {
		t.Fatalf("%d figures", len(list))
	}
	var curves chartData
	var confusion heatData
	if err := json.Unmarshal([]byte(list[0][1]), &curves); err != nil || len(curves.X) != 10 || len(curves.Lines) != 6 {
		t.Errorf("%+v, %v", curves, err)
	}
	if err := json.Unmarshal([]byte(list[3][1]), &confusion); err != nil || confusion.Cells["0,1"] != "10 images, 20.0 %" ||
		confusion.Rows[2] != "label "+hostile+"2" {
		t.Errorf("%+v, %v", confusion, err)
	}
	if n := strings.Count(page, "data:image/png;base64,"+base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n"))[:6]); n != 1 {
		t.Errorf("%d pictures", n)
	}
	if network.RNA != r.Best().Kind || !strings.Contains(page, "epoch 10, 16.50 %, 3.50") {
		t.Error("no verdict")
	}
}
