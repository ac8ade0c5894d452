package report

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"onlinerna/data"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/average"
)

// Announce writes the model, the images, the optimiser and the averages of a starting run.
func Announce(w io.Writer, r *train.Run, device string) {
	c := &r.Resolved
	images, val := r.Images()
	line := func(format string, args ...any) {
		fmt.Fprintln(w, terminal.Wrap(w, fmt.Sprintf(format, args...), "  "))
	}
	of := fmt.Sprintf("%d classes", len(c.Classes))
	switch c.Task {
	case data.MultiLabel:
		of += ", any number of them an image,"
	case data.Regression:
		of = text.Count(len(c.Classes), "number") + " each"
	}
	line("%s, %s parameters, on %s: %s images of %s at %d×%d, %s for validation",
		c.Model, text.Thousands(r.Net.Params.Len()), cmp.Or(c.Data, "glyphs"), text.Thousands(images), of,
		c.ImageSize, c.ImageSize, text.Thousands(val))
	batch := fmt.Sprint(c.Batch)
	if c.Accumulate > 1 {
		batch = fmt.Sprintf("%d × %d", c.Batch, c.Accumulate)
	}
	line("%s, batch %s, %s, device %s", text.Count(c.Epochs, "epoch"), batch, c.OptimizerLine(),
		strings.TrimSpace(device+" "+c.Precision))
	if c.Patience > 0 {
		line("ends after %s without better weights", text.Count(c.Patience, "epoch"))
	}
	if c.TimeBudget > 0 {
		line("time budget %v: the speed sets the number of epochs", c.TimeBudget)
	}
	if g := r.Ranks; !g.Single() {
		fmt.Fprintf(w, "%v: %s images a step, %s a rank\n", g, text.Thousands(c.Batch*c.Accumulate*g.Size()),
			text.Count(g.Threads(), "thread"))
	}
	if c.Fit != nil {
		line("%v", c.Fit)
	}
	for _, note := range c.Notes {
		line("%s", note)
	}
	switch c.RNA.Mode {
	case average.Off:
		fmt.Fprintln(w, "RNA off")
	default:
		fmt.Fprintf(w, "RNA %s, window %d, %s, beta %g, from epoch %d on\n", c.RNA.Mode, c.RNA.Window, c.RNA.Rule(),
			*c.RNA.Beta, c.RNA.Start)
	}
	if c.RNA.Mode == average.Online {
		line("%s online RNA looks better at once and costs progress on most nets; compare with --rna offline.",
			terminal.StyleOf(w).Warning("Warning:"))
	}
	if n := len(r.History); n > 0 || stepsOf(r) > 0 {
		epoch, batches, steps := r.Position()
		if batches > 0 {
			fmt.Fprintf(w, "Resumed in epoch %d, after step %d of the run\n", epoch, steps)
		} else {
			fmt.Fprintf(w, "Resumed after epoch %d\n", epoch-1)
		}
	}
}

func stepsOf(r *train.Run) int { _, _, steps := r.Position(); return steps }

// Summarise writes the table of a finished run, draws its figures and names its files.
func Summarise(w io.Writer, r *train.Run, verbose bool) error {
	fmt.Fprintln(w)
	if err := Table(w, r.Resolved.Spec, r.History); err != nil {
		return err
	}
	if verbose && Extrapolated(r.History) {
		fmt.Fprintln(w)
		if err := CoefficientTable(w, r.History); err != nil {
			return err
		}
	}
	dir := r.Resolved.Out
	names, err := DrawRun(r.Resolved.Spec, r.History)
	if err != nil {
		return err
	}
	names = append(names, "final.safetensors", "best.safetensors", "metrics.jsonl", "config.json")
	names = append(names, "rna.safetensors", "ema.safetensors")
	for _, k := range r.Resolved.RNA.Averages {
		names = append(names, fmt.Sprintf("average-%d.safetensors", k))
	}
	var there []string
	for _, n := range names {
		if _, err := os.Stat(filepath.Join(dir, n)); err == nil {
			there = append(there, n)
		}
	}
	fmt.Fprintf(w, "\n%s\n", terminal.Wrap(w, dir+": "+strings.Join(there, ", "), "  "))
	return nil
}

// Spectrum describes the residuals at the end of a run in one line.
func Spectrum(run *train.Run) string {
	h, ok := run.Hook("rna").(*average.RNA)
	if !ok || h.Window().Len() < 2 {
		return ""
	}
	s := h.Window().Spectrum(min(run.Resolved.RNA.Window, h.Window().Len()))
	return fmt.Sprintf("The last residuals: RᵀR has the condition number %.3g; lambda changes c from about %.1g on.\n",
		s.Solve(0).Condition, s.Lambdas()[0])
}
