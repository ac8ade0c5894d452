package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"onlinerna/data"
	"onlinerna/internal/hostmemory"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/shard"
	"onlinerna/train/tensorboard"
)

// Run is a training run. It may be used by one goroutine at a time.
type Run struct {
	Deps                        // as given by the program
	Resolved Resolved           // the run's Spec with its defaults
	Net      *network.Network   // with the current weights of training
	History  []hook.EpochRecord // one record per finished epoch

	in       *input
	engine   *engine
	judge    *judge
	folder   *folder
	hooks    []hook.Hook
	pos      position
	ticked   time.Time // when pos.Clock was counted last
	warned   bool      // of an epoch that takes longer than the time budget
	watch    *device.Watch
	slowed   bool           // the GPU was slowed down
	starved  bool           // training waited for images
	told     int            // the number of epochs by the time budget, as logged last
	teacher  string         // identifies the teacher's weights
	chosen   []Choice       // options that differ from their defaults
	recorded bool           // this process is among the run's sessions
	profiler *profiler      // nil without Profile
	ranges   *device.Ranges // for a profiler of the device
	broken   error          // error that left the weights between two steps
}

// New prepares a run on a device: it opens the data, resolves the Spec, builds the network and plans its memory. It
// writes nothing before Train.
func New(c Spec, d Deps) (*Run, error) {
	c.NoteGiven()
	if p, ok := device.As[device.Processor](d.Device); ok {
		winograd := p.Winograd()
		c.Winograd = &winograd
		if c.Float32 == "" || c.Float32 == "bf16x6" { // where it is faster
			if c.Float32 = p.Float32(); c.Float32 == "direct" {
				c.Float32 = "" // a record without a way means this one
			}
		}
	}
	r, err := prepare(c, d)
	if err != nil {
		return nil, err
	}
	if c.Init != "" {
		err = r.loadInit()
	} else if c.InitKey != "" {
		err = fmt.Errorf("key %q is of a file with initial weights, and there is none", c.InitKey)
	}
	if err = r.Ranks.Together(err); err == nil {
		err = r.preflight()
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// prepare is New without initial weights from a file.
func prepare(c Spec, d Deps) (_ *Run, err error) {
	c.NoteGiven()
	r := &Run{Resolved: Resolved{Spec: c}, Deps: d, hooks: slices.Clone(d.Hooks)}
	if r.Ranks.First() {
		r.logged = &logbook{}
	}
	r.in = &input{Deps: &r.Deps}
	r.engine = &engine{Deps: &r.Deps, c: &r.Resolved, in: r.in, pos: &r.pos}
	r.judge = &judge{Deps: &r.Deps, c: &r.Resolved, in: r.in, pos: &r.pos}
	r.folder = &folder{Deps: &r.Deps, c: &r.Resolved, pos: &r.pos}
	if err = r.Ranks.Compare(ranks.Fact{Name: "the run's folder", Value: cmp.Or(c.Out, "none")}); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	for _, stage := range []func() error{ // a stage starts once all ranks have passed the previous one
		func() error { return checkDevice(&c, d.Device) },
		r.openData, r.openNetwork, r.openLoaders,
	} {
		if err = r.Ranks.Together(stage()); err == nil {
			err = r.agree()
		}
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// addHooks adds the run's own hooks around the caller's: RNA and the power average first, the metrics, which write all
// records, last.
func (r *Run) addHooks() error {
	var own []hook.Hook
	if r.Resolved.RNA.Mode != average.Off {
		own = append(own, average.NewRNA(r.Resolved.RNA))
	}
	if r.Resolved.EMA != nil {
		own = append(own, average.NewEMA(r.Resolved.EMA, r.Resolved.KeepEvery))
	} else if c := &r.Resolved; c.EMADecay > 0 {
		own = append(own, average.NewDecayEMA(c.EMADecay, c.EMAEvery))
	}
	r.hooks = append(own, r.hooks...)
	if r.Resolved.TensorBoard {
		if r.Resolved.Out == "" {
			return errors.New("files for TensorBoard lie in the run's folder, and the run has none: name one")
		}
		r.hooks = append(r.hooks, tensorboard.New(r.Resolved.Out, tensorboard.Config{Idle: !r.Ranks.First(),
			Options: table.Settings(&r.Resolved.Spec), Histograms: r.Resolved.Histograms, Sheet: r.in.sheet}))
	}
	if r.Resolved.Out != "" {
		r.hooks = append(r.hooks, &metricsHook{dir: r.Resolved.Out, history: &r.History, log: r.Resolved.note,
			warn: r.log, idle: !r.Ranks.First()})
	}
	seen := map[string]bool{}
	for _, h := range r.hooks {
		if seen[h.Name()] {
			return fmt.Errorf("two hooks are named %q", h.Name())
		}
		seen[h.Name()] = true
	}
	return nil
}

// Hook finds a hook of the run by name, nil for none: one of the caller's, or "rna", an *average.RNA, or "ema", an
// *average.EMA.
func (r *Run) Hook(name string) hook.Hook {
	for _, h := range r.hooks {
		if h.Name() == name {
			return h
		}
	}
	return nil
}

// openHooks opens the hooks that hold resources.
func (r *Run) openHooks() error {
	for _, h := range r.hooks {
		if h, ok := h.(hook.OpeningHook); ok {
			if err := h.Open(r.state()); err != nil {
				return fmt.Errorf("%s: %w", h.Name(), err)
			}
		}
	}
	return nil
}

// openData opens the data and resolves the Spec.
func (r *Run) openData() (err error) {
	c := &r.Resolved
	if err := r.in.open(c); err != nil {
		return err
	}
	c.Notes = append(c.Notes, r.in.notes()...)
	if err := r.initNet(); err != nil {
		return err
	}
	given := c.Spec
	resolve := func(c *Resolved) error { return c.resolve(r.in.set, r.in.profile, r.Ranks.Size()) }
	if err := resolve(c); err != nil {
		return err
	}
	r.chosen = chosenOf(&given, &c.Spec, r.in.set, resolve)
	if c.Out == AutoOut {
		c.Out, err = r.folder.reserve(filepath.Join("runs", time.Now().Format("20060102-150405")+"-"+c.Model))
	}
	return err
}

// Position returns the run's position: the current epoch, counted from 1, its finished batches, and the steps since the
// start.
func (r *Run) Position() (epoch, batches, steps int) { return r.pos.Epoch, r.pos.Batch, r.pos.Steps }

// openNetwork creates the network and the optimiser's vectors, and finds a batch that fits.
func (r *Run) openNetwork() error {
	c, train := &r.Resolved, r.in.set
	if err := r.addHooks(); err != nil {
		return err
	}
	dropout, path := *c.Dropout, *c.DropPath
	if dropout > 0 || path > 0 {
		m, err := nn.Build(c.Model, nn.Config{Batch: 2, Size: c.ImageSize, Dropout: dropout, DropPath: path})
		if err != nil {
			return err
		}
		if dropout > 0 && !m.Dropout {
			return fmt.Errorf("dropout %g: %s has no dropout", dropout, c.Model)
		}
		if path > 0 && !m.StochasticDepth {
			return fmt.Errorf("drop path %g: %s has no stochastic depth, as ResNets, EfficientNets, ConvNeXt, ViT, Swin and "+
				"MaxViT have", path, c.Model)
		}
	}
	smoothing := c.LabelSmoothing
	if c.Network() != nn.CrossEntropy {
		smoothing = 0 // the targets are smoothed
	}
	weights, err := r.classWeights()
	if err != nil {
		return err
	}
	net, err := network.New(r.Device, c.Model, nn.Config{
		Classes: c.NumClasses, Channels: train.Channels(), Size: c.ImageSize, Mean: c.Mean, Std: c.Std,
		Smoothing: smoothing, Loss: c.Network(), FocalGamma: or0(c.FocalGamma), Asymmetric: c.asymmetric(),
		HuberDelta: or0(c.HuberDelta), Teacher: c.TeacherAlpha, Temperature: c.TeacherTemperature,
		BlurPool: c.BlurPool, Dropout: dropout, DropPath: path,
		ZeroInitResidual: c.ZeroInit,
		Seed:             c.Seed, Freeze: c.Freeze,
	}, c.Seed)
	if err != nil {
		return noRoom(c, err)
	}
	r.Net, r.judge.net, r.ranges = net, net, device.RangesOf(r.Device)
	for _, set := range []data.Dataset{r.in.set, r.in.valSet} {
		if set != nil && err == nil {
			err = net.CheckInputs(set)
		}
	}
	if err != nil {
		return err
	}
	net.Objective(c.LabelSmoothing, c.TargetThreshold, weights)
	if net.Meaning, err = r.meaning(); err != nil {
		return err
	}
	net.TestFlip, net.LowMemory = c.TestFlip, c.LowMemory
	if err := r.openTeacher(); err != nil {
		return err
	}
	if err := r.engine.open(net); err != nil {
		return err
	}
	if c.Batch == AutoBatch {
		if c.Fit, err = net.Fit(trainedOn(c, train.Len()), r.later(true)); err != nil {
			return err
		}
		c.Batch = c.Fit.Batch
	}
	return nil
}

// agree makes the ranks share choices that each would make for itself: the run's folder, and the batch by memory.
func (r *Run) agree() error {
	c := &r.Resolved
	if err := r.Ranks.Share(&c.Out); err != nil || c.Fit == nil {
		return err
	}
	x := []float64{-float64(c.Batch)}
	err := r.Ranks.Max64(x)
	c.Batch = -int(x[0])
	return err
}

// openLoaders creates the loaders, plans the programs and opens the hooks.
func (r *Run) openLoaders() error {
	if err := r.in.load(&r.Resolved); err != nil {
		return err
	}
	if err := errors.Join(r.judge.checkKept(), r.judge.checkPatience()); err != nil {
		return err
	}
	r.pos.Epoch = 1
	if err := r.engine.resumeScale(nil); err != nil {
		return err
	}
	if err := r.plan(); err != nil {
		return err
	}
	return r.openHooks()
}

// plan prepares the programs of all batches, so that unsupported programs or lack of memory show before anything is
// written.
func (r *Run) plan() error {
	ahead, err := r.in.memory(r.Resolved.Batch, hostmemory.Free())
	if err != nil {
		return err
	}
	return r.Net.Prepare(r.later(false)+ahead, r.in.works(&r.Resolved)...)
}

// Images returns the number of images of an epoch and of an evaluation.
func (r *Run) Images() (train, val int) { return r.in.images() }

// Close releases the network and the data, and closes the hooks.
func (r *Run) Close() error {
	var errs []error
	for _, h := range r.hooks {
		if h, ok := h.(hook.ClosingHook); ok {
			errs = append(errs, h.Close())
		}
	}
	errs = append(errs, r.folder.close())
	r.engine.close()
	if r.Net != nil {
		errs = append(errs, r.Net.Close())
	}
	return errors.Join(append(errs, r.in.close())...)
}

// Evaluate scores the network's current weights on the validation images. It returns nil if there are none.
func (r *Run) Evaluate(ctx context.Context) (*network.Score, error) { return r.judge.evaluate(ctx) }

// Iterate returns the current iterate: the network's parameters or, while an averaging optimiser trains, a copy of the
// average.
func (r *Run) Iterate() (device.Vector, error) { return r.engine.iterate() }

// Meta describes the network's current weights.
func (r *Run) Meta(kind network.Kind) network.Meta { return r.judge.meta(kind) }

// trainedOn returns how many of n images are not held out.
func trainedOn(c *Resolved, n int) int { return max(1, int(float64(n)*(1-c.Holdout))) }

// noRoom explains why the training vectors could not be allocated.
func noRoom(c *Resolved, err error) error {
	if oom := outOfMemory(nil); errors.As(err, &oom) && oom.OutOfMemory() {
		return fmt.Errorf("the weights of %s, their gradients and the state of %s: %w: no batch fits; choose a smaller "+
			"model, or free memory",
			c.Model, c.Optimizer, err)
	}
	return err
}

// later returns the bytes of device memory that hooks will take at any batch size. snapshots includes the snapshots;
// they move to the host if the device lacks memory for them.
func (r *Run) later(snapshots bool) int64 {
	var sum hook.Holdings
	for _, h := range r.hooks {
		if h, ok := h.(hook.HoldingHook); ok {
			x := h.Holds()
			sum.Weights += x.Weights
			sum.Snapshots += x.Snapshots
		}
	}
	if sum.Weights > 0 {
		sum.Weights++ // the iterate, while the network has other weights
	}
	size := int64(r.Device.DType().Size())
	params := int64(r.Net.Params.Len())
	bytes := int64(sum.Weights) * size * params
	if r.Net.Stats != nil {
		bytes += int64(sum.Weights) * size * int64(r.Net.Stats.Len())
	}
	if !snapshots || sum.Snapshots == 0 {
		return bytes
	}
	part := shard.Largest(int(params), r.Ranks.Size())
	if d, ok := device.As[hook.Spacer](r.Device); ok {
		return bytes + d.SpaceBytes(part, sum.Snapshots)
	}
	return bytes + int64(sum.Snapshots)*size*int64(part)
}

// hookView is the run as hooks see it: it implements the methods of hook.State.
type hookView struct{ *Run }

var _ hook.Run = hookView{}

func (r *Run) state() *hook.State {
	c, p := &r.Resolved, &r.pos
	return hook.New(hook.State{Epochs: c.Epochs, Ends: c.exhausted(p.Epoch, r.judge.best),
		Optimizer: c.OptimizerName(), Schedule: c.Schedule, Threads: c.Threads,
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
