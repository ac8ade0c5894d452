package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
)

// statsMomentum is the weight of a batch in BatchNorm's running statistics, PyTorch's default.
const statsMomentum = 0.1

// Streams of randomness: loaders of a run that serve different ends.
const (
	trainStream = iota
	statsStream
)

// Run is a training run. It may be used by one goroutine at a time.
type Run struct {
	Config  Config
	Net     *Network
	History []EpochRecord // a record for each finished epoch

	// Log, if set, is told what is worth a line but no error: unreadable images, what was resumed.
	Log func(format string, args ...any)

	dev      device.Device
	momentum device.Vector
	sum      device.Vector // of gradients, where batches are accumulated
	spare    weights       // room for the iterate while other weights are looked at
	noDecay  []device.Span

	train, val, stats *data.Loader // val is nil without validation images
	sets              []data.Dataset
	hooks             []Hook
	pos               position
	best              *bestRecord
	resumed           bool
	ctx               context.Context
}

// weights is a pair of vectors like a network's.
type weights struct{ params, stats device.Vector }

// position is where a run is. It is written to checkpoints.
type position struct {
	Epoch   int     `json:"epoch"` // in progress, counted from 1
	Batch   int     `json:"batch"` // batches of it that are done
	Steps   int     `json:"steps"` // of the optimiser since the start
	Train   Tally   `json:"train"` // over the epoch so far
	Seconds Seconds `json:"seconds"`
	Bad     int     `json:"bad"`
}

// bestRecord says whose weights are in best.safetensors.
type bestRecord struct {
	Kind  string `json:"kind"`
	Epoch int    `json:"epoch"`
	Score Score  `json:"score"`
}

// ErrInterrupted is returned by Train when its context ended: the state is saved and the run can be resumed.
var ErrInterrupted = errors.New("interrupted")

// DivergedError says that the loss or the weights are no longer finite.
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
	return fmt.Sprintf("%s in epoch %d, step %d, at learning rate %g: lower --lr or warm up; %s", e.What, e.Epoch, e.Step, e.Rate, kept)
}

// New prepares a run on a device: it opens the data, resolves the config, builds the network and plans its
// memory. Nothing is written before Train.
func New(c Config, dev device.Device, hooks ...Hook) (*Run, error) {
	r := &Run{Config: c, dev: dev}
	if err := r.open(); err != nil {
		r.Close()
		return nil, err
	}
	rnaHook, err := newRNAHook(r)
	if err == nil && rnaHook != nil {
		r.hooks = append(r.hooks, rnaHook)
	}
	if err == nil && r.Config.Out != "" {
		r.hooks = append(r.hooks, &metricsHook{dir: r.Config.Out})
	}
	r.hooks = append(r.hooks, hooks...)
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Run) open() error {
	c := &r.Config
	train, val, err := data.Open(c.Data, data.Options{Val: c.ValData, Classes: c.Classes})
	if err != nil {
		return err
	}
	r.sets = []data.Dataset{train, val}
	profile, err := data.ProfileOf(train)
	if err != nil {
		return err
	}
	if err := c.Resolve(train, profile); err != nil {
		return err
	}
	if c.Out == AutoOut {
		c.Out = filepath.Join("runs", time.Now().Format("20060102-150405")+"-"+c.Model)
	}
	if err := r.loaders(train, val, profile); err != nil {
		return err
	}
	net, err := NewNetwork(r.dev, c.Model, nn.Config{
		Classes: c.NumClasses, Channels: train.Channels(), Size: c.ImageSize, Mean: c.Mean, Std: c.Std,
		Smoothing: c.LabelSmoothing, ZeroInitResidual: c.ZeroInit,
	}, c.Seed)
	if err != nil {
		return err
	}
	r.Net = net
	if c.Init != "" {
		if _, err := net.LoadWeights(c.Init); err != nil {
			return err
		}
	}
	if c.DecayWeightsOnly {
		r.noDecay = net.NoDecay()
	}
	if r.momentum, err = net.NewParams(); err != nil {
		return err
	}
	if c.Accumulate > 1 {
		if r.sum, err = net.NewParams(); err != nil {
			return err
		}
	}
	r.pos.Epoch = 1
	// Plan both batch sizes now, so that what cannot run is known before anything is written.
	for _, n := range []int{c.Batch, r.train.Images() % c.Batch} {
		if n = min(n, r.train.Images()); n > 0 {
			if _, err := net.program(progKey{useGradient, n, c.ImageSize, c.ImageSize}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Run) loaders(train, val data.Dataset, p data.Profile) error {
	c := &r.Config
	tr, err := p.Train(c.Augment, c.ImageSize)
	if err != nil {
		return err
	}
	opt := data.LoaderOptions{
		Batch: c.Batch, Workers: c.Workers, Shuffle: !c.NoShuffle, Seed: c.Seed, Stream: trainStream,
		Limit: c.StepsLimit, Substitute: true, MaxBad: *c.MaxBad, Log: r.log,
	}
	if r.train, err = data.NewLoader(train, tr, opt); err != nil {
		return err
	}
	opt.Stream, opt.Shuffle, opt.Limit = statsStream, true, c.RNA.Batches
	if r.stats, err = data.NewLoader(train, tr, opt); err != nil {
		return err
	}
	if val == nil {
		return nil
	}
	r.val, err = data.NewLoader(val, p.Eval(c.ImageSize), data.LoaderOptions{
		Batch: c.Batch, Workers: c.Workers, MaxBad: *c.MaxBad, Limit: c.ValLimit, Log: r.log,
	})
	return err
}

func (r *Run) log(format string, args ...any) {
	if r.Log != nil {
		r.Log(format, args...)
	}
}

// Images is the number of images of an epoch and of an evaluation.
func (r *Run) Images() (train, val int) {
	if r.val != nil {
		val = r.val.Images()
	}
	return r.train.Images(), val
}

// Close releases the network, the data and what hooks hold.
func (r *Run) Close() error {
	var errs []error
	for _, h := range r.hooks {
		if h, ok := h.(ClosingHook); ok {
			errs = append(errs, h.Close())
		}
	}
	for _, v := range []device.Vector{r.momentum, r.sum, r.spare.params, r.spare.stats} {
		if v != nil {
			v.Free()
		}
	}
	if r.Net != nil {
		errs = append(errs, r.Net.Close())
	}
	for _, s := range r.sets {
		if c, ok := s.(interface{ Close() error }); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// Meta describes the weights of this run.
func (r *Run) Meta(kind string) Meta {
	c := &r.Config
	return Meta{Model: c.Model, Classes: c.Classes, ImageSize: c.ImageSize, Mean: c.Mean, Std: c.Std, Epoch: r.pos.Epoch, Kind: kind}
}

// Train runs until the last epoch, or until ctx ends: then it stops after the step in progress, saves its
// state and returns an error that wraps ErrInterrupted.
func (r *Run) Train(ctx context.Context) error {
	r.ctx = ctx
	if err := r.begin(); err != nil {
		return err
	}
	for r.pos.Epoch <= r.Config.Epochs {
		err := r.epoch()
		if ctx.Err() != nil && !isDiverged(err) {
			return r.interrupt(err)
		}
		if err != nil {
			return err
		}
	}
	return r.keep("final", "sgd")
}

// begin writes what a new run starts with.
func (r *Run) begin() error {
	out := r.Config.Out
	if out == "" || r.resumed {
		return nil
	}
	if _, err := os.Stat(filepath.Join(out, "config.json")); err == nil {
		return fmt.Errorf("%s holds a run already: resume it, or choose another folder", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("the run's folder: %w", err)
	}
	if err := r.Config.write(out); err != nil {
		return fmt.Errorf("the run's folder: %w", err)
	}
	return r.Save()
}

func (r *Run) interrupt(cause error) error {
	if cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	if r.Config.Out == "" {
		return ErrInterrupted
	}
	if err := r.Save(); err != nil {
		return err
	}
	return fmt.Errorf("%w in epoch %d after step %d, state saved in %s", ErrInterrupted, r.pos.Epoch, r.pos.Steps, r.Config.Out)
}

func isDiverged(err error) bool {
	var d *DivergedError
	return errors.As(err, &d)
}

// epoch trains what is left of the epoch in progress, evaluates it and calls the hooks.
func (r *Run) epoch() error {
	if err := r.steps(); err != nil {
		return err
	}
	if ok, err := r.Net.Params.Finite(); err != nil || !ok {
		if err == nil {
			err = r.diverged("a weight is not finite")
		}
		return err
	}
	s := r.state()
	p := &r.pos
	rec := &EpochRecord{Kind: "epoch", Epoch: p.Epoch, Step: p.Steps, Rate: r.Config.Schedule.At(p.Epoch - 1),
		Train: p.Train.Score(), Bad: p.Bad}
	if t := p.Seconds.Data + p.Seconds.Compute; t > 0 {
		rec.ImagesPerSecond = float64(p.Train.Images) / t
	}
	s.Record = rec
	start := time.Now()
	if score, err := r.Evaluate(); err != nil {
		return err
	} else if score != nil {
		rec.SGD = score
		if err := r.candidate("sgd", *score); err != nil {
			return err
		}
	}
	rec.Seconds = p.Seconds
	rec.Seconds.Eval = time.Since(start).Seconds()
	for _, h := range r.hooks {
		if h, ok := h.(EpochHook); ok {
			if err := h.AfterEpoch(s); err != nil {
				return fmt.Errorf("%s: %w", h.Name(), err)
			}
		}
	}
	r.History = append(r.History, *rec)
	r.pos = position{Epoch: p.Epoch + 1, Steps: p.Steps}
	if c := &r.Config; c.Out != "" && (rec.Epoch%c.CheckpointEvery == 0 || rec.Epoch == c.Epochs) {
		return r.Save()
	}
	return nil
}

// steps trains the rest of the epoch in progress.
func (r *Run) steps() error {
	c, p := &r.Config, &r.pos
	if p.Batch >= r.train.Steps() {
		return nil
	}
	rate := c.Schedule.At(p.Epoch - 1)
	images, batches := 0, 0
	var loss float64
	var got Tally
	from := time.Now()
	for b, err := range r.train.Epoch(context.WithoutCancel(r.ctx), p.Epoch, p.Batch) {
		if err != nil {
			return err
		}
		loaded := time.Now()
		p.Seconds.Data += loaded.Sub(from).Seconds()
		l, t, err := r.Net.Gradient(b, statsMomentum)
		if err != nil {
			return err
		}
		if math.IsNaN(l) || math.IsInf(l, 0) {
			return r.diverged(fmt.Sprintf("the loss is %g", l))
		}
		loss += l * float64(b.N)
		images += b.N
		batches++
		got.Add(t)
		p.Bad += b.Bad
		if err := r.accumulate(b.N, batches); err != nil {
			return err
		}
		done := p.Batch + batches
		if batches < c.Accumulate && done < r.train.Steps() {
			p.Seconds.Compute += time.Since(loaded).Seconds()
			from = time.Now()
			continue
		}
		if err := r.update(rate, images); err != nil {
			return err
		}
		p.Batch = done
		p.Steps++
		p.Train.Add(got)
		p.Seconds.Compute += time.Since(loaded).Seconds()
		s := r.state()
		s.Step = &StepRecord{Kind: "step", Epoch: p.Epoch, Step: p.Steps, Loss: loss / float64(images),
			Top1: got.Score().Top1, Rate: rate, Images: images}
		loss, images, batches, got = 0, 0, 0, Tally{}
		for _, h := range r.hooks {
			if h, ok := h.(StepHook); ok {
				if err := h.AfterStep(s); err != nil {
					return fmt.Errorf("%s: %w", h.Name(), err)
				}
			}
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		from = time.Now()
	}
	return nil
}

// accumulate adds the gradient of a batch, the k-th of a step, to the sum over images.
func (r *Run) accumulate(images, k int) error {
	if r.sum == nil {
		return nil
	}
	if k == 1 {
		if err := r.sum.Fill(0); err != nil {
			return err
		}
	}
	return r.sum.AddScaled(float64(images), r.Net.Grads)
}

// update makes a step of the optimiser on the mean gradient over images.
func (r *Run) update(rate float64, images int) error {
	c := &r.Config
	s := device.SGD{Rate: rate, Momentum: *c.Momentum, Decay: *c.WeightDecay, Nesterov: c.Nesterov, Scale: 1, NoDecay: r.noDecay}
	grad := r.Net.Grads
	if r.sum != nil {
		grad, s.Scale = r.sum, 1/float64(images)
	}
	return r.Net.Params.SGD(grad, r.momentum, s)
}

func (r *Run) state() *State {
	p := &r.pos
	return &State{Config: &r.Config, Net: r.Net, Epoch: p.Epoch, Batch: p.Batch, Batches: r.train.Steps(), Steps: p.Steps, run: r}
}

func (r *Run) diverged(what string) error {
	e := &DivergedError{Epoch: r.pos.Epoch, Step: r.pos.Steps + 1, What: what, Rate: r.Config.Schedule.At(r.pos.Epoch - 1)}
	if r.Config.Out != "" {
		if dir, err := findDir(filepath.Join(r.Config.Out, checkpointDir)); err == nil {
			e.Checkpoint = dir
		}
	}
	return e
}
