package report

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // the template, the style and the script of a page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"onlinerna/data"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/runs"
)

// MaxSections is the number of groups that a page describes one by one. The comparison has all.
const MaxSections = 12

// Page is a report on runs: one HTML file without links to others, for screens of any width and for paper.
type Page struct {
	Groups []Group
	Passed []string // a line for each thing that is not a run
	// Evaluations are those of the runs that Shown names, by folder. Missing tells why a run has none.
	Evaluations map[string]*Evaluation
	Missing     map[string]string
}

// Shown lists the run of each section whose classes and images the page shows: the one with the best weights.
func (p *Page) Shown() (list []*runs.Run) {
	for i := range p.Groups[:min(len(p.Groups), MaxSections)] {
		list = append(list, p.Groups[i].best())
	}
	return list
}

// best is the run with the best weights, the first if no weights were compared.
func (g *Group) best() *runs.Run {
	best := &g.Runs[0]
	for i := range g.Runs {
		if b := g.Runs[i].Best(); b != nil && (best.Best() == nil || b.Score.Error() < best.Best().Score.Error()) {
			best = &g.Runs[i]
		}
	}
	return best
}

var (
	//go:embed page.tmpl
	pageText string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string

	pageTemplate = template.Must(template.New("page").Parse(pageText))
)

// pageView is a Page as its template shows it.
type pageView struct {
	Title, ScriptHash string
	Style             template.CSS
	Script            template.JS
	Lead, Passed      []string
	Overview          *overview
	Contents          bool
	Sections          []section
}

// overview compares groups.
type overview struct {
	Legend      []chartLine
	Charts      []chart
	ChartNote   string
	Scatters    []scatter
	Table       pageTable
	Differences *pageTable
}

// section describes a group.
type section struct {
	ID, Heading  string
	Facts        [][2]string
	Warnings     []string
	Verdict      string
	Legend       []chartLine
	Charts       []chart
	ChartNote    string
	Candidates   *pageTable
	Search       *pageTable
	Coefficients *heat
	Evaluation   *evaluationView
	Missing      string
	Time         *pageTable
	Machines     *pageTable
	OptionsTitle string
	Options      pageTable
	LongOptions  bool
	Repeat       []string
	RepeatNote   string
}

// pageTable is a table with a note below it. The rows in Best stand out.
type pageTable struct {
	Head  []string
	Rows  [][]string
	Note  string
	Best  []int
	Words bool // cells are text, to be aligned left and wrapped
}

// IsBest reports whether a row stands out.
func (t pageTable) IsBest(row int) bool {
	for _, k := range t.Best {
		if k == row {
			return true
		}
	}
	return false
}

// Many reports whether the columns need small type on paper.
func (t pageTable) Many() bool { return len(t.Head) > 6 }

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	sum := sha256.Sum256([]byte(pageScript))
	v := pageView{Style: template.CSS(pageStyle + colourClasses()), Script: template.JS(pageScript), Passed: p.Passed,
		ScriptHash: "sha256-" + base64.StdEncoding.EncodeToString(sum[:])}
	all := runsOf(p.Groups)
	if len(all) == 0 {
		return fmt.Errorf("nothing to report: no runs")
	}
	v.Title = cmp.Or(all[0].Config.Model, "a net") + " on " + filepath.Base(all[0].Data())
	if len(all) > 1 {
		v.Title = count(all)
		if len(p.Groups) < len(all) {
			v.Title += ", in " + text.Count(len(p.Groups), "group")
		}
	}
	if len(p.Groups) > 1 {
		v.Overview = overviewOf(p.Groups)
		v.Lead = append(v.Lead, "Runs that differ only in their seed are one group. Differences are those from "+
			p.Groups[0].Label+".")
	}
	if n := len(p.Groups); n > MaxSections {
		v.Lead = append(v.Lead, fmt.Sprintf("The first %d groups are described below; the comparison has all %d.", MaxSections,
			n))
	}
	for i := range p.Groups[:min(len(p.Groups), MaxSections)] {
		v.Sections = append(v.Sections, p.section(&p.Groups[i]))
	}
	v.Contents = len(v.Sections) > 1
	return pageTemplate.Execute(w, v)
}

// section describes a group.
func (p *Page) section(g *Group) section {
	r := g.best()
	s := section{ID: "group-" + g.Label, Heading: g.Label + ": " + g.names()}
	if len(p.Groups) == 1 {
		s.Heading = g.names()
	}
	s.Facts = factsOf(g)
	for i := range g.Runs {
		x := &g.Runs[i]
		switch {
		case x.Failure != nil:
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s failed in epoch %d: %s", x.Name, x.Failure.Epoch, x.Failure.Error))
		case x.State != train.Done:
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s is %s: %d of %d epochs are shown", x.Name, x.State, x.Epoch(),
				x.Config.Epochs))
		}
	}
	if len(g.Runs) == 1 && len(r.History) > 0 {
		s.Verdict = strings.TrimSpace(verdict(r.Config, r.History))
	}
	s.Legend, s.Charts, s.ChartNote = chartsOf(g)
	s.Candidates = candidatesOf(g)
	s.Search = searchOf(r.History)
	s.Time = timeOf(g)
	s.Coefficients = coefficientsOf(r, len(g.Runs) > 1)
	if e := p.Evaluations[r.Dir]; e != nil {
		s.Evaluation = e.view(r, len(g.Runs) > 1)
	}
	s.Missing = p.Missing[r.Dir]
	sessions, _ := train.ReadSessions(r.Dir)
	s.Machines = machinesOf(sessions)
	s.repeat(r, g, sessions)
	return s
}

// factsOf lists a group's model, images, training options and state.
func factsOf(g *Group) (list [][2]string) {
	r := &g.Runs[0]
	c := &r.Config
	add := func(name, value string) {
		if value != "" {
			list = append(list, [2]string{name, value})
		}
	}
	add("Model", c.Model)
	if c.Init != "" {
		add("Started from", c.Init)
	}
	if c.Teacher != "" {
		add("Teacher", fmt.Sprintf("%s, weight %g, temperature %g", c.Teacher, c.TeacherAlpha, c.TeacherTemperature))
	}
	of := "classes"
	if c.Task == data.Regression {
		of = "numbers each"
	}
	images := fmt.Sprintf("%s, %d %s at %d×%d", r.Data(), max(len(c.Classes), c.NumClasses), of, c.ImageSize,
		c.ImageSize)
	if len(r.History) > 0 {
		last := &r.History[len(r.History)-1]
		images += "; " + text.Thousands(last.Train.Images) + " images an epoch to train on"
		if last.SGD != nil {
			images += ", " + text.Thousands(last.SGD.Images) + " for validation"
		}
		if len(last.Held) > 0 {
			images += ", " + text.Thousands(last.Held[0].Score.Images) + " held out"
		}
	}
	add("Images", images)
	batch := strconv.Itoa(c.Batch)
	if c.Accumulate > 1 {
		batch += fmt.Sprintf(" × %d", c.Accumulate)
	}
	add("Training", fmt.Sprintf("%s, batch %s, %s", text.Count(c.Epochs, "epoch"), batch, c.OptimizerLine()))
	if c.RNA.Mode == average.Off {
		add("RNA", "off")
	} else if c.RNA.Beta != nil {
		add("RNA", fmt.Sprintf("%s, window %d, %s, beta %g, from epoch %d on", c.RNA.Mode, c.RNA.Window, c.RNA.Rule(),
			*c.RNA.Beta, c.RNA.Start))
	}
	if len(g.Runs) > 1 {
		var seeds []string
		for i := range g.Runs {
			seeds = append(seeds, g.Runs[i].Option("seed"))
		}
		add("Seeds", text.Some(seeds))
	}
	add("State", g.state())
	if t := r.Updated; !t.IsZero() {
		for i := range g.Runs {
			if g.Runs[i].Updated.After(t) {
				t = g.Runs[i].Updated
			}
		}
		add("Last record", t.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	return list
}

// machinesOf lists the machines and programs of a run's processes.
func machinesOf(sessions []train.Session) *pageTable {
	if len(sessions) == 0 {
		return nil
	}
	t := &pageTable{Words: true, Head: []string{"from epoch", "started", "machine", "device", "program"}}
	for _, s := range sessions {
		machine := fmt.Sprintf("%s, %s", cmp.Or(s.CPU, s.System), text.Count(s.Cores, "core"))
		if s.Memory > 0 {
			machine += ", " + text.Bytes(s.Memory)
		}
		device := strings.TrimSpace(cmp.Or(s.Card, s.Device) + " " + s.Precision)
		if s.Ranks > 1 {
			device = fmt.Sprintf("%d × %s", s.Ranks, device)
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(s.Epoch), s.Started.Format("2006-01-02 15:04 UTC"), machine, device,
			fmt.Sprintf("rna %s, %s, %s", s.Version, s.Go, s.System)})
	}
	return t
}

// repeat lists the options that are not defaults, and the commands that repeat the runs.
func (s *section) repeat(r *runs.Run, g *Group, sessions []train.Session) {
	s.OptionsTitle, s.Options = "Options other than the defaults", pageTable{Words: true, Head: []string{"option", "value"}}
	command := "rna train"
	if k := len(sessions); k > 0 {
		for _, x := range sessions[k-1].Chosen {
			s.Options.Rows = append(s.Options.Rows, []string{x.Name, x.Value})
			switch {
			case x.Name == "classes":
				command += " --classes FILE"
			case x.Name == "seed" && len(g.Runs) > 1:
			case x.Value == "true" || x.Value == "false": // a switch takes no word behind it
				command += " --" + x.Name + "=" + x.Value
			default:
				command += " --" + x.Name + " " + quoted(x.Value)
			}
		}
		s.RepeatNote = "Equal bits need the same images and the same program; on another device, or with another level of " +
			"the CPU, results differ by rounding. " + fileNote
	} else {
		s.OptionsTitle, s.LongOptions = "Options", true
		for _, x := range train.Options().Settings(&r.Config) {
			s.Options.Rows = append(s.Options.Rows, []string{x.Name, x.String()})
		}
		command += " --config " + quoted(filepath.Join(r.Dir, "config.json"))
		s.RepeatNote = "The run does not record which of these are defaults: a version of rna from before then trained it. " +
			fileNote
	}
	for i := range g.Runs[:min(len(g.Runs), 20)] {
		line := command
		if len(g.Runs) > 1 {
			line += " --seed " + g.Runs[i].Option("seed")
		}
		s.Repeat = append(s.Repeat, line)
	}
}

const fileNote = "config.json in the run's folder holds every option as resolved: --config takes it."

// quoted is a word for a POSIX shell.
func quoted(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+%@") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// evaluationView is an Evaluation as its template shows it.
type evaluationView struct {
	Title       string
	Lines       []string
	Scatters    []scatter
	Confusion   *heat
	Mistakes    *pageTable
	Classes     pageTable
	Long        bool // Classes has many
	Worst, Best []tile
}

// tile is an image with its caption.
type tile struct {
	EvaluatedImage
	Class  string
	Source template.URL // the picture itself, "" for none
	Share  string       // the probability of the predicted class; "" if there are several
	Loss   string
}

// maxOpen is the number of classes that a page shows without being asked.
const maxOpen = 20

// view describes an evaluation. several says that the run is one of a group's.
func (e *Evaluation) view(r *runs.Run, several bool) *evaluationView {
	v := &evaluationView{Title: "Classes", Long: len(e.Classes) > maxOpen, Worst: e.tiles(e.Worst), Best: e.tiles(e.Best)}
	name := "The best weights"
	if several {
		name += " of the group, those of " + r.Name
	}
	of := fmt.Sprintf("%s (%s, epoch %d) on %s images: ", name, nameOf(r.Config, r.Best().ScoreRecord), e.Epoch,
		text.Thousands(e.Score.Images))
	if e.Targets != nil {
		v.targets(e, of, r.Config.Holdout > 0)
	} else {
		v.Lines = append(v.Lines, of+fmt.Sprintf("error %.2f %%, top-1 between %.2f and %.2f %% (95 %%, Wilson), loss %s, "+
			"calibration error %.4f.", e.Score.Error(), e.Interval[0], e.Interval[1], lossText(e.Score.Loss), e.Calibration),
			fmt.Sprintf("Balanced accuracy %v %%, macro F1 %v %%; ± is a standard error.", e.Balanced, e.MacroF1))
		v.Classes.Head = []string{"class", "images", "recall %", "precision %", "F1 %"}
		for _, c := range e.Classes {
			v.Classes.Rows = append(v.Classes.Rows, []string{c.Name, text.Thousands(c.Images), c.Recall.String(),
				c.Precision.String(), c.F1.String()})
		}
		v.Confusion, v.Mistakes = e.confusion()
	}
	if e.Note != "" {
		v.Lines = append(v.Lines, e.Note)
	}
	return v
}

// tiles describes images.
func (e *Evaluation) tiles(list []EvaluatedImage) (tiles []tile) {
	for _, x := range list {
		x.Predicted = strings.ReplaceAll(x.Predicted, " %", "\u00a0%")
		t := tile{EvaluatedImage: x, Loss: "not finite"}
		switch {
		case e.Score.Task == data.Regression: // is neither right nor wrong
			t.Class = " plain"
		case x.Right:
			t.Class = " right"
		}
		if e.Targets == nil {
			t.Share = fmt.Sprintf("%.1f\u00a0%%, ", math.Floor(1000*x.Probability)/10)
		}
		if x.Loss != nil {
			t.Loss = fmt.Sprintf("%.3g", *x.Loss+0) // not -0
		}
		if x.Picture != nil {
			t.Source = template.URL("data:" + http.DetectContentType(x.Picture) + ";base64," +
				base64.StdEncoding.EncodeToString(x.Picture))
		}
		tiles = append(tiles, t)
	}
	return tiles
}
