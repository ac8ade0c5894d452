package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train/network"
	"onlinerna/train/runs"
)

// Compare writes the scores of groups of runs side by side with the options in which they differ, and their differences
// from the first group that has scores.
func Compare(w io.Writer, groups []Group) error {
	b := terminal.NewPage(w)
	for i := range groups {
		fmt.Fprintf(b, "%s  %s\n", groups[i].Label, text.Printable(groups[i].names()))
	}
	b.WriteByte('\n')
	differ := groupOptions(groups)
	several := severalRuns(groups)
	b.LeftTable(compareRows(groups))
	if len(differ) == 0 && len(groups) > 1 {
		b.WriteString("The runs have the same options.\n")
	}
	all := runsOf(groups)
	if images := judges(all); images != "" {
		fmt.Fprintf(b, "%s\n", errorsOf(all).where(images, all))
	}
	if several {
		b.WriteString("± is a standard error over seeds.\n")
	}
	for i := range groups {
		if names := groups[i].repeated(); len(names) > 0 {
			fmt.Fprintf(b, "%s does not count: another run of %s has the same seed\n",
				text.Printable(strings.Join(names, ", ")), groups[i].Label)
		}
	}
	for _, r := range all {
		if r.Failure != nil {
			fmt.Fprintf(b, "%s failed: %s\n", text.Printable(r.Name), text.Printable(r.Failure.Error))
		}
	}
	if len(groups) > 1 {
		writeDifferences(b, groups)
	}
	return b.Flush(w)
}

// severalRuns reports whether a group has several runs that count.
func severalRuns(groups []Group) bool {
	return slices.ContainsFunc(groups, func(g Group) bool { return len(g.scored()) > 1 })
}

// compareRows is a table of groups below a row of headings.
func compareRows(groups []Group) [][]string {
	differ, j := groupOptions(groups), errorsOf(runsOf(groups))
	rows := [][]string{slices.Concat([]string{""}, differ,
		[]string{"epoch", j.name + j.unit, "loss", "best" + j.unit, "loss"})}
	several := severalRuns(groups)
	unfinished := slices.ContainsFunc(groups, func(g Group) bool { return g.state() != "done" })
	if several {
		rows[0] = append(rows[0], "runs")
	}
	if unfinished {
		rows[0] = append(rows[0], "state")
	}
	for i := range groups {
		g := &groups[i]
		row := []string{g.Label}
		for _, name := range differ {
			row = append(row, optionText(&g.Runs[0], name))
		}
		row = append(row, strconv.Itoa(g.Epoch))
		last, best := g.Last.cells(j), g.Best.cells(j)
		if j.mixed {
			own := errorsOf(g.Runs)
			last, best = g.Last.named(own), g.Best.named(own)
		}
		row = append(append(row, last...), best...)
		if several {
			row = append(row, strconv.Itoa(max(g.Last.N, g.Best.N)))
		}
		if unfinished {
			row = append(row, g.state())
		}
		rows = append(rows, row)
	}
	return rows
}

// names lists the runs of a group.
func (g *Group) names() string {
	var list []string
	for _, r := range g.Runs {
		list = append(list, r.Name)
	}
	return text.Some(list)
}

func runsOf(groups []Group) (all []runs.Run) {
	for _, g := range groups {
		all = append(all, g.Runs...)
	}
	return all
}

// groupOptions lists the options in which groups differ.
func groupOptions(groups []Group) []string {
	var first []runs.Run
	for _, g := range groups {
		first = append(first, g.Runs[0])
	}
	return slices.DeleteFunc(runs.Options(first), func(name string) bool { return name == "seed" })
}

// optionText is the value of an option for a table, a dash if it is not set.
func optionText(r *runs.Run, name string) string {
	const most = 24 // characters
	v := r.Option(name)
	if x, err := strconv.ParseFloat(v, 64); err == nil && strings.Contains(v, ".") {
		v = fmt.Sprintf("%.6g", x)
	}
	return text.Middle(cmp.Or(v, "-"), func(short string) bool { return text.Width(short) <= most })
}

// cells are the error and the loss, with their standard errors.
func (m Measure) cells(j judged) []string {
	if m.N == 0 {
		return []string{"-", "-"}
	}
	e, l := fmt.Sprintf(j.format, m.Error), lossText(m.Loss)
	if m.N > 1 {
		e, l = fmt.Sprintf("%s ± "+j.format, e, m.ErrorSE), fmt.Sprintf("%s ± %s", l, lossText(m.LossSE))
	}
	return []string{e, l}
}

// named are the cells with the name and the unit of the error.
func (m Measure) named(j judged) []string {
	list := m.cells(j)
	if m.N > 0 {
		list[0] = j.name + " " + list[0] + j.unit
	}
	return list
}

// baseOf is the index of the first group that has scores, below 0 if there is none.
func baseOf(groups []Group) int {
	return slices.IndexFunc(groups, func(g Group) bool { return g.Last.N > 0 })
}

// writeDifferences writes the differences of groups from the first that has scores.
func writeDifferences(b *terminal.Page, groups []Group) {
	at := baseOf(groups)
	if at < 0 {
		return
	}
	if errorsOf(runsOf(groups)).mixed {
		b.WriteString("No differences: the runs have different tasks.\n")
		return
	}
	rows, notes := differenceRows(groups)
	if rows == nil {
		fmt.Fprintf(b, "No differences: no other group has a score and a seed in common with %s", groups[at].Label)
		if len(groups) > 2 {
			b.WriteString("; --sort and --reverse put another group first")
		}
		b.WriteString(".\n")
		return
	}
	if j := errorsOf(runsOf(groups)); j.unit != "" {
		fmt.Fprintf(b, "\nErrors less those of %s, in points:\n", groups[at].Label)
	} else {
		fmt.Fprintf(b, "\n%s less that of %s:\n", j.name, groups[at].Label)
	}
	b.LeftTable(rows)
	for _, line := range notes {
		b.WriteString(line + "\n")
	}
}

// differenceRows is a table of the differences of groups from the first that has scores, below a row of headings, with
// lines about it. It is nil if none can be compared.
func differenceRows(groups []Group) (rows [][]string, notes []string) {
	at := baseOf(groups)
	j := errorsOf(runsOf(groups))
	if at < 0 || j.mixed {
		return nil, nil
	}
	base := &groups[at]
	rows = [][]string{{"", "last − " + base.Label, "p", "best − " + base.Label, "p", "over"}}
	var seeds, images, none bool
	for i := range groups {
		if i == at {
			continue
		}
		g := &groups[i]
		row, how := []string{g.Label}, "-"
		for _, d := range []*Difference{g.from(base, lastAt), g.from(base, bestAt)} {
			if d == nil {
				row = append(row, "-", "-")
				continue
			}
			p := "-"
			if !math.IsNaN(d.P) {
				p = strings.TrimPrefix(probability(d.P), "= ")
			}
			row, how = append(row, j.difference(d.Points, d.Half), p), d.how()
			seeds, images = seeds || d.Seeds > 0, images || d.Seeds == 0
		}
		none = none || how == "-"
		rows = append(rows, append(row, how))
	}
	if !seeds && !images {
		return nil, nil
	}
	if seeds {
		notes = append(notes, "Over seeds: by common seed, ± is half of the 95 % interval by Student's t, p is of the paired t test.")
	}
	if images {
		notes = append(notes, "Over images: ± is a standard error, p is McNemar's, of the same images. Neither knows of other seeds.")
		if j.name != "error" {
			notes[len(notes)-1] = "Over images: ± is a standard error as if the images were others. It knows of no other seeds."
		}
	}
	if n := len(groups) - 1; n > 1 && (seeds || j.name == "error") {
		notes = append(notes, fmt.Sprintf("p is not corrected for %d comparisons: below %.2g it is significant at 5 %% for all of them "+
			"(Bonferroni).", n, .05/float64(n)))
	}
	if none {
		notes = append(notes, "- stands for groups that have no seed in common with it, or no finished epoch.")
	}
	return rows, notes
}

// bestBy names the measures by which runs chose the best weights.
func bestBy(list []runs.Run) string {
	var names []string
	for i := range list {
		names = append(names, by(&list[i].Config))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " or ")
}

// judges names the images on which runs are compared, for runs with a finished epoch.
func judges(list []runs.Run) string {
	var on []string
	for _, r := range list {
		if len(r.History) > 0 {
			on = append(on, judgeOf(r.History))
		}
	}
	slices.Sort(on)
	return strings.Join(slices.Compact(on), " or ")
}

// choosers names the images on which runs chose their best weights.
func choosers(list []runs.Run) string {
	var on []string
	for i := range list {
		if list[i].Best() != nil {
			on = append(on, chooserOf(&list[i]))
		}
	}
	slices.Sort(on)
	return strings.Join(slices.Compact(on), " or ")
}

// chooserOf names the images on which a run chose its best weights: held-out ones if it has any.
func chooserOf(r *runs.Run) string {
	if n := len(r.History); n > 0 && len(r.History[n-1].Held) > 0 {
		return onHeldOut
	}
	return judgeOf(r.History)
}

// Comparison is the form of Compare as JSON.
type Comparison struct {
	Differ []string        `json:"differ"` // options in which the groups differ
	Base   string          `json:"base"`   // the first group that has scores
	Groups []ComparedGroup `json:"groups"`
}

// ComparedGroup is a group as JSON. Differences are from the base.
type ComparedGroup struct {
	Label   string              `json:"label"`
	Runs    []Row               `json:"runs"`
	Options map[string]string   `json:"options"` // those in which the groups differ
	Epoch   int                 `json:"epoch"`
	Last    *ComparedMeasure    `json:"last,omitempty"`
	Best    *ComparedMeasure    `json:"best,omitempty"`
	ToLast  *ComparedDifference `json:"last_difference,omitempty"`
	ToBest  *ComparedDifference `json:"best_difference,omitempty"`
}

// ComparedMeasure is a Measure as JSON: standard errors are null for one run, and so are numbers that are not finite.
type ComparedMeasure struct {
	Runs    int      `json:"runs"`
	Error   *float64 `json:"error"`
	ErrorSE *float64 `json:"error_se"`
	Loss    *float64 `json:"loss"`
	LossSE  *float64 `json:"loss_se"`
}

// ComparedDifference is a Difference as JSON. It has the 95 % interval if it is over seeds, else the standard error over
// images.
type ComparedDifference struct {
	Points *float64 `json:"points"`
	Half95 *float64 `json:"half_of_95_percent_interval,omitempty"`
	SE     *float64 `json:"se_over_images,omitempty"`
	P      *float64 `json:"p"`
	Seeds  int      `json:"seeds,omitempty"`
}

// CompareJSON is the form of Compare as JSON.
func CompareJSON(groups []Group) Comparison {
	c := Comparison{Differ: append([]string{}, groupOptions(groups)...)}
	var base *Group
	for i := range groups {
		g := &groups[i]
		x := ComparedGroup{Label: g.Label, Epoch: g.Epoch, Options: map[string]string{}, Runs: Rows(g.Runs),
			Last: g.Last.json(), Best: g.Best.json()}
		for _, name := range c.Differ {
			x.Options[name] = g.Runs[0].Option(name)
		}
		if c.Base == "" && g.Last.N > 0 {
			c.Base, base = g.Label, g
		} else if base != nil {
			x.ToLast, x.ToBest = g.from(base, lastAt).json(), g.from(base, bestAt).json()
		}
		c.Groups = append(c.Groups, x)
	}
	return c
}

func (m Measure) json() *ComparedMeasure {
	if m.N == 0 {
		return nil
	}
	return &ComparedMeasure{m.N, number(m.Error), number(m.ErrorSE), number(m.Loss), number(m.LossSE)}
}

func (d *Difference) json() *ComparedDifference {
	if d == nil {
		return nil
	}
	x := &ComparedDifference{Points: number(d.Points), P: number(d.P), Seeds: d.Seeds}
	if d.Seeds > 0 {
		x.Half95 = number(d.Half)
	} else {
		x.SE = number(d.Half)
	}
	return x
}

// number is a number for JSON, which has no NaN.
func number(x float64) *float64 {
	if !finite(x) {
		return nil
	}
	return &x
}

// CompareCSV writes a line for each run: its group, its state, its scores and the options in which runs differ.
func CompareCSV(w io.Writer, groups []Group) error {
	all := runsOf(groups)
	differ := runs.Options(all)
	if !slices.Contains(differ, "seed") {
		differ = append(differ, "seed")
	}
	out := csv.NewWriter(w)
	out.Write(slices.Concat([]string{"run", "group", "state", "epoch", "error", "loss", "best_error", "best_loss",
		"best_weights", "best_epoch"}, differ))
	value := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	scores := func(s *network.Score) []string {
		if s == nil {
			return []string{"", ""}
		}
		return []string{value(s.Error()), value(s.Loss)}
	}
	for i := range groups {
		for k := range groups[i].Runs {
			r := &groups[i].Runs[k]
			row := []string{r.Dir, groups[i].Label, string(r.State), strconv.Itoa(r.Epoch())}
			row = append(row, scores(lastAt(*r, r.Epoch()))...)
			row = append(row, scores(bestAt(*r, r.Epoch()))...)
			if b := r.Best(); b != nil {
				row = append(row, b.Name(r.Config.OptimizerName()), strconv.Itoa(b.Epoch))
			} else {
				row = append(row, "", "")
			}
			for _, name := range differ {
				row = append(row, r.Option(name))
			}
			out.Write(row)
		}
	}
	out.Flush()
	return out.Error()
}
