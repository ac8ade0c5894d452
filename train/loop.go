package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// position is the run's position. Checkpoints store it.
type position struct {
	Epoch int `json:"epoch"` // current, counted from 1
	Batch int `json:"batch"` // finished batches of the epoch
	Steps int `json:"steps"` // optimiser steps since the start
	// Origin is the number of steps before the last reset of the optimiser's state, without skipped ones.
	Origin  int           `json:"origin,omitempty"`
	Shares  shares        `json:"shares,omitzero"` // of the optimiser's state
	Train   network.Tally `json:"train"`           // over the epoch so far
	Seconds hook.Seconds  `json:"seconds"`
	Bad     int           `json:"bad"`
	Skipped int           `json:"skipped,omitempty"` // steps before this epoch with a non-finite gradient
	Clock   clock         `json:"clock,omitzero"`    // with a time budget

	// While the hooks of an epoch are being called:
	Record *hook.EpochRecord `json:"record,omitempty"`
	Called []string          `json:"called,omitempty"` // names of finished hooks
}

// ErrInterrupted is returned by Train when its context ended: the state is saved and the run can be resumed.
var ErrInterrupted = errors.New("interrupted")

// errStop means that the context of this or another rank has ended.
var errStop = errors.New("to be stopped")

// checkStop returns errStop on all ranks if the context of one has ended.
func (r *Run) checkStop(ctx context.Context) error {
	r.Ranks.At(ranks.At{Epoch: r.pos.Epoch, What: "the end of an epoch"})
	stop, err := r.stopped(ctx)
	if err == nil && stop {
		err = errStop
	}
	return err
}

// DivergedError means that the loss or the weights are no longer finite.
type DivergedError struct {
	Epoch, Step int
	What        string
	Rate        float64
	Checkpoint  string // the last good state, "" if there is none
}

func (e *DivergedError) Error() string {
	kept := "no checkpoint had been written yet"
	if e.Checkpoint != "" {
		kept = "the last good weights are in " + e.Checkpoint
	}
	return fmt.Sprintf("%s in epoch %d, step %d, at learning rate %g: lower it or warm up; %s", e.What, e.Epoch, e.Step,
		e.Rate, kept)
}

// Train runs until the last epoch, or until ctx ends: then it finishes the current step, saves its state and returns an
// error that wraps ErrInterrupted.
func (r *Run) Train(ctx context.Context) error { return r.TrainTo(ctx, math.MaxInt) }

// TrainTo is Train that returns after the given epoch, with the state saved. A later Train, TrainTo or Resume goes on as
// if the run had not stopped, bit for bit.
func (r *Run) TrainTo(ctx context.Context, epoch int) (err error) {
	if r.broken != nil {
		return fmt.Errorf("the run failed, and its weights are of no step: resume it from its folder: %w", r.broken)
	}
	if err := r.Ranks.Together(r.checkProfile()); err != nil {
		return err
	}
	r.ticked = time.Now()
	if err := r.begin(); err != nil {
		return err
	}
	r.recordSession()
	r.ended(nil)
	paused := false
	defer func() {
		if r.ended(err); paused && err == nil {
			err = r.recordStop()
		}
	}()
	r.watch = device.NewWatch(r.Device, time.Second)
	defer r.watch.Close()
	r.openProfiler()
	defer func() { r.profiler.show() }()
	r.refit()
	for r.pos.Epoch <= epoch && !r.over(r.pos.Epoch) {
		err := r.checkStop(ctx)
		if err == nil {
			err = r.epoch(ctx)
		}
		if errors.Is(err, errStop) || err != nil && r.host(ctx).Err() != nil && (errors.Is(err, ctx.Err()) ||
			errors.Is(err, context.Cause(ctx))) {
			return r.interrupt()
		}
		if err != nil {
			return r.failed(err)
		}
	}
	if !r.over(r.pos.Epoch) {
		paused = true
		return r.pause()
	}
	r.sayOver()
	return r.engine.atIterate(ctx, func() error { return r.judge.keep("final", hook.ScoreRecord{Kind: r.lastKind()}) })
}

// pause saves the state of a run between two epochs, unless the last checkpoint has it.
func (r *Run) pause() error {
	switch {
	case r.Resolved.Out == "":
		return nil
	case r.folder.due.savedEpoch == r.pos.Epoch:
		return r.folder.written()
	}
	return r.Save()
}

// lastKind is the kind of the iterate: extrapolated weights if RNA wrote it last.
func (r *Run) lastKind() network.Kind {
	if k := len(r.History); k > 0 && r.History[k-1].RNA != nil && r.History[k-1].RNA.Injected {
		return network.RNA
	}
	return network.SGD
}

// begin creates the run's folder, and warns about missing outputs.
func (r *Run) begin() error {
	if r.folder.begun {
		return nil
	}
	if err := r.folder.begin(r.saveTogether); err != nil {
		return err
	}
	r.folder.begun = true
	switch {
	case !r.Ranks.First():
	case r.in.val == nil && r.in.held != nil:
		r.log("no validation images: weights are compared by the held-out ones")
	case r.in.val == nil:
		r.log("no validation images: weights are written, but not compared")
	}
	r.warnOfFewSteps()
	if c := &r.Resolved; r.Ranks.First() && len(c.EMA) > 1 && c.KeepEvery == 0 {
		r.log("Warning: of --ema %s only the last is used: --keep-every keeps the others, too", commas(c.EMA))
	}
	if c := &r.Resolved; r.Ranks.First() && c.RNA.Mode != average.Off && c.Epochs < c.RNA.FirstExtrapolation() {
		r.log("no extrapolation in this run: the first one would be in epoch %d", c.RNA.FirstExtrapolation())
	}
	return nil
}

// fewSteps is the number of steps per epoch below which a run warns.
const fewSteps = 10

// warnOfFewSteps warns of epochs with very few steps.
func (r *Run) warnOfFewSteps() {
	c := &r.Resolved
	n := r.engine.epochSteps()
	if n >= fewSteps || c.StepsLimit > 0 || !r.Ranks.First() {
		return
	}
	hint := "train for more epochs"
	together := c.Accumulate * r.Ranks.Size() // batches per step
	if batch := r.in.train.Images() / (fewSteps * together); batch > 0 {
		hint = fmt.Sprintf("a batch of %d makes %d", batch, (r.in.train.Images()-1)/(batch*together)+1)
	}
	r.log("Warning: an epoch of %s has %s: %s", text.Count(r.in.train.Images(), "image"), text.Count(n, "step"), hint)
}

// saveGood saves the state within an epoch, by Save or saveLater, if the weights are finite.
func (r *Run) saveGood(save func() error) error {
	if err := r.engine.averageStats(); err != nil {
		return err
	}
	if err := r.checkWeights(); err != nil { // non-finite weights must not replace a good checkpoint
		return err
	}
	return save()
}

// interrupt saves the state of a run that stops.
func (r *Run) interrupt() error {
	if r.Resolved.Out == "" {
		if err := r.checkWeights(); err != nil {
			return err
		}
		return ErrInterrupted
	}
	if err := r.folder.written(); err != nil {
		r.log("%v; the state is saved again", err)
	}
	if err := r.saveGood(r.Save); err != nil {
		return err
	}
	return fmt.Errorf("%w in epoch %d after step %d, state saved in %s", ErrInterrupted, r.pos.Epoch, r.pos.Steps,
		r.Resolved.Out)
}

// epoch trains the rest of the current epoch, evaluates it and calls the hooks.
func (r *Run) epoch(ctx context.Context) error {
	if err := r.steps(ctx); err != nil {
		return err
	}
	if err := r.engine.averageStats(); err != nil {
		return err
	}
	if err := r.engine.atIterate(ctx, func() error { return r.endOfEpoch(ctx) }); err != nil {
		return err
	}
	rec := *r.pos.Record
	r.History = append(r.History, rec)
	r.pos = position{Epoch: rec.Epoch + 1, Steps: rec.Step, Skipped: r.pos.Skipped + rec.Skipped, Origin: r.pos.Origin,
		Shares: r.pos.Shares, Clock: r.pos.Clock}
	last := r.over(r.pos.Epoch)
	save, err := r.folder.atEpochEnd(rec.Epoch, last)
	switch {
	case err != nil || !save:
		return err
	}
	if err := r.checkWeights(); err != nil { // a hook may have changed them
		return err
	}
	if last {
		return r.Save()
	}
	return r.saveLater()
}

// endOfEpoch evaluates the iterate, keeps it and calls the hooks.
func (r *Run) endOfEpoch(ctx context.Context) error {
	if err := r.fit(); err != nil {
		return err
	}
	if r.pos.Record == nil {
		rec, err := r.record(ctx)
		if err != nil {
			return err
		}
		r.pos.Record = rec
	}
	if len(r.pos.Called) == 0 { // otherwise a hook may have put other weights there
		if err := r.judge.keepIterate(r.History, r.pos.Record); err != nil {
			return err
		}
	}
	return r.afterEpoch(ctx)
}

// record evaluates the weights at the end of an epoch.
func (r *Run) record(ctx context.Context) (*hook.EpochRecord, error) {
	if err := r.checkWeights(); err != nil {
		return nil, err
	}
	p := &r.pos
	rec := &hook.EpochRecord{Kind: "epoch", Epoch: p.Epoch, Step: p.Steps, Rate: r.engine.learningRate(p.Steps),
		Train: p.Train.Score(), Bad: p.Bad}
	if !r.Net.Meaning.Classifies() { // only the loss is known
		rec.Train.Task, rec.Train.MAP, rec.Train.RMSE, rec.Train.MAE, rec.Train.R2, rec.Train.Deviation = r.Resolved.Task,
			math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
	}
	if t := p.Seconds.Data + p.Seconds.Compute; t > 0 {
		rec.ImagesPerSecond = float64(p.Train.Images) / t
	}
	if rec.Card = r.watch.Take(); rec.Card != nil && len(rec.Card.Slowed) > 0 && !r.slowed && r.Ranks.First() {
		r.slowed = true
		r.log("Warning: the GPU is slowed down: %v", rec.Card)
	}
	if err := r.recordScale(rec); err != nil {
		return nil, err
	}
	start := time.Now()
	var score *network.Score
	err := r.profiler.between("evaluation", func() (err error) {
		score, err = r.Evaluate(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	rec.Seconds = p.Seconds
	rec.Seconds.Eval = time.Since(start).Seconds()
	if score != nil && !score.Finite() {
		return nil, r.diverged(fmt.Sprintf("the validation loss is %g", score.Loss), p.Steps)
	}
	rec.SGD = score
	err = r.judge.enter(ctx, rec, hook.ScoreRecord{Kind: network.SGD}, score)
	return rec, err
}

// afterEpoch calls the hooks that have not been called yet for this epoch. If a hook fails its record is dropped: a
// resumed run calls it again.
func (r *Run) afterEpoch(ctx context.Context) error {
	p := &r.pos
	for _, h := range r.hooks {
		h, ok := h.(hook.EpochHook)
		if !ok || slices.Contains(p.Called, h.Name()) {
			continue
		}
		if !r.Ranks.Single() { // with one process the hook itself sees the end of the context
			if err := r.checkStop(ctx); err != nil {
				return err
			}
		}
		s, rec := r.state(), *p.Record
		s.Record, s.Seconds = &rec, &rec.Seconds
		err := r.between("hook "+h.Name(), func() error { return h.AfterEpoch(ctx, s) })
		if err = r.share(err); err != nil {
			return fmt.Errorf("%s: %w", h.Name(), err)
		}
		p.Record, p.Called = &rec, append(p.Called, h.Name())
	}
	return nil
}

// checkWeights returns a *DivergedError if the training state is not finite.
func (r *Run) checkWeights() error {
	ok, err := r.Net.Finite()
	if err == nil && ok {
		for _, v := range r.engine.update.State {
			if ok, err = v.Finite(); err != nil || !ok {
				break
			}
		}
	}
	if err == nil && !ok {
		err = r.diverged("a weight is not finite", r.pos.Steps)
	}
	return err
}

func (r *Run) diverged(what string, step int) error {
	return &DivergedError{Epoch: r.pos.Epoch, Step: step, What: what, Rate: r.engine.learningRate(step),
		Checkpoint: r.folder.savedState(true)}
}

// recordScale records the loss scale at the end of an epoch. A vanishing scale means that gradients are never finite.
func (r *Run) recordScale(rec *hook.EpochRecord) error {
	s, err := r.engine.lossScale()
	if err != nil || s == nil {
		return err
	}
	rec.LossScale, rec.Skipped = s.Scale, s.Skipped-r.pos.Skipped
	if s.Scale < leastScale && rec.Skipped > 0 {
		return r.diverged(fmt.Sprintf("%d gradients are not finite, with the loss scaled by %g at last", rec.Skipped,
			s.Scale), rec.Step)
	}
	return nil
}

// leastScale is far below any scale that 16-bit gradients need.
const leastScale = 0x1p-20
