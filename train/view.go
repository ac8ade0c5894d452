package train

import (
	"context"

	"onlinerna/nn/device"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// hookView is the run as hooks see it: it implements the methods of hook.State.
type hookView struct{ *Run }

var _ hook.Run = hookView{}

func (r *Run) state() *hook.State {
	c, p := &r.Resolved, &r.pos
	return hook.New(hook.State{Epochs: c.Epochs, Ends: c.exhausted(p.Epoch, r.judge.best), Optimizer: c.OptimizerName(), Schedule: c.Schedule, Threads: c.Threads,
		Ranks: r.Ranks, Net: r.Net, Epoch: p.Epoch, Batch: p.Batch, Batches: r.in.train.Steps(),
		StepBatches: r.Resolved.Accumulate * r.Ranks.Size(), Steps: p.Steps, Seconds: &p.Seconds}, hookView{r})
}

// At returns the state that a hook sees at the end of an epoch, to examine weights of that epoch without training:
// statistics are re-estimated on the same images as then. The weights are those in Net; the run must not be trained
// afterwards.
func (r *Run) At(epoch int) *hook.State {
	r.pos = position{Epoch: epoch}
	r.in.resize(&r.Resolved, r.pos.Epoch)
	r.pos.Batch = r.in.train.Steps()
	return r.state()
}

func (r hookView) Iterate() (device.Vector, error) { return r.Run.Iterate() }

func (r hookView) Recalibrate(ctx context.Context) error { return r.engine.recalibrate(ctx) }

func (r hookView) EvaluateHeld(ctx context.Context) (*network.Score, error) {
	return r.judge.evaluateHeld(ctx)
}

func (r hookView) HeldLosses(ctx context.Context) ([]float64, error) { return r.judge.heldLosses(ctx) }

func (r hookView) Scores() bool { return r.in.scores() }

func (r hookView) Judge(ctx context.Context, rec *hook.EpochRecord, of hook.ScoreRecord, val *network.Score) error {
	return r.judge.enter(ctx, rec, of, val)
}

func (r hookView) Keep(name string, of hook.ScoreRecord) error { return r.judge.keep(name, of) }

func (r hookView) ResetMomentum() error { return r.engine.resetOptimizer() }

func (r hookView) Statistics() ([]float64, error) { return r.engine.statistics() }

func (r hookView) Gradient(step *hook.StepRecord) (device.Vector, float64, error) {
	return r.engine.gradient(step)
}

func (r hookView) Temporarily(fn func() error) error { return r.engine.temporarily(fn) }
