package train

import (
	"context"

	"onlinerna/nn/device"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// asSeen is a run as hooks see it: what hook.State describes.
type asSeen struct{ *Run }

var _ hook.Run = asSeen{}

func (r *Run) state() *hook.State {
	c, p := &r.Resolved, &r.pos
	return hook.New(hook.State{Epochs: c.Epochs, Optimizer: c.OptimizerName(), Schedule: c.Schedule, Threads: c.Threads, Ranks: r.Ranks, Net: r.Net, Epoch: p.Epoch, Batch: p.Batch, Batches: r.in.train.Steps(),
		StepBatches: r.Resolved.Accumulate * r.Ranks.Size(), Steps: p.Steps, Seconds: &p.Seconds}, asSeen{r})
}

// At is what a hook sees at the end of an epoch, for whoever looks at weights of that epoch without training: statistics are re-estimated on the
// images that they were re-estimated on then. The weights are those that are in Net; the run is not to be trained after that.
func (r *Run) At(epoch int) *hook.State {
	r.pos = position{Epoch: epoch}
	r.in.resize(&r.Resolved, r.pos.Epoch)
	r.pos.Batch = r.in.train.Steps()
	return r.state()
}

func (r asSeen) Iterate() (device.Vector, error) { return r.Run.Iterate() }

func (r asSeen) Recalibrate(ctx context.Context) error { return r.recalibrate(ctx) }

func (r asSeen) EvaluateHeld(ctx context.Context) (*network.Score, error) { return r.evaluateHeld(ctx) }

func (r asSeen) HeldLosses(ctx context.Context) ([]float64, error) { return r.heldLosses(ctx) }

func (r asSeen) Scores() bool { return r.in.scores() }

func (r asSeen) Judge(ctx context.Context, rec *hook.EpochRecord, of hook.ScoreRecord, val *network.Score) error {
	return r.judge(ctx, rec, of, val)
}

func (r asSeen) Keep(name string, of hook.ScoreRecord) error { return r.keep(name, of) }

func (r asSeen) ResetMomentum() error { return r.resetOptimizer() }

func (r asSeen) Statistics() ([]float64, error) {
	if r.Net.Stats == nil {
		return nil, nil
	}
	if err := r.averageStats(); err != nil {
		return nil, err
	}
	v := make([]float64, r.Net.Stats.Len())
	return v, r.Net.Stats.ReadAt64(v, 0)
}

func (r asSeen) Gradient(step *hook.StepRecord) (grad device.Vector, scale float64, err error) {
	grad, scale = r.Net.Grads, r.gradScale(step.Images)
	if r.sum != nil {
		grad = r.sum
	}
	if ok, err := r.stepped(grad); err != nil || !ok {
		return nil, 0, err
	}
	return grad, scale, nil
}

func (r asSeen) Temporarily(fn func() error) (err error) {
	if r.spare.Params == nil {
		if r.spare, err = r.Net.NewPoint(); err != nil {
			return err
		}
	}
	return r.Net.Temporarily(r.spare, fn)
}
