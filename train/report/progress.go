package report

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// Progress is a hook that displays a run: a bar on a terminal, otherwise a line per minute, and a line per epoch.
type Progress struct {
	out     io.Writer // lines
	err     io.Writer // the bar and logged lines
	quiet   bool
	Spec    *train.Spec // the run's, resolved
	Verbose bool        // also write a line with all losses
	tty     bool
	Live    *Live // draws the run; nil: no figures
	bar     *terminal.Bar
	epoch   int       // epoch of the bar, 0 without one
	next    time.Time // time of the next line, without a terminal
	began   time.Time // start of the time measurement: the first step in this process
	from    float64   // finished epochs at that time
}

var (
	_ hook.AsyncHook = (*Progress)(nil)
	_ hook.EpochHook = (*Progress)(nil)
)

// Every is the time between lines without a terminal.
const Every = time.Minute

// NewProgress writes lines to out, and the bar and logged lines to err. If quiet, it writes only logged lines.
func NewProgress(out, err io.Writer, quiet bool) *Progress {
	return &Progress{out: out, err: err, quiet: quiet, tty: terminal.Is(err), bar: terminal.NewBar(err, quiet),
		next: time.Now().Add(Every)}
}

// Name returns the name of the hook.
func (p *Progress) Name() string { return "progress" }

// Async implements hook.AsyncHook.
func (p *Progress) Async() bool { return true }

// AfterStep updates the bar or, without a terminal, prints a line per minute.
func (p *Progress) AfterStep(_ context.Context, s *hook.State) error {
	if p.began.IsZero() {
		p.left(s, s.Epoch-1, float64(s.Batch)/float64(s.Batches))
	}
	switch {
	case p.quiet:
	case p.tty:
		p.draw(s)
	case time.Now().After(p.next):
		p.next = time.Now().Add(Every)
		fmt.Fprintf(p.out, "epoch %d/%d  batch %d/%d  loss %.4f%s\n", s.Epoch, s.Epochs, s.Batch, s.Batches,
			s.Step.Loss,
			p.left(s, s.Epoch-1, float64(s.Batch)/float64(s.Batches)))
	}
	return nil
}

func (p *Progress) draw(s *hook.State) {
	what := fmt.Sprintf("epoch %d/%d, loss %.3f%s", s.Epoch, s.Epochs, s.Step.Loss,
		p.left(s, s.Epoch-1, float64(s.Batch)/float64(s.Batches)))
	if p.epoch != s.Epoch {
		p.epoch = s.Epoch
		p.bar.Start(what, int64(s.Batches), terminal.CountSteps)
	}
	p.bar.Describe(what)
	p.bar.Set(int64(s.Batch))
}

// left estimates the remaining time of the run from the time of the epochs since it began in this process: finished
// ones, and a part of the current one. It is empty at the end of the last epoch.
func (p *Progress) left(s *hook.State, epochs int, part float64) string {
	at := float64(epochs) + part
	if p.began.IsZero() {
		p.began, p.from = time.Now(), at
		return ""
	}
	done, rest := at-p.from, float64(s.Epochs)-at
	if done <= 0 || rest <= 0 {
		return ""
	}
	t := time.Duration(float64(time.Since(p.began)) * rest / done)
	return "  " + duration(t) + " left"
}

// duration formats a time with about two digits.
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

// Done removes the bar.
func (p *Progress) Done() {
	p.bar.Finish()
	p.epoch = 0
}

// Log prints a line above the bar.
func (p *Progress) Log(format string, args ...any) {
	p.Done()
	fmt.Fprintln(p.err, terminal.Wrap(p.err, text.PrintableLines(fmt.Sprintf(format, args...)), "  "))
}

// AfterEpoch prints the line of the epoch.
func (p *Progress) AfterEpoch(_ context.Context, s *hook.State) error {
	if p.Live != nil {
		p.Live.after(*s.Record)
	}
	if p.quiet {
		return nil
	}
	p.Done()
	p.next = time.Now().Add(Every)
	_, err := fmt.Fprintln(p.out, terminal.Wrap(p.out, EpochLine(p.Spec, s.Record)+p.left(s, s.Epoch, 0), "  "))
	if line := rankingLine(p.Spec, s.Record); p.Verbose && line != "" && err == nil {
		_, err = fmt.Fprintln(p.out, terminal.Wrap(p.out, "\u00a0 "+line, "    "))
	}
	return err
}

// rankingLine lists the weights of an epoch by the measure that chooses the best, and names those in best.safetensors.
func rankingLine(c *train.Spec, r *hook.EpochRecord) string {
	list, held := r.Ranking(c.BestBy)
	if len(list) == 0 || r.Best == nil {
		return ""
	}
	show := func(s hook.ScoreRecord) string {
		if c.BestBy == hook.ByLoss {
			return fmt.Sprintf("%s %.4f", s.Name(c.OptimizerName()), s.Score.Loss)
		}
		return fmt.Sprintf("%s %s, loss %.4f", s.Name(c.OptimizerName()),
			strings.ReplaceAll(measureOf(c.Task).show(s.Score), "\u00a0", " "), s.Score.Loss)
	}
	var b strings.Builder
	b.WriteString(judgedBy(c, held) + ": ")
	for i, s := range list {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(show(s))
	}
	fmt.Fprintf(&b, "; best of the run: %s of epoch %d", r.Best.Name(c.OptimizerName()), r.Best.Epoch)
	if r.Best.Epoch != r.Epoch {
		b.WriteString(", " + strings.TrimPrefix(show(r.Best.ScoreRecord), r.Best.Name(c.OptimizerName())+" "))
	}
	return b.String()
}

// judgedBy names the measure by which the best weights are chosen.
func judgedBy(c *train.Spec, held bool) string {
	images := "validation "
	if held {
		images = "held-out "
	}
	return images + by(c)
}

// EpochLine summarises an epoch: the errors of each kind of weights on the validation images or, if there are none, on
// the held-out ones.
func EpochLine(c *train.Spec, r *hook.EpochRecord) string {
	var b strings.Builder
	width := len(fmt.Sprint(c.Epochs))
	fmt.Fprintf(&b, "epoch %*d/%d  rate %-7.3g train loss %.4f", width, r.Epoch, c.Epochs, r.Rate, r.Train.Loss)
	m := measureOf(c.Task)
	list, what := append(r.Scores(), r.Others...), "  "+m.name+": "
	if len(list) == 0 {
		list, what = r.Held, "  held-out "+m.name+": "
	}
	for i, s := range list {
		if i == 0 {
			b.WriteString(what)
		} else {
			b.WriteString(", ")
		}
		name := s.Name(c.OptimizerName())
		if s.Kind == network.SGDStats {
			name = "recalibrated"
		}
		fmt.Fprintf(&b, "%s %s", name, m.show(s.Score))
		if x := r.Best; x != nil && x.Epoch == r.Epoch && x.Kind == s.Kind && x.Snapshots == s.Snapshots {
			b.WriteString(" (best so far")
			if len(r.Held) > 0 || c.BestBy == hook.ByLoss {
				b.WriteString(" by " + judgedBy(c, len(r.Held) > 0))
			}
			b.WriteString(")")
		}
		if s.Kind == network.RNA && r.RNA != nil && r.RNA.NoDifference {
			b.WriteString(" (lambda makes no difference)")
		}
	}
	if r.RNA != nil && r.RNA.Status != "ok" {
		fmt.Fprintf(&b, ", RNA: %s", text.Printable(r.RNA.Status))
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "  skipped %s, loss scale %g", text.Count(r.Skipped, "step"), r.LossScale)
	}
	if r.Bad > 0 {
		fmt.Fprintf(&b, "  %s unreadable", text.Count(r.Bad, "image"))
	}
	fmt.Fprintf(&b, "  %.0f images/s", r.ImagesPerSecond)
	return b.String()
}
