package report

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/internal/golden"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/runs"
	"onlinerna/train/schedule"
)

// TestGoldenTexts: numbers and names in words, at the limits of their forms.
func TestGoldenTexts(t *testing.T) {
	var b strings.Builder
	for _, x := range []float64{0, 1e-9, .00012345, .5, .999951, 9.99994, 9.99996, 10, 99.9994, 99.9996, 100, 999.994,
		1000, 12345.678, 99999.9, 1e5, 123456, 1e9, math.Inf(1), math.NaN()} {
		fmt.Fprintf(&b, "%v: loss %s, seconds %s\n", x, lossText(x), seconds(x))
	}
	for _, x := range []float64{0, .004, .006, -.004, -.006, 12.345, -1e4} {
		percent := judged{unit: " %"}
		fmt.Fprintf(&b, "%v: signed %s, %s, %s\n", x, signed(x), percent.difference(x, .5), judged{}.difference(x, .5))
	}
	for _, p := range []float64{0, 9.9e-5, 1e-4, .00123, .05, .999, 1} {
		g := gap{p: p, paired: true}
		fmt.Fprintf(&b, "p %v: %s; %s; %s; %s\n", p, probability(p), g.how(1), g.how(2), g.how(40))
	}
	fmt.Fprintln(&b, gap{}.how(3))
	for _, wrong := range []float64{0, 1, 50, 99.5, 100} {
		for _, task := range []data.Task{"", data.Classification, data.MultiLabel, data.Regression} {
			s := network.Score{Top1: 100 - wrong, MAP: 100 - wrong, RMSE: wrong, Deviation: .25, Images: 400, Task: task}
			none := s
			none.Images = 0
			fmt.Fprintf(&b, "%v of %s: %.12g, %.12g\n", wrong, task, standardError(s), standardError(none))
		}
	}
	for _, task := range []data.Task{"", data.Classification, data.MultiLabel, data.Regression} {
		fmt.Fprintln(&b, errorOf(train.Spec{Task: task}).label())
	}
	for _, s := range []string{"", "plain-1.0_x/y,z:=+%@", "two words", "it's", "$(x)", "a\\b", "ö"} {
		fmt.Fprintf(&b, "%q: %s, %s\n", s, quoted(s), markdown(s))
	}
	fmt.Fprintln(&b, markdown("\\`*_{}[]<>#|~!&().-+\x1b\n"))
	for _, i := range []int{0, 1, 25, 26, 27, 51, 52, 701, 702} {
		fmt.Fprint(&b, label(i), " ")
	}
	for n := range 8 {
		fmt.Fprint(&b, legendRows(n), " ")
	}
	golden.Check(t, "texts.txt", b.String())
}

// TestGoldenLooks: the styles of all kinds of curves, the palettes, and the table's options in words.
func TestGoldenLooks(t *testing.T) {
	var b strings.Builder
	for _, kind := range []network.Kind{network.SGD, network.SGDStats, network.RNA, network.EMA, network.Average, training,
		"mine"} {
		for rank := range 7 {
			s := series{kind: kind, rank: rank}
			line, glyph := s.look()
			colour, class := s.looks()
			fmt.Fprintf(&b, "%s %d: %v %v %v, %.12g, %s%s\n", kind, rank, line.Color, line.Width, line.Dashes,
				glyph.Radius, colour, class)
		}
	}
	for i := range 50 {
		line := groupLine(i)
		colour, class := groupLooks(i)
		fmt.Fprintf(&b, "group %d: %v %v %v, %s%s\n", i, line.Color, line.Width, line.Dashes, colour, class)
	}
	fmt.Fprintln(&b, whites{}.Colors())
	b.WriteString(colourClasses())
	for _, o := range []average.Options{{}, {PerEpoch: 1}, {PerEpoch: 2}, {PerEpoch: 2, SegmentMeans: true},
		{SegmentMeans: true}} {
		fmt.Fprintln(&b, snapshots(train.Spec{RNA: o}))
	}
	for _, c := range []train.Spec{{}, {Model: "lenet", Data: "/data/cats", Batch: 8, Accumulate: 1}, {Accumulate: 2},
		{EMADecay: .999, EMA: []float64{1, 2}}, {EMA: []float64{1, 2}}} {
		fmt.Fprintln(&b, title(c), nameOf(c, hook.ScoreRecord{Kind: network.EMA}), nameOf(c, hook.ScoreRecord{Kind: "mine"}))
	}
	golden.Numbers(t, "looks.txt", b.String())
}

// TestGoldenAxes: ranges, positions and marks of axes for values of many sizes.
func TestGoldenAxes(t *testing.T) {
	var b strings.Builder
	loss := func(s network.Score) float64 { return s.Loss }
	of := func(kind network.Kind, values []float64) series {
		s := series{kind: kind, scores: map[int]network.Score{}}
		for i, v := range values {
			s.scores[i+1] = network.Score{Loss: v}
		}
		return s
	}
	for _, values := range [][]float64{{}, {0}, {0, 0}, {1}, {1e-4}, {2.3, 1.1}, {4, 1}, {4.1, 1}, {1, 3.9999}, {5, 1.2},
		{.02, 7}, {1e-6, 300}, {0, 5}, {0, .5, 9}, {-1, 3}, {0, 1, 1.5}, {math.NaN(), 2}, {math.Inf(1), 1},
		{1, 9, math.Inf(-1)}, {40, 90}} {
		for _, trained := range [][]float64{nil, {.001}, {30, 1e-9}} {
			s := spanOf([]series{of(network.SGD, values), of(training, trained)}, loss)
			fmt.Fprintf(&b, "%v, training %v: %.12g to %.12g, log %v, zero %v;", values, trained, s.lo, s.hi, s.log, s.zero)
			for _, y := range []float64{-1, 0, 1e-9, .1, 1, 50} {
				fmt.Fprintf(&b, " %.12g", s.at(y))
			}
			b.WriteString(";")
			if s.log {
				for _, tick := range s.ticks() {
					fmt.Fprintf(&b, " %s %.12g", tick.Label, tick.Value)
				}
			}
			b.WriteString("\n")
		}
	}
	for _, s := range []span{{lo: 1, hi: 1.4}, {lo: 1.4, hi: 2.1}, {lo: .1, hi: .9}, {lo: 7, hi: 81}, {lo: 2e-5, hi: .3},
		{lo: 1, hi: 1000}, {lo: 3, hi: 3000}, {lo: .5, hi: 40, zero: true}} {
		s.log = true
		fmt.Fprintf(&b, "%v:", s)
		for _, tick := range s.ticks() {
			fmt.Fprintf(&b, " %s %.12g", tick.Label, tick.Value)
		}
		for _, tick := range marks(s) {
			fmt.Fprintf(&b, " %s %.12g", tick.Label, tick.Value)
		}
		fmt.Fprintf(&b, "; %v\n", marks(span{lo: s.lo, hi: s.hi}))
	}
	for _, values := range [][]float64{nil, {0}, {3}, {3, 3}, {3, -5, 4}} {
		fmt.Fprintf(&b, "around %v: %v\n", values, around(values))
	}
	for _, points := range [][][2]float64{nil, {{1, 1}}, {{1, 5}, {2, 7}, {3, 6}}, {{-1, 0}, {100, 1}},
		{{.01, 1}, {1, 2}, {.1, 5}}, {{0, 1}, {50, 2}}, {{1, -1}, {50, 2}}} {
		fmt.Fprintf(&b, "%+v\n", newScatter("title", "name", points, []string{"a", "b", "c"}, true))
		fmt.Fprintf(&b, "%+v\n", scatterOf("name", points, 3))
	}
	for _, epochs := range []int{0, 1, 2, 90} {
		c := newChart("title", epochs, []int{1, 2})
		fmt.Fprintf(&b, "%d epochs: %+v\n", epochs, c)
	}
	golden.Numbers(t, "axes.txt", b.String())
}

// TestGoldenHeats: maps of coefficients and of confusions of many sizes, but for their texts.
func TestGoldenHeats(t *testing.T) {
	var b strings.Builder
	show := func(h *heat) {
		if h == nil {
			b.WriteString("none\n")
			return
		}
		fmt.Fprintf(&b, "%s %d×%d, %v %v %v %v, cells %.12g by %.12g, %d levels, %d texts\n", h.Title, h.Width, h.Height,
			h.Left, h.Top, h.W, h.H, h.cellWide, h.cellHigh, len(h.Levels), len(h.Texts))
		for i, l := range h.Levels {
			if i == 0 || i == len(h.Levels)-1 {
				fmt.Fprintf(&b, " %s %g %.40s;", l.Colour, l.Opacity, l.Path)
			}
		}
		for i, x := range h.Texts {
			if i < 3 || i > len(h.Texts)-4 {
				fmt.Fprintf(&b, " %s %.12g %.12g %s %v;", x.Text, x.X, x.Y, x.Class, x.Turn)
			}
		}
		fmt.Fprintf(&b, "\n %.30q and %.30q, %s\n", h.Data.Rows[0], h.Data.Cols[len(h.Data.Cols)-1], h.Note)
	}
	for _, size := range [][2]int{{1, 1}, {1, 8}, {11, 9}, {12, 10}, {13, 11}, {50, 33}, {51, 34}, {101, 5}} {
		r := &runs.Run{Name: "r"}
		for e := range size[0] {
			c := make([]float64, size[1])
			for i := range c {
				c[i] = math.Sin(1 + float64(e*size[1]+i))
			}
			r.History = append(r.History, hook.EpochRecord{Epoch: e + 3, RNA: &hook.RNARecord{C: c}})
		}
		heading(&b, "%d extrapolations of %d", size[0], size[1])
		show(coefficientsOf(r, size[0] > 50))
	}
	h, _ := (&Evaluation{Names: []string{"label", "a", "predicted", "none"}, Confusion: [][3]int{{0, 1, 5}, {1, 1, 1},
		{1, 2, 4}}}).confusion()
	show(h)
	for _, classes := range []int{1, 2, 3, 12, 13, 31, 33, 40, 41} {
		e := &Evaluation{}
		for k := range classes {
			e.Names = append(e.Names, fmt.Sprint("a class of the number ", k))
			e.Confusion = append(e.Confusion, [3]int{k, k, 1 + k%3*5})
			if k%2 == 1 {
				e.Confusion = append(e.Confusion, [3]int{k, 0, 1 + k}, [3]int{k - 1, k, 3})
			}
		}
		heading(&b, "%d classes", classes)
		h, table := e.confusion()
		show(h)
		if table != nil {
			fmt.Fprintln(&b, len(table.Rows), table.Head, table.Rows[0], table.Note)
		}
	}
	golden.Numbers(t, "heats.txt", b.String())
}

// TestGoldenLimits: pages and charts of more groups, runs and epochs than are shown.
func TestGoldenLimits(t *testing.T) {
	var b strings.Builder
	var list []runs.Run
	for i := range 26 {
		c := train.Spec{Data: "d", Seed: 1, Epochs: 1, Schedule: schedule.Schedule{Rate: float64(i+1) / 8}}
		c.RNA.Mode = average.Off
		list = append(list, trained(fmt.Sprint("run ", i), c, 1))
	}
	for _, n := range []int{1, 2, 12, 13, 24, 25, 26} {
		groups := GroupRuns(list[:n])
		p := &Page{Groups: groups}
		legend, _ := groupCharts(groups)
		o := overviewOf(groups)
		fmt.Fprintf(&b, "%d groups: %d shown, %d lines, %s %d\n", n, len(p.Shown()), len(legend), o.ChartNote,
			len(o.Scatters))
		page := paged(t, p)
		_, lead, _ := strings.Cut(page, "<h1>")
		lead, _, _ = strings.Cut(lead, "<h2")
		fmt.Fprintf(&b, "%d sections, contents %v, %s\n", strings.Count(page, "<section"), strings.Contains(page, "<nav"),
			lead)
	}
	for _, n := range []int{1, 2, 19, 20, 21} {
		g := &Group{}
		for seed := range n {
			r := list[0]
			r.Config.Seed = uint64(seed)
			g.Runs = append(g.Runs, r)
		}
		for sessions := range 2 {
			var s section
			chosen := []train.Session{{Chosen: []train.Choice{{Name: "lr", Value: "1"}}}}
			s.repeat(&g.Runs[0], g, chosen[:sessions])
			fmt.Fprintf(&b, "%d runs: %d commands, %s, %s, long %v, %s\n", n, len(s.Repeat), s.Repeat[len(s.Repeat)-1],
				s.OptionsTitle, s.LongOptions, s.RepeatNote)
		}
	}
	for _, epochs := range []int{1, 2, 99, 100, 101, 200, 201, 299, 301} {
		long := map[int]float64{}
		for e := 1; e <= epochs; e++ {
			long[e] = 20
		}
		c := newChart("Error", epochs, nil)
		list := []meanCurve{over([]series{scores("a", long)})}
		c.curves(list, epochs, span{lo: 10, hi: 30}, network.Score.Error, "%.2f", "")
		fmt.Fprintln(&b, epochs, "epochs:", c.Data.X)
	}
	golden.Check(t, "limits.txt", b.String())
}
