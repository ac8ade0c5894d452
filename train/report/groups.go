package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"onlinerna/internal/stat"
	"onlinerna/train"
	"onlinerna/train/network"
	"onlinerna/train/runs"
)

// A Group holds runs whose options differ only in their seed.
type Group struct {
	Label string // A, B, …, Z, AA, …
	Runs  []runs.Run
	Epoch int // the last epoch that all scored runs have finished

	// Last and Best are the scores after Epoch of the iterate and of the best weights so far, over the scored runs: those
	// that did not fail and have finished an epoch. Best is the zero Measure if no weights were compared.
	Last, Best Measure
}

// Measure is a score over the runs of a group.
type Measure struct {
	N           int     // runs
	Error, Loss float64 // means; the error in percent
	// ErrorSE and LossSE are the standard errors of these means over the seeds, NaN for one run.
	ErrorSE, LossSE float64
}

// GroupRuns sorts runs into groups, ordered by their first runs.
func GroupRuns(list []runs.Run) (groups []Group) {
	options := train.Options()
	at := map[string]int{}
	for _, r := range list {
		var key strings.Builder
		for k := range options {
			if o := &options[k]; o.Name != "out" && o.Name != "seed" {
				fmt.Fprintf(&key, "%s\x00", o.Text(&r.Config))
			}
		}
		i, ok := at[key.String()]
		if !ok {
			i = len(groups)
			at[key.String()], groups = i, append(groups, Group{})
		}
		groups[i].Runs = append(groups[i].Runs, r)
	}
	for i := range groups {
		groups[i].measure()
	}
	Relabel(groups)
	return groups
}

// Relabel labels groups in their order.
func Relabel(groups []Group) {
	for i := range groups {
		groups[i].Label = label(i)
	}
}

// label is the i-th of A, …, Z, AA, AB, ….
func label(i int) string {
	s := string(rune('A' + i%26))
	if i >= 26 {
		return label(i/26-1) + s
	}
	return s
}

// scored lists the runs that count: of each seed the one with most epochs, since a repeated run is no other seed.
func (g *Group) scored() (list []runs.Run) {
	for _, r := range g.Runs {
		if r.State == train.Failed || lastAt(r, r.Epoch()) == nil {
			continue
		}
		i := slices.IndexFunc(list, func(x runs.Run) bool { return x.Config.Seed == r.Config.Seed })
		switch {
		case i < 0:
			list = append(list, r)
		case list[i].Epoch() < r.Epoch():
			list[i] = r
		}
	}
	return list
}

// repeated lists the names of runs that do not count beside one of the same seed.
func (g *Group) repeated() (names []string) {
	list := g.scored()
	for _, r := range g.Runs {
		same := func(x runs.Run) bool { return x.Config.Seed == r.Config.Seed }
		named := func(x runs.Run) bool { return x.Name == r.Name }
		if r.State != train.Failed && slices.ContainsFunc(list, same) && !slices.ContainsFunc(list, named) {
			names = append(names, r.Name)
		}
	}
	return names
}

func (g *Group) measure() {
	list := g.scored()
	for i, r := range list {
		if i == 0 || r.Epoch() < g.Epoch {
			g.Epoch = r.Epoch()
		}
	}
	g.Last, g.Best = g.over(list, lastAt), g.over(list, bestAt)
}

func (g *Group) over(list []runs.Run, score func(runs.Run, int) *network.Score) Measure {
	var wrong, loss []float64
	for _, r := range list {
		if s := score(r, g.Epoch); s != nil {
			wrong, loss = append(wrong, s.Error()), append(loss, s.Loss)
		}
	}
	m := Measure{N: len(wrong)}
	if m.N > 0 {
		m.Error, m.ErrorSE = stat.Mean(wrong)
		m.Loss, m.LossSE = stat.Mean(loss)
	}
	return m
}

// lastAt is the score of a run's iterate after an epoch, nil if it has none.
func lastAt(r runs.Run, epoch int) *network.Score {
	for i := range r.History {
		if r.History[i].Epoch == epoch {
			return series{kind: network.SGD}.score(r.Config, r.History[i], judgeOf(r.History))
		}
	}
	return nil
}

// bestAt is the score of a run's best weights of the epochs up to one.
func bestAt(r runs.Run, epoch int) *network.Score {
	if b := r.BestAt(epoch); b != nil {
		return &b.Score
	}
	return nil
}

// SortGroups sorts groups by "name", "last" or "best" (errors), "loss" (of the best weights), or an option, and labels
// them anew. Groups without the value are last.
func SortGroups(groups []Group, by string, reverse bool) error {
	var of func(g *Group) string
	measure := func(m Measure, x float64) string {
		if m.N == 0 {
			return ""
		}
		return fmt.Sprint(x)
	}
	switch by {
	case "name":
		of = func(g *Group) string { return g.Runs[0].Name }
	case "last":
		of = func(g *Group) string { return measure(g.Last, g.Last.Error) }
	case "best":
		of = func(g *Group) string { return measure(g.Best, g.Best.Error) }
	case "loss":
		of = func(g *Group) string { return measure(g.Best, g.Best.Loss) }
	default:
		o, err := train.Options().Lookup(by)
		if err != nil {
			return fmt.Errorf("%w; besides options there are %s", err, strings.Join(GroupColumns(), ", "))
		}
		of = func(g *Group) string { return o.Text(&g.Runs[0].Config) }
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return runs.Compare(of(&a), of(&b), reverse) })
	Relabel(groups)
	return nil
}

// GroupColumns lists the names that SortGroups knows besides those of options.
func GroupColumns() []string { return []string{"name", "last", "best", "loss"} }

// state counts the states of a group's runs, in words; a single run's is its name.
func (g *Group) state() string {
	var words []string
	for _, s := range train.States() {
		n := 0
		for _, r := range g.Runs {
			if r.State == s {
				n++
			}
		}
		switch {
		case n == len(g.Runs):
			return string(s)
		case n > 0:
			words = append(words, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(words, ", ")
}

// going counts the runs of a group that are still going.
func (g *Group) going() (n int) {
	for _, r := range g.Runs {
		if r.State == train.Running {
			n++
		}
	}
	return n
}

// A Difference is one of errors between two groups, in percentage points.
type Difference struct {
	Points float64
	// Half is half of the 95 % interval by Student's t of the mean over common seeds, or, without two of them, the standard
	// error over images.
	Half float64
	// P is of the paired t test over seeds, or of McNemar's test over images; NaN if neither applies.
	P     float64
	Seeds int // common ones; 0 if the difference is over images
}

// from returns the difference of g from a base group by a score; nil if none of their runs can be compared: they have
// several seeds, and none in common.
func (g *Group) from(base *Group, score func(runs.Run, int) *network.Score) *Difference {
	type pair struct{ x, y runs.Run }
	var pairs []pair
	mine, its := g.scored(), base.scored()
	for _, r := range mine {
		if k := slices.IndexFunc(its, func(b runs.Run) bool { return b.Config.Seed == r.Config.Seed }); k >= 0 {
			pairs = append(pairs, pair{r, its[k]})
		}
	}
	if len(pairs) == 0 && len(mine) == 1 && len(its) == 1 {
		pairs = append(pairs, pair{mine[0], its[0]})
	}
	var d []float64
	for _, p := range pairs {
		x, y := score(p.x, g.Epoch), score(p.y, base.Epoch)
		if x == nil || y == nil {
			return nil
		}
		d = append(d, x.Error()-y.Error())
	}
	switch len(pairs) {
	case 0:
		return nil
	case 1:
		p := pairs[0]
		x, y := *score(p.x, g.Epoch), *score(p.y, base.Epoch)
		if !sameImages(p.x, p.y) {
			x.Right = ""
		}
		gap := between(x, y)
		return &Difference{Points: gap.points, Half: gap.deviation, P: gap.p}
	}
	mean, half := stat.Interval(d)
	return &Difference{mean, half, stat.PairedT(d), len(d)}
}

// how names the test of a difference.
func (d *Difference) how() string {
	switch {
	case d.Seeds > 0:
		return fmt.Sprintf("%d seeds", d.Seeds)
	case math.IsNaN(d.P):
		return "two sets of images"
	}
	return "same images"
}
