package train

import (
	"errors"

	"onlinerna/internal/text"
	"onlinerna/train/hook"
)

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
