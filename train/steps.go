package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"onlinerna/data"
	"onlinerna/nn/device"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// issued is a batch that was issued to the device.
type issued struct {
	*network.Pending // nil if this rank has no batch
	bad              int
	last             bool // the last batch of its step
	done             int  // batches of the epoch up to this one, on all ranks
}

// flow manages the issued steps. The run's position is after the last step whose results have arrived and whose hooks
// have run.
type flow struct {
	*Run
	list []issued
	turn *device.Ranges // for a profiler of the device: steps and waits for images, in turn
	mark time.Time      // end of the computing time counted so far

	// planned images of all ranks and batches of this rank in the step being issued; done is the number of issued batches
	// of the epoch, steps that of issued steps of the run.
	planned, batches, done, steps int

	// Partial results of the step whose batches arrive:
	loss   float64
	images int
	bad    int
	got    network.Tally
	stop   bool  // the run stops after this step
	lost   bool  // a checkpoint could not be written, or a rank has failed: training fails after this step
	failed error // of this rank's data or hooks, which the other ranks learn by the next step's results
}

// steps trains the rest of the current epoch.
func (r *Run) steps(ctx context.Context) error {
	r.in.resize(&r.Resolved, r.pos.Epoch)
	if r.pos.Batch >= r.in.train.Steps() {
		return nil
	}
	f := &flow{Run: r, turn: device.RangesOf(r.Device)}
	err := f.run(ctx)
	f.turn.Turn("")
	f.profiler.off()
	if err != nil && (len(f.list) > 0 || f.images > 0) {
		r.broken = err
	}
	return err
}

// waitRange names the wait for a batch.
const waitRange = "wait for images"

// run issues batches and settles earlier ones.
func (f *flow) run(ctx context.Context) error {
	p := &f.pos
	f.done, f.steps = p.Batch, p.Steps
	async := f.async()
	from := time.Now()
	f.turn.Turn(waitRange)
	// Only the end of a step checks the context, so that no step ends in its middle.
	for b, err := range f.in.train.Epoch(context.WithoutCancel(ctx), p.Epoch, p.Batch) {
		if err != nil {
			if f.Ranks.Single() {
				return f.behind(ctx, err)
			}
			f.failed = err
			break
		}
		if err := f.batch(ctx, b, async, from); err != nil {
			return err
		}
		from = f.mark
		f.turn.Turn(waitRange)
	}
	for f.done < f.in.train.Steps() { // other ranks have one more batch, or this one has failed
		if err := f.batch(ctx, nil, async, from); err != nil {
			return err
		}
		from = f.mark
	}
	f.turn.Turn("")
	f.mark = time.Now()
	if err := f.settle(ctx, 0); err != nil {
		return err
	}
	f.count()
	return f.fails()
}

// fails returns the error of a rank whose data or hooks have failed, on all ranks.
func (f *flow) fails() error {
	err := f.share(f.failed)
	if err != nil {
		f.broken = err
	}
	return err
}

// batch issues a batch, or nil for none, and settles earlier ones. from is when the loop began to wait for it.
func (f *flow) batch(ctx context.Context, b *data.Batch, async bool, from time.Time) error {
	c, p := &f.Resolved, &f.pos
	f.mark = time.Now()
	if f.turn != nil {
		f.turn.Turn(fmt.Sprintf("step %d", f.steps+1))
	}
	p.Seconds.Data += f.mark.Sub(from).Seconds()
	if f.batches == 0 {
		f.profiler.starts(f.steps+1, from)
	}
	f.profiler.waited(from, f.mark)
	if err := f.uneven(ctx, b != nil); err != nil {
		return err
	}
	done := min(f.done+f.Ranks.Size(), f.in.train.Steps())
	f.planned += f.in.train.Between(f.done, done)
	f.done = done
	f.batches++
	x := issued{done: done, last: f.batches == c.Accumulate || done >= f.in.train.Steps()}
	if x.last {
		f.steps++
		f.Ranks.At(ranks.At{Epoch: p.Epoch, Step: f.steps})
	}
	images := 0
	if b != nil {
		images = b.N
	}
	s := f.engine.step(f.steps, images, f.planned, f.batches == 1, x.last)
	var err error
	if b == nil {
		err = f.Net.StartEmpty(s)
	} else {
		x.bad = b.Bad
		x.Pending, err = f.Net.Start(b, s)
	}
	if err != nil {
		return f.behind(ctx, err)
	}
	f.list = append(f.list, x)
	if x.last {
		if err := f.afterIssue(ctx, x, f.steps); err != nil {
			return f.behind(ctx, err)
		}
	}
	keep := f.Net.Ahead()
	if x.last && (!async || f.profiler.alone(f.steps)) {
		keep = 0
	}
	if err := f.settle(ctx, keep); err != nil {
		return err
	}
	if x.last {
		f.profiler.ends(f.steps)
		if f.lost || f.stop || f.host(ctx).Err() != nil {
			if err := f.behind(ctx, nil); err != nil {
				return err
			}
			if err := f.fails(); err != nil {
				return err
			}
			if f.stop || f.host(ctx).Err() != nil { // as reported by the steps since then
				return errStop
			}
			return f.folder.written()
		}
		if f.done < f.in.train.Steps() && f.folder.dueAfter(f.steps) {
			if err := f.behind(ctx, nil); err != nil {
				return err
			}
			f.count()
			if err := f.fails(); err != nil {
				return err
			}
			if err := f.saveGood(f.saveLater); err != nil {
				return err
			}
			f.mark = time.Now() // writing time is not computing time
		}
		f.planned, f.batches = 0, 0
	}
	f.count()
	return nil
}

// uneven prepares for the last batches of an epoch if not all ranks have one: the running statistics are averaged over
// all ranks before, and over those with a batch afterwards.
func (f *flow) uneven(ctx context.Context, own bool) error {
	if f.in.train.Steps()-f.done >= f.Ranks.Size() || f.Net.Stats == nil {
		return nil
	}
	if err := f.behind(ctx, nil); err != nil {
		return err
	}
	if err := f.engine.averageStats(); err != nil {
		return err
	}
	f.engine.idle = !own
	return nil
}

// afterIssue calls the hooks that follow a step on the device.
func (f *flow) afterIssue(ctx context.Context, x issued, steps int) error {
	s := f.state()
	s.Batch, s.Steps = x.done, steps
	f.count()
	for _, h := range f.hooks {
		if h, ok := h.(hook.QueuedHook); ok {
			if err := f.ranges.In("hook "+h.Name(), func() error {
				return f.profiler.hook(h.Name(), func() error { return h.AfterIssue(ctx, s) })
			}); err != nil {
				return fmt.Errorf("%s: %w", h.Name(), err)
			}
		}
	}
	f.mark = time.Now() // the hooks' time is their own
	return nil
}

// behind settles all batches and then returns err, or the error of settling.
func (f *flow) behind(ctx context.Context, err error) error {
	if first := f.settle(ctx, 0); first != nil {
		return first
	}
	return err
}

// settle waits for the oldest batches until keep are left, and calls the hooks after each step. If a hook fails it
// waits for all batches, so that the weights match the run's position.
func (f *flow) settle(ctx context.Context, keep int) error {
	var failed error
	p := &f.pos
	for len(f.list) > keep {
		x := f.list[0]
		if err := f.take(x); err != nil {
			return errors.Join(failed, err)
		}
		f.list = f.list[1:]
		if !x.last {
			continue
		}
		var bad int
		var stop bool
		err := f.profiler.communicates(func() (err error) {
			bad, stop, err = f.total(ctx, f.bad)
			return err
		})
		if err == nil && (math.IsNaN(f.loss) || math.IsInf(f.loss, 0)) {
			err = f.diverged(fmt.Sprintf("the loss is %g", f.loss/float64(f.images)), p.Steps+1)
		}
		if err == nil {
			p.Bad += bad
			err = f.checkBad(p.Bad, f.in.train.Allowed(), f.in.train.Images())
		}
		if err != nil {
			return errors.Join(failed, err)
		}
		f.stop = f.stop || stop
		p.Batch = x.done
		p.Steps++
		p.Train.Add(f.got)
		rec := hook.StepRecord{Kind: "step", Epoch: p.Epoch, Step: p.Steps, Loss: f.loss / float64(f.images),
			Top1: f.got.Score().Top1, Rate: f.engine.learningRate(p.Steps), Images: f.images}
		f.loss, f.images, f.bad, f.got = 0, 0, 0, network.Tally{}
		f.count()
		f.warnOfTime()
		f.warnStarved(int64(p.Train.Images), p.Seconds)
		if err := f.afterStep(ctx, rec); err != nil && f.Ranks.Single() {
			failed, keep = errors.Join(failed, err), 0
		} else if err != nil {
			f.failed = errors.Join(f.failed, err)
		}
		f.mark = time.Now() // the hooks' time is their own
	}
	return failed
}

// take waits for a batch and adds its results to its step's.
func (f *flow) take(x issued) error {
	f.engine.differ = true
	if x.Pending == nil {
		return nil
	}
	l, t, err := x.Wait()
	if err == nil && f.Ranks.Single() && (math.IsNaN(l) || math.IsInf(l, 0)) {
		err = f.diverged(fmt.Sprintf("the loss is %g", l), f.pos.Steps+1)
	}
	if err != nil {
		return err
	}
	f.loss += l * float64(x.Images())
	f.images += x.Images()
	f.got.Add(t)
	f.bad += x.bad
	return nil
}

// count counts the time since the mark as computing.
func (f *flow) count() {
	t := time.Now()
	f.pos.Seconds.Compute += t.Sub(f.mark).Seconds()
	f.mark = t
}

// afterStep calls all hooks after a step, even if one fails, since a resumed run does not repeat the step.
func (r *Run) afterStep(ctx context.Context, rec hook.StepRecord) error {
	var errs []error
	s := r.state()
	s.Step = &rec
	for _, h := range r.hooks {
		if h, ok := h.(hook.StepHook); ok {
			if err := r.profiler.hook(h.Name(), func() error { return h.AfterStep(ctx, s) }); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", h.Name(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// async reports whether all step hooks are currently asynchronous.
func (r *Run) async() bool {
	for _, h := range r.hooks {
		if _, ok := h.(hook.StepHook); !ok {
			continue
		}
		if h, ok := h.(hook.AsyncHook); !ok || !h.Async() {
			return false
		}
	}
	return true
}

// errSwept means that a run's weights have gone through a sweep.
var errSwept = errors.New("its rates were swept")

// SweepRates trains a new run for a step at each of the given learning rates, without hooks, evaluations and files,
// over as many epochs as needed; an incomplete last step of an epoch is skipped. next receives the loss of each step,
// before its update, and ends the sweep by returning false. The weights are unusable afterwards: Train returns an
// error.
func (r *Run) SweepRates(ctx context.Context, rates []float64, next func(loss float64) bool) error {
	c := &r.Resolved
	switch {
	case !r.Ranks.Single():
		return errors.New("rates are swept by one process")
	case r.pos.Steps > 0:
		return errors.New("rates are swept from the start of a run")
	}
	r.broken = errSwept
	group := min(c.Accumulate, r.in.train.Steps()) // batches per step
	each := max(1, r.in.train.Images()/(c.Batch*group))
	for step := 0; step < len(rates); {
		last := min(step+each, len(rates))
		batches, images, loss := 0, 0, 0.
		for b, err := range r.in.train.Epoch(ctx, 1+step/each, 0) {
			if err != nil {
				return err
			}
			batches++
			planned := r.in.train.Between((step%each)*group, (step%each+1)*group)
			s := r.engine.step(step+1, b.N, planned, batches == 1, batches == group)
			s.Update.Numbers.Rate = rates[step]
			p, err := r.Net.Start(b, s)
			if err != nil {
				return err
			}
			l, _, err := p.Wait()
			if err != nil {
				return err
			}
			loss += l * float64(b.N)
			if images += b.N; batches < group {
				continue
			}
			if step++; !next(loss / float64(images)) {
				return nil
			}
			if step == last {
				break
			}
			batches, images, loss = 0, 0, 0
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
