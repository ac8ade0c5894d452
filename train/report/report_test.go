package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/schedule"
)

func score(wrong, loss float64) *network.Score {
	return &network.Score{Loss: loss, Top1: 100 - wrong, Top5: 99, Images: 2500}
}

// demo is a run with a constant rate for six of its ten epochs and a model with BatchNorm.
func demo() (train.Spec, []hook.EpochRecord) {
	last := 0.001
	c := train.Spec{BestBy: hook.ByError, Model: "conv6", Data: "/data/shapes<&>", Batch: 32, Accumulate: 4, Epochs: 10,
		Schedule: schedule.Schedule{Kind: schedule.Hold, Rate: 0.1, Final: &last, HoldFor: 6, Epochs: 10},
		RNA:      average.Options{Mode: average.Offline, Window: 3, Averages: []int{2, 5}}}
	var list []hook.EpochRecord
	for e := 1; e <= 10; e++ {
		r := hook.EpochRecord{Kind: "epoch", Epoch: e, Rate: c.Schedule.At(e - 1), Train: *score(50, 1)}
		x := float64(e)
		r.SGD = score(40-2*x, 4/x)
		if e > 1 {
			r.SGDStats = score(39-2*x, 3.9/x)
		}
		if e > 3 {
			r.RNA = &hook.RNARecord{Status: "ok", C: []float64{-0.25, 0.5, 0.75}, NormC: 0.94, Score: score(36.5-2*x, 3.5/x)}
			r.Averages = []hook.AverageRecord{{Epochs: 2, Score: *score(38-2*x, 3.8/x)}}
		}
		if e > 6 {
			r.Averages = append(r.Averages, hook.AverageRecord{Epochs: 5, Score: *score(42-2*x, 4.2/x)})
		}
		list = append(list, r)
		list[e-1].Best = bestOf(list, c.BestBy)
	}
	return c, list
}

// bestOf returns the best of all weights in records, as a run chooses it.
func bestOf(history []hook.EpochRecord, by string) (best *hook.BestRecord) {
	for _, r := range history {
		list, _ := r.Ranking(by)
		if len(list) > 0 && (best == nil || hook.Compare(list[0].Score, best.Score, by) < 0) {
			best = &hook.BestRecord{ScoreRecord: list[0], Epoch: r.Epoch}
		}
	}
	return best
}

func table(t *testing.T, c train.Spec, h []hook.EpochRecord) string {
	t.Helper()
	var b strings.Builder
	if err := Table(&b, c, h); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTable(t *testing.T) {
	c, h := demo()
	want := `
                                   epoch 6, rate 0.1      epoch 10, rate 0.001
validation, error in %              error   loss  to SGD   error   loss  to SGD
SGD                                 28.00 0.6667           20.00 0.4000
SGD, BatchNorm recalibrated         27.00 0.6500   -1.00   19.00 0.3900   -1.00
RNA of the last 3 epochs, offline   24.50 0.5833   -3.50   16.50 0.3500   -3.50
average of the last 2               26.00 0.6333   -2.00   18.00 0.3800   -2.00
average of the last 5                   -      -       -   22.00 0.4200   +2.00
Best by validation error: RNA of the last 3 epochs, offline, epoch 10, 16.50 %, 3.50 ± 1.09 points below SGD (as of two sets of images), 1.50 ± 1.07 points below the next, average of the last 2 (as of two sets of images).
An error measured on 2500 images has a standard error of 0.80 points.
`
	if got := "\n" + table(t, c, h); got != want {
		t.Errorf("table\n%s\nwant\n%s", got, want)
	}
}

func TestTableOfLess(t *testing.T) {
	c, h := demo()
	if got := table(t, c, nil); got != "" {
		t.Errorf("no history: %q", got)
	}
	if got := table(t, c, h[:1]); !strings.Contains(got, "epoch 1, rate 0.1\n") || !strings.Contains(got,
		"\nSGD                      38.00 4.0000\n") || strings.Contains(got, "RNA") {
		t.Errorf("one epoch:\n%s", got)
	}
	h[9].RNA = &hook.RNARecord{Status: "rank deficient"}
	if got := table(t, c, h); !strings.Contains(got, "epoch 10: no extrapolation: rank deficient\n") {
		t.Errorf("a refused extrapolation:\n%s", got)
	}
	for i := range h {
		h[i].RNA, h[i].Averages, h[i].SGDStats = nil, nil, nil
		h[i].Best = bestOf(h[:i+1], c.BestBy)
	}
	if got := table(t, c, h); strings.Contains(got, "RNA") || strings.Contains(got, "average") ||
		strings.Contains(got, "recalibrated") {
		t.Errorf("RNA off:\n%s", got)
	}
	for i := range h {
		h[i].SGD = nil
	}
	if got := table(t, c, h); got != "No validation images. Training loss in epoch 10: 1.0000, error 50.00 %\n" {
		t.Errorf("no validation: %q", got)
	}
	// Four phases: the last three are shown.
	c, h = demo()
	c.Schedule = schedule.Schedule{Kind: schedule.Multi, Rate: 1, Gamma: 0.1, Milestones: []int{2, 4, 8}, Epochs: 10}
	if got := table(t, c, h); strings.Contains(got, "epoch 2,") || !strings.Contains(got, "epoch 4, rate 0.1 ") ||
		!strings.Contains(got, "epoch 10, rate 0.001\n") {
		t.Errorf("four phases:\n%s", got)
	}
	for _, line := range strings.Split(table(t, c, h), "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %q ends in spaces", line)
		}
	}
}

// svg parses a plot and counts its elements; texts are joined.
func svg(t *testing.T, c train.Spec, h []hook.EpochRecord) (count map[string]int, text string) {
	t.Helper()
	var b bytes.Buffer
	if err := Plot(&b, "svg", c, h); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
		t.Error("the SVG contains what is no number")
	}
	count = map[string]int{}
	dec := xml.NewDecoder(&b)
	dec.Strict = true
	inside := ""
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return count, text
		}
		if err != nil {
			t.Fatalf("the SVG is not XML: %v", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			inside = tok.Name.Local
			count[inside]++
			for _, a := range tok.Attr {
				if a.Name.Local != "style" {
					continue
				}
				for _, colour := range []string{"#D55E00", "#0072B2", "#009E73"} {
					if strings.Contains(strings.ToUpper(a.Value), "STROKE:"+colour) {
						count[colour]++
					}
				}
			}
		case xml.CharData:
			if inside == "text" {
				text += "|" + strings.TrimSpace(string(tok))
			}
		}
	}
}

func TestPlot(t *testing.T) {
	c, h := demo()
	count, text := svg(t, c, h)
	for _, want := range []string{"conv6 on shapes<&>, batch 32 × 4, rate 0.1 to epoch 6, then falling linearly to 0.001",
		"|validation loss", "|validation error, %", "|epoch",
		"|SGD|", "|SGD, BatchNorm recalibrated|", "|RNA of the last 3 epochs, offline|", "|Average of the last 2|",
		"|Average of the last 5|", "|Training, mean of the epoch|", "|Phase of the learning rate ends"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the texts %q", want, text)
		}
	}
	// at least one curve in each panel and one in the legend
	for _, colour := range []string{"#D55E00", "#0072B2", "#009E73"} {
		if count[colour] < 3 {
			t.Errorf("%d strokes of colour %s: %v", count[colour], colour, count)
		}
	}
	// RNA off: one curve.
	for i := range h {
		h[i].RNA, h[i].Averages, h[i].SGDStats = nil, nil, nil
	}
	count, text = svg(t, c, h)
	if strings.Contains(text, "RNA") || count["#D55E00"] > 0 {
		t.Errorf("a run without RNA shows it: %q %v", text, count)
	}
	// Values that cannot be drawn, equal values, and a single epoch.
	for i := range h {
		h[i].SGD = score(10, 1)
	}
	h[0].SGD.Loss, h[4].SGD.Loss = math.Inf(1), math.NaN()
	h[5].Train = *score(0, 0)
	h[6].SGD = score(1, 90)
	svg(t, c, h)
	svg(t, c, h[:1])
	c.Epochs = 1
	svg(t, c, h[:1])
	// A run that a budget of time ends has any number of epochs to come.
	c.Epochs = math.MaxInt
	svg(t, c, h)
}

func TestDrawable(t *testing.T) {
	c, h := demo()
	for n, want := range map[int]bool{0: false, 1: true, 2: true, 10: true} {
		if got := Drawable(c, h[:n]); got != want {
			t.Errorf("%d epochs: drawable %v", n, got)
		}
	}
	if err := Plot(io.Discard, "svg", c, nil); err == nil {
		t.Error("an empty history is drawn")
	}
}

func TestSpan(t *testing.T) {
	of := func(kind network.Kind, values ...float64) series {
		s := series{kind: kind, scores: map[int]network.Score{}}
		for i, v := range values {
			s.scores[i+1] = network.Score{Loss: v}
		}
		return s
	}
	loss := func(s network.Score) float64 { return s.Loss }
	for name, c := range map[string]struct {
		list     []series
		log      bool
		zero     bool
		lo, hi   float64 // bounds of the range
		from, to float64 // interval that it must contain
	}{
		"factors": {[]series{of(network.SGD, 2.3, .5, .3), of(network.RNA, 40)}, true, false, .2, 55,
			.3, 40},
		"little":                       {[]series{of(network.SGD, .5, .4, .3)}, false, false, .28, .52, .3, .5},
		"equal but for rounding":       {[]series{of(network.SGD, .5, math.Nextafter(.5, 1))}, false, false, .4, .6, .49, .51},
		"one value":                    {[]series{of(network.SGD, .5)}, false, false, .4, .6, .49, .51},
		"zeros":                        {[]series{of(network.SGD, 60, 2, 0)}, true, true, 1, 75, 1, 60},
		"zeros alone":                  {[]series{of(network.SGD, 0, 0)}, false, false, 0, .01, 0, .001},
		"training, a little lower":     {[]series{of(training, 4, .2), of(network.SGD, 2, .3)}, true, false, .15, 5, .2, 4},
		"training reaches 0":           {[]series{of(training, 4, 0), of(network.SGD, 2, .3)}, true, false, .08, 5, .1, 4},
		"training runs out":            {[]series{of(training, 4, .001), of(network.SGD, 2, .3)}, true, false, .08, 5, .1, 4},
		"nothing that is a number":     {[]series{of(network.SGD, math.NaN(), math.Inf(1))}, false, false, 0, 1, 0, 1},
		"training with nothing beside": {[]series{of(training, 4, 2)}, false, false, 1.8, 4.2, 2, 4},
	} {
		s := spanOf(c.list, loss)
		if s.log != c.log || s.zero != c.zero || s.lo < c.lo || s.hi > c.hi || s.lo > c.from || s.hi < c.to {
			t.Errorf("%s: %+v", name, s)
		}
		for _, x := range c.list {
			for e, v := range x.scores {
				if y := s.at(v.Loss); finite(v.Loss) && (!finite(y) || y < s.at(s.lo) && x.kind != training || y > s.at(s.hi)) {
					t.Errorf("%s: epoch %d at %g lies outside", name, e, y)
				}
			}
		}
		if !s.log {
			continue
		}
		ticks := s.ticks()
		if len(ticks) < 4 || len(ticks) > 12 || s.zero != (ticks[0].Label == "0") {
			t.Errorf("%s: marks %v", name, ticks)
		}
		for _, k := range ticks[1:] {
			if x, err := strconv.ParseFloat(k.Label, 64); err != nil || math.Abs(s.at(x)-k.Value) > 1e-9 {
				t.Errorf("%s: mark %+v", name, k)
			}
		}
	}
}

// TestHeldOut: without validation images weights are compared on the held-out ones.
func TestHeldOut(t *testing.T) {
	c, h := demo()
	for i := range h {
		h[i].SGD, h[i].SGDStats, h[i].Averages, h[i].RNA = nil, nil, nil, nil
		h[i].Held = []hook.ScoreRecord{{Kind: network.SGD, Score: *score(20, .5)}, {Kind: network.Average,
			Snapshots: c.RNA.Averages[1], Score: *score(15, .25)}}
		h[i].Best = bestOf(h[:i+1], c.BestBy)
	}
	got := table(t, c, h)
	for _, want := range []string{"held-out, error in %", "SGD ", "average of the last 5", "-5.00", "Best by held-out " +
		"error: average of the last 5"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "average of the last 2") || strings.Contains(got, "validation") {
		t.Errorf("what was not scored is shown:\n%s", got)
	}
	if _, text := svg(t, c, h); !strings.Contains(text, "held-out loss") {
		t.Errorf("the figure says %q", text)
	}
}
