package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/runs"
)

// Row is a run of a list, as JSON.
type Row struct {
	Name    string            `json:"name"`
	Dir     string            `json:"dir"`
	Model   string            `json:"model"`
	Data    string            `json:"data"`
	Seed    uint64            `json:"seed"`
	State   train.State       `json:"state"`
	Epoch   int               `json:"epoch"`   // finished
	Epochs  int               `json:"epochs"`  // of the whole run
	Measure string            `json:"measure"` // the unit and kind of errors: the lower the better
	Error   *float64          `json:"error"`   // of the iterate after the last finished epoch; null if none
	Loss    *float64          `json:"loss"`
	Best    *BestRow          `json:"best"` // null if no weights were compared
	Images  string            `json:"images,omitempty"`
	Failure *train.Failure    `json:"failure,omitempty"`
	Updated time.Time         `json:"updated"`
	Options map[string]string `json:"options"` // as resolved
}

// BestRow describes the best weights of a run, as JSON.
type BestRow struct {
	Weights string  `json:"weights"`
	Images  string  `json:"images"` // those that chose them
	Epoch   int     `json:"epoch"`
	Error   float64 `json:"error"`
	Loss    float64 `json:"loss"`
}

// Rows describes runs for JSON.
func Rows(list []runs.Run) []Row {
	rows := []Row{}
	for i := range list {
		r := &list[i]
		x := Row{Name: r.Name, Dir: r.Dir, Model: r.Config.Model, Data: r.Data(), Seed: r.Config.Seed, State: r.State,
			Epoch: r.Epoch(), Epochs: r.Config.Epochs, Failure: r.Failure, Updated: r.Updated, Options: map[string]string{}}
		j := errorsOf(list[i : i+1])
		x.Measure = j.name + j.unit
		if s := lastAt(*r, r.Epoch()); s != nil {
			x.Error, x.Loss, x.Images = number(s.Error()), number(s.Loss), judgeOf(r.History)
		}
		if b := r.Best(); b != nil {
			x.Best = &BestRow{b.Name(r.Config.OptimizerName()), chooserOf(r), b.Epoch, b.Score.Error(), b.Score.Loss}
		}
		for _, s := range train.Options().Settings(&r.Config) {
			x.Options[s.Name] = s.String()
		}
		rows = append(rows, x)
	}
	return rows
}

// RunTable writes a line for each run. On a terminal long names lose their middle.
func RunTable(w io.Writer, list []runs.Run) error {
	m, one := measureOf(""), true
	for i := range list {
		if m = measureOf(list[i].Config.Task); m.name != measureOf(list[0].Config.Task).name {
			one = false
			break
		}
	}
	best := strings.ReplaceAll("best "+m.name+m.unit, "error\u00a0", "")
	if !one {
		best = "best"
	}
	rows := [][]string{{"run", "model", "data", "epochs", strings.ReplaceAll(best, "\u00a0", " "), "loss", "state"}}
	widths := make([]int, len(rows[0]))
	for i := range list {
		r := &list[i]
		row := []string{text.Printable(r.Name), r.Config.Model, text.Printable(filepath.Base(r.Data())),
			fmt.Sprintf("%d/%d", r.Epoch(), r.Config.Epochs), "-", "-", string(r.State)}
		if b := r.Best(); b != nil {
			m := measureOf(b.Score.Task)
			row[4], row[5] = m.cells(b.Score)[0], lossText(b.Score.Loss)
			if !one {
				row[4] = m.name + " " + m.show(b.Score)
			}
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		for k, cell := range row[1:] {
			widths[k+1] = max(widths[k+1], text.Width(cell))
		}
	}
	if room := terminal.Columns(w); room > 0 {
		for _, n := range widths[1:] {
			room -= n + 2
		}
		for _, row := range rows {
			row[0] = text.Shorten(max(room, 8), row[0])
		}
	}
	b := terminal.NewPage(w)
	b.LeftTable(rows)
	for _, r := range list {
		if r.Failure != nil {
			fmt.Fprintf(b, "%s failed in epoch %d: %s\n", text.Printable(r.Name), r.Failure.Epoch,
				text.Printable(r.Failure.Error))
		}
	}
	if images := choosers(list); images != "" && bestBy(list) != "" {
		fmt.Fprintf(b, "%s; best: of all weights and epochs, by %s on %s images.\n", count(list), bestBy(list), images)
	}
	return b.Flush(w)
}

// count counts runs by state.
func count(list []runs.Run) string {
	g := Group{Runs: list}
	if state := g.state(); len(list) > 1 {
		for _, s := range train.States() {
			if state == string(s) {
				return fmt.Sprintf("%d runs, all %s", len(list), s)
			}
		}
		return fmt.Sprintf("%d runs: %s", len(list), state)
	}
	return "1 run"
}
