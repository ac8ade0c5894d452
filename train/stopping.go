package train

import (
	"errors"
	"math"
	"time"

	"onlinerna/internal/text"
	"onlinerna/train/hook"
)

// clock is the time that a run with Spec.TimeBudget has taken, in seconds. A checkpoint stores it.
type clock struct {
	Spent float64 `json:"spent"` // in all processes of the run
	From  float64 `json:"from"`  // Spent when the epochs were fitted last
	Pace  float64 `json:"pace"`  // seconds an epoch; 0 is unknown
}

// tick counts the time since the last tick.
func (r *Run) tick() {
	if r.Resolved.TimeBudget == 0 {
		return
	}
	now := time.Now()
	r.pos.Clock.Spent += now.Sub(r.ticked).Seconds()
	r.ticked = now
}

// overrun is the part of an epoch by which a run may exceed its time, so that the last epoch is not lost to jitter.
const overrun = 0.25

// fit sets the number of epochs to that for which the time lasts. It is called when an epoch's steps are done, before it
// is evaluated. Ranks agree on the slowest one's clock.
func (r *Run) fit() error {
	c := &r.Resolved
	if c.TimeBudget == 0 || r.pos.Record != nil { // fitted before the interruption
		return nil
	}
	r.tick()
	k := &r.pos.Clock
	took := k.Spent - k.From
	if k.Pace > 0 {
		took = (3*k.Pace + took) / 4
	}
	x := []float64{took, k.Spent}
	if err := r.Ranks.Max64(x); err != nil {
		return err
	}
	k.Pace, k.Spent, k.From = x[0], x[1], x[1]
	r.setEpochs(c.epochsWithin(r.pos.Epoch, c.TimeBudget.Seconds()-k.Spent, k.Pace))
	return nil
}

// refit fits the epochs of a run whose budget has changed while it was stopped.
func (r *Run) refit() {
	c, k := &r.Resolved, &r.pos.Clock
	if c.TimeBudget == 0 || k.Pace == 0 || r.pos.Batch > 0 {
		return // an epoch's end fits it
	}
	r.setEpochs(c.epochsWithin(r.pos.Epoch-1, c.TimeBudget.Seconds()-k.From, k.Pace)) // as fit at that epoch's end
}

// epochsWithin is done plus the number of further epochs for which the seconds left suffice at a pace. It keeps
// Epochs if they take no more than a part of an epoch longer, or if no more than a tenth could be added to those ahead.
func (c *Spec) epochsWithin(done int, left, pace float64) int {
	most, planned := max(0, int(min(left/pace, math.MaxInt32))), c.Epochs-done
	if float64(planned)-overrun <= left/pace && most <= planned+planned/10 {
		return c.Epochs
	}
	return done + most
}

// setEpochs changes the length of the run and its schedule in proportion.
func (r *Run) setEpochs(n int) {
	c := &r.Resolved
	if n == c.Epochs {
		return
	}
	c.Epochs = n
	c.Schedule = c.Schedule.Stretched(n)
	if d := n - r.told; r.Ranks.First() && max(d, -d)*10 >= r.told { // small changes show in the line of the epoch
		r.told = n
		r.log("at %v an epoch, the time budget of %v is enough for %s: learning rate %v", seconds(r.pos.Clock.Pace),
			c.TimeBudget, text.Count(n, "epoch"), c.Schedule)
	}
}

// warnOfTime warns once, in the first epoch, if that alone takes much longer than the budget: no number of epochs fits.
func (r *Run) warnOfTime() {
	c, p := &r.Resolved, &r.pos
	if c.TimeBudget == 0 || p.Clock.Pace > 0 || r.warned || !r.Ranks.First() {
		return
	}
	r.tick()
	budget, steps := c.TimeBudget.Seconds(), r.in.train.Steps()
	epoch := p.Clock.Spent / float64(p.Batch) * float64(steps)
	if p.Clock.Spent < budget/10 || epoch <= (1+overrun)*budget {
		return
	}
	r.warned = true
	r.log("Warning: an epoch takes about %v, and the time budget is %v: the run ends after it; --limit-batches %d makes "+
		"epochs that fit four times", seconds(epoch), c.TimeBudget, max(1, int(float64(steps)*budget/epoch/4)))
}

// seconds is a time to read.
func seconds(x float64) time.Duration {
	d := time.Duration(x * float64(time.Second))
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(10 * time.Millisecond)
}

// checkPatience checks that there are images to judge epochs by.
func (j *judge) checkPatience() error {
	if j.c.Patience > 0 && !j.in.scores() {
		return errors.New("patience goes by validation or held-out images, and there are none")
	}
	return nil
}

// exhausted reports whether the last epochs, Patience of them, had no weights better than the best before.
func (c *Spec) exhausted(epoch int, best *hook.BestRecord) bool {
	since := 0 // an epoch without finite loss is no better than the start
	if best != nil {
		since = best.Epoch
	}
	return c.Patience > 0 && epoch-since >= c.Patience
}

// over reports whether the run ends before an epoch.
func (r *Run) over(epoch int) bool {
	return epoch > r.Resolved.Epochs || r.pos.Batch == 0 && r.Resolved.exhausted(epoch-1, r.judge.best)
}

// sayOver logs why the run ends before its last epoch.
func (r *Run) sayOver() {
	c, last := &r.Resolved, r.pos.Epoch-1
	if last >= c.Epochs || !r.Ranks.First() {
		return
	}
	since := 0
	if r.judge.best != nil {
		since = r.judge.best.Epoch
	}
	r.log("no better weights since epoch %d: the run ends after epoch %d of %d, as --patience %d has it; --resume with "+
		"more than %s goes on", since, last, c.Epochs, c.Patience, text.Count(last-since, "epoch"))
}
