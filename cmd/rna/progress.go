package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"onlinerna/internal/text"
	"onlinerna/train"
)

// progress shows how a run comes along: a bar on a terminal, otherwise a line now and then; and a
// line for each epoch.
type progress struct {
	out   io.Writer // lines
	err   io.Writer // the bar, and what is logged
	quiet bool
	tty   bool
	bar   *bar
	epoch int       // that the bar is for, 0 without one
	next  time.Time // of the next line, off a terminal
	began time.Time // since when time is measured: the first step here
	from  float64   // epochs at that time
}

var (
	_ train.LateHook  = (*progress)(nil)
	_ train.EpochHook = (*progress)(nil)
)

// every is the time between lines within an epoch, off a terminal.
const every = time.Minute

func newProgress(out, err io.Writer, quiet bool) *progress {
	return &progress{out: out, err: err, quiet: quiet, tty: isTerminal(err), bar: newBar(err, quiet), next: time.Now().Add(every)}
}

// Name is that of the hook.
func (p *progress) Name() string { return "progress" }

// Late implements train.LateHook.
func (p *progress) Late() bool { return true }

// AfterStep moves the bar, or prints a line now and then where there is none.
func (p *progress) AfterStep(s *train.State) error {
	if p.began.IsZero() {
		p.left(s, s.Epoch-1, float64(s.Batch)/float64(s.Batches))
	}
	switch {
	case p.quiet:
	case p.tty:
		p.draw(s)
	case time.Now().After(p.next):
		p.next = time.Now().Add(every)
		fmt.Fprintf(p.out, "epoch %d/%d  batch %d/%d  loss %.4f%s\n", s.Epoch, s.Config.Epochs, s.Batch, s.Batches, s.Step.Loss,
			p.left(s, s.Epoch-1, float64(s.Batch)/float64(s.Batches)))
	}
	return nil
}

func (p *progress) draw(s *train.State) {
	what := fmt.Sprintf("epoch %d/%d, loss %.3f%s", s.Epoch, s.Config.Epochs, s.Step.Loss, p.left(s, s.Epoch-1, float64(s.Batch)/float64(s.Batches)))
	if p.epoch != s.Epoch {
		p.epoch = s.Epoch
		p.bar.start(what, int64(s.Batches), countSteps)
	}
	p.bar.describe(what)
	p.bar.set(int64(s.Batch))
}

// left tells how long the run is going to take, by the time of the epochs since it began here: the whole ones that are over, and a part of the
// one in progress. Of the last epoch's end there is nothing to tell.
func (p *progress) left(s *train.State, epochs int, part float64) string {
	at := float64(epochs) + part
	if p.began.IsZero() {
		p.began, p.from = time.Now(), at
		return ""
	}
	done, rest := at-p.from, float64(s.Config.Epochs)-at
	if done <= 0 || rest <= 0 {
		return ""
	}
	t := time.Duration(float64(time.Since(p.began)) * rest / done)
	return "  " + duration(t) + " left"
}

// duration writes a time to about two digits.
func duration(t time.Duration) string {
	switch {
	case t < time.Minute:
		return fmt.Sprintf("%d s", int(t.Seconds()+0.5))
	case t < time.Hour:
		return fmt.Sprintf("%d min", int(t.Minutes()+0.5))
	case t < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(t.Hours()), int(t.Minutes())%60)
	}
	return fmt.Sprintf("%.1f days", t.Hours()/24)
}

// done removes the bar.
func (p *progress) done() {
	p.bar.done()
	p.epoch = 0
}

// log prints a line above the bar.
func (p *progress) log(format string, args ...any) {
	p.done()
	fmt.Fprintf(p.err, format+"\n", args...)
}

// AfterEpoch prints the line of the epoch, and which weights are best.
func (p *progress) AfterEpoch(s *train.State) error {
	if p.quiet {
		return nil
	}
	p.done()
	p.next = time.Now().Add(every)
	_, err := fmt.Fprintln(p.out, text.Wrap(epochLine(s.Config, s.Record)+p.left(s, s.Epoch, 0), "  "))
	if line := bestLine(s.Config.OptimizerName(), s.Record); line != "" && err == nil {
		_, err = fmt.Fprintln(p.out, text.Wrap("\u00a0 "+strings.TrimSpace(line), "    "))
	}
	return err
}

// bestLine says which weights of an epoch are best, where there are several, and whose best.safetensors are.
func bestLine(optimizer string, r *train.EpochRecord) string {
	list, held := r.Ranking()
	if len(list) < 2 || r.Best == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("  best by " + map[bool]string{true: "held-out", false: "validation"}[held] + " loss: ")
	for i, s := range list {
		switch i {
		case 0:
			fmt.Fprintf(&b, "%s (%.4f)", s.Name(optimizer), s.Score.Loss)
		default:
			fmt.Fprintf(&b, ", %s %.4f", s.Name(optimizer), s.Score.Loss)
		}
	}
	if r.Best.Epoch != r.Epoch {
		fmt.Fprintf(&b, "; of the run %s of epoch %d (%.4f)", r.Best.Name(optimizer), r.Best.Epoch, r.Best.Score.Loss)
	}
	return b.String()
}

// epochLine sums up an epoch: validation errors of each kind of weights.
func epochLine(c *train.Config, r *train.EpochRecord) string {
	var b strings.Builder
	width := len(fmt.Sprint(c.Epochs))
	fmt.Fprintf(&b, "epoch %*d/%d  rate %-7.3g train loss %.4f", width, r.Epoch, c.Epochs, r.Rate, r.Train.Loss)
	if r.SGD != nil {
		fmt.Fprintf(&b, "  error: %s %.2f %%", c.OptimizerName(), r.SGD.Error())
	}
	if r.SGDStats != nil {
		fmt.Fprintf(&b, ", re-estimated %.2f %%", r.SGDStats.Error())
	}
	if r.RNA != nil {
		if r.RNA.Score != nil {
			fmt.Fprintf(&b, ", RNA %.2f %%", r.RNA.Score.Error())
			if r.RNA.NoDifference {
				b.WriteString(" (lambda makes no difference)")
			}
		} else if r.RNA.Status != "ok" {
			fmt.Fprintf(&b, ", RNA: %s", r.RNA.Status)
		}
	}
	if r.EMA != nil {
		fmt.Fprintf(&b, ", EMA %.2f %%", r.EMA.Error())
	}
	for _, a := range r.Averages {
		fmt.Fprintf(&b, ", average of %d %.2f %%", a.Epochs, a.Score.Error())
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "  skipped %s, loss scale %g", text.Count(r.Skipped, "step"), r.LossScale)
	}
	fmt.Fprintf(&b, "  %.0f images/s", r.ImagesPerSecond)
	return b.String()
}
