package runs

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"onlinerna/internal/files"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// Forms lists the forms of Export.
func Forms() []string { return []string{"csv", "jsonl"} }

// A row is a step or an epoch with flat names.
type row struct {
	names  []string
	values map[string]float64
}

func (r *row) add(name string, x float64) {
	if _, there := r.values[name]; there {
		return
	}
	r.names, r.values[name] = append(r.names, name), x
}

// score adds a score under the names image/weights/loss and so on.
func (r *row) score(images, weights string, s network.Score) {
	prefix := images + "/" + weights + "/"
	if s.Finite() {
		r.add(prefix+"loss", s.Loss)
	}
	for _, x := range s.Numbers() {
		if !math.IsNaN(x.Value) && !math.IsInf(x.Value, 0) {
			r.add(prefix+x.Name, x.Value)
		}
	}
}

// stepRow names the values of a step.
func stepRow(s *hook.StepRecord) *row {
	r := &row{values: map[string]float64{}}
	r.add("step", float64(s.Step))
	r.add("epoch", float64(s.Epoch))
	r.add("lr", s.Rate)
	r.add("step/loss", s.Loss)
	r.add("step/top1", s.Top1)
	return r
}

// epochRow names the values of an epoch.
func epochRow(e *hook.EpochRecord, optimizer string) *row {
	r := &row{values: map[string]float64{}}
	r.add("step", float64(e.Step))
	r.add("epoch", float64(e.Epoch))
	r.add("lr", e.Rate)
	r.score("train", optimizer, e.Train)
	for _, s := range append(e.Scores(), e.Others...) {
		r.score("validation", s.Name(optimizer), s.Score)
	}
	for _, s := range e.Held {
		r.score("held-out", s.Name(optimizer), s.Score)
	}
	if b := e.Best; b != nil {
		r.score("best", "so far", b.Score)
		r.add("best/epoch", float64(b.Epoch))
	}
	if x := e.RNA; x != nil && len(x.C) > 0 {
		for i := range x.C {
			r.add(fmt.Sprintf("rna/c/%d before the newest", i), x.C[len(x.C)-1-i])
		}
		r.add("rna/norm of c", x.NormC)
	}
	t := e.Seconds
	for _, x := range []struct {
		name  string
		value float64
	}{{"data", t.Data}, {"compute", t.Compute}, {"eval", t.Eval}, {"rna", t.RNA}, {"ema", t.EMA}, {"rna_eval", t.RNAEval}} {
		r.add("seconds/"+x.name, x.value)
	}
	r.add("images per second", e.ImagesPerSecond)
	return r
}

// Export writes the metrics of a run as a table: a line for each epoch or, if steps is set, for each step, too. Values
// have flat names, the same in both forms; those that a line lacks are empty in csv and left out in jsonl. It returns the
// number of lines.
func Export(w io.Writer, r *Run, form string, steps bool) (lines int, err error) {
	path := filepath.Join(r.Dir, metricsName)
	f, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s has no finished epoch to export", r.Dir)
	} else if err != nil {
		return 0, err
	}
	defer f.Close()
	if len(r.History) == 0 && !steps {
		return 0, fmt.Errorf("%s has no finished epoch to export", r.Dir)
	}
	var rows []*row
	n := 0
	err = files.Lines(f, func(line []byte) error {
		if n++; !files.Whole(line) { // it is being written
			return nil
		}
		var kind struct{ Kind string }
		var s hook.StepRecord
		var e hook.EpochRecord
		err := json.Unmarshal(line, &kind)
		switch {
		case err != nil:
		case kind.Kind == "epoch":
			if err = json.Unmarshal(line, &e); err == nil {
				rows = append(rows, epochRow(&e, r.Config.OptimizerName()))
			}
		case kind.Kind == "step" && steps:
			if err = json.Unmarshal(line, &s); err == nil {
				rows = append(rows, stepRow(&s))
			}
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	out := bufio.NewWriter(w)
	if form == "csv" {
		err = writeCSV(out, rows)
	} else {
		err = writeJSONL(out, rows)
	}
	return len(rows), errors.Join(err, out.Flush())
}

func writeCSV(w io.Writer, rows []*row) error {
	var names []string
	seen := map[string]bool{}
	for _, r := range rows {
		for _, name := range r.names {
			if !seen[name] {
				seen[name], names = true, append(names, name)
			}
		}
	}
	c := csv.NewWriter(w)
	if err := c.Write(names); err != nil {
		return err
	}
	for _, r := range rows {
		cells := make([]string, len(names))
		for i, name := range names {
			if x, ok := r.values[name]; ok {
				cells[i] = strconv.FormatFloat(x, 'g', -1, 64)
			}
		}
		if err := c.Write(cells); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func writeJSONL(w io.Writer, rows []*row) error {
	for _, r := range rows {
		b := []byte("{")
		for i, name := range r.names {
			key, err := json.Marshal(name)
			if err != nil {
				return err
			}
			if i > 0 {
				b = append(b, ", "...)
			}
			value, err := json.Marshal(r.values[name])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			b = slices.Concat(b, key, []byte(": "), value)
		}
		if _, err := w.Write(append(b, "}\n"...)); err != nil {
			return err
		}
	}
	return nil
}
