package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"onlinerna/internal/hostmemory"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/internal/store"
	"onlinerna/train/network"
	"onlinerna/train/ranks/reduce"
	"onlinerna/train/tensorboard"
)

// Run is a training run. It may be used by one goroutine at a time.
type Run struct {
	Resolved Resolved
	Net      *network.Network
	History  []hook.EpochRecord // a record for each finished epoch
	Deps                        // which it was given

	update   device.Update // what steps of the optimiser have in common
	sum      device.Vector // of gradients, where batches are accumulated
	spare    network.Point // room for the iterate while other weights are looked at
	averaged averaging     // what an averaging optimiser takes
	scaled   bool          // the loss is

	in       *input
	hooks    []hook.Hook
	pos      position
	best     *hook.BestRecord // whose weights are in best.safetensors
	reserved string           // a folder that was made for the run
	begun    bool             // the folder holds this run
	locked   *store.Lock      // the folder
	due      due              // the next checkpoint
	writing  *background      // a checkpoint, or nil
	profiler *profiler        // nil without Profile
	beyond   error            // after which the weights are further than pos
	reducer  device.Reducer   // of ranks, nil for one process
	strayed  bool             // the running statistics differ among the ranks
	idle     bool             // this rank had no batch since they did not
}

// New prepares a run on a device: it opens the data, resolves the Spec, builds the network and plans its
// memory. Nothing is written before Train.
func New(c Spec, d Deps) (*Run, error) {
	if p, ok := device.As[device.Processor](d.Device); ok {
		winograd := p.Winograd()
		c.Winograd = &winograd
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
func prepare(c Spec, d Deps) (*Run, error) {
	r := &Run{Resolved: Resolved{Spec: c}, Deps: d, hooks: slices.Clone(d.Hooks)}
	if err := r.Ranks.Together(checkDevice(&c, d.Device)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if !r.Ranks.Single() {
		r.reducer = reduce.New(r.Ranks, d.Device)
	}
	err := r.Ranks.Together(r.openData())
	if err == nil {
		err = r.Ranks.Share(&r.Resolved.Out)
	}
	if err == nil {
		err = r.Ranks.Together(r.openNetwork())
	}
	if err == nil {
		err = r.commonBatch()
	}
	if err == nil {
		err = r.Ranks.Together(r.rest())
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// addHooks puts the run's own hooks round the caller's: RNA is first, then the power average, and metrics are last, so that they show
// what the others wrote into the record.
func (r *Run) addHooks() error {
	var own []hook.Hook
	if r.Resolved.RNA.Mode != average.Off {
		own = append(own, average.NewRNA(r.Resolved.RNA))
	}
	if r.Resolved.EMA > 0 {
		own = append(own, average.NewEMA(r.Resolved.EMA))
	} else if c := &r.Resolved; c.EMADecay > 0 {
		own = append(own, average.NewDecayEMA(c.EMADecay, c.EMAEvery))
	}
	r.hooks = append(own, r.hooks...)
	if r.Resolved.TensorBoard && r.Ranks.First() {
		if r.Resolved.Out == "" {
			return errors.New("files for TensorBoard lie in the run's folder, and the run has none: name one")
		}
		r.hooks = append(r.hooks, tensorboard.New(r.Resolved.Out))
	}
	if r.Resolved.Out != "" {
		r.hooks = append(r.hooks, &metricsHook{dir: r.Resolved.Out, history: &r.History, log: r.Resolved.note, idle: !r.Ranks.First()})
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

// Hook finds a hook of the run by its name, nil for none: one of the caller's, or "rna", an *average.RNA, or "ema", an *average.EMA.
func (r *Run) Hook(name string) hook.Hook {
	for _, h := range r.hooks {
		if h.Name() == name {
			return h
		}
	}
	return nil
}

// openHooks opens what hooks hold.
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
	if r.in, err = openInput(c, &r.Deps); err != nil {
		return err
	}
	r.Resolved.Notes = append(r.Resolved.Notes, r.in.notes()...)
	if err := r.initNet(); err != nil {
		return err
	}
	if err := c.resolve(r.in.set, r.in.profile, r.Ranks.Size()); err != nil {
		return err
	}
	if c.Out == AutoOut {
		c.Out, err = r.reserve(filepath.Join("runs", time.Now().Format("20060102-150405")+"-"+c.Model))
	}
	return err
}

// reserve makes an empty folder of the name, or with a number behind it if there is one: a run that starts in the same second has another.
// Close removes it where nothing was written.
func (r *Run) reserve(name string) (string, error) {
	if !r.Ranks.First() {
		return name, nil // rank 0 says
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return "", fmt.Errorf("the run's folder: %w", err)
	}
	for i := 1; ; i++ {
		dir := name
		if i > 1 {
			dir = fmt.Sprintf("%s-%d", name, i)
		}
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			r.reserved = dir
			return dir, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("the run's folder: %w", err)
		}
	}
}

// Position is where the run is: the epoch in progress, counted from 1, the batches of it that are done, and the steps since the start.
func (r *Run) Position() (epoch, batches, steps int) { return r.pos.Epoch, r.pos.Batch, r.pos.Steps }

// openNetwork makes the network and the optimiser's vectors, and finds the batch that fits.
func (r *Run) openNetwork() error {
	c, train := &r.Resolved, r.in.set
	if err := r.addHooks(); err != nil {
		return err
	}
	dropout, path := *c.Dropout, *c.DropPath
	if dropout > 0 || path > 0 {
		m, err := nn.Build(c.Model, nn.Config{Batch: 1, Size: c.ImageSize, Dropout: dropout, DropPath: path})
		if err != nil {
			return err
		}
		if m.RandomCounter == nil {
			return fmt.Errorf("dropout %g, drop path %g: %s has no layers for them: use a ResNet", dropout, path, c.Model)
		}
	}
	smoothing := c.LabelSmoothing
	if c.Network() != nn.CrossEntropy {
		smoothing = 0 // targets have it
	}
	net, err := network.New(r.Device, c.Model, nn.Config{
		Classes: c.NumClasses, Channels: train.Channels(), Size: c.ImageSize, Mean: c.Mean, Std: c.Std,
		Smoothing: smoothing, Loss: c.Network(), BlurPool: c.BlurPool, Dropout: dropout, DropPath: path, ZeroInitResidual: c.ZeroInit,
		Seed: c.Seed, Freeze: c.Freeze,
	}, c.Seed)
	if err != nil {
		return noRoom(c, err)
	}
	r.Net = net
	net.Objective(c.LabelSmoothing, c.TargetThreshold, c.ClassWeights)
	net.TestFlip, net.LowMemory = c.TestFlip, c.LowMemory
	if r.reducer != nil {
		if err := reduce.Takes(r.Device, net.Params); err != nil {
			return err
		}
	}
	if err := r.openOptimizer(); err != nil {
		return err
	}
	if c.Accumulate > 1 {
		if r.sum, err = net.NewParams(); err != nil {
			return noRoom(c, err)
		}
	}
	if c.Batch == AutoBatch {
		if r.Resolved.Fit, err = net.Fit(trainedOn(c, train.Len()), r.later(true)); err != nil {
			return err
		}
		c.Batch = r.Resolved.Fit.Batch
	}
	return nil
}

// commonBatch makes a batch that was found by the memory the smallest of the ranks'.
func (r *Run) commonBatch() error {
	if r.Resolved.Fit == nil {
		return nil
	}
	x := []float64{-float64(r.Resolved.Batch)}
	err := r.Ranks.Max64(x)
	r.Resolved.Batch = -int(x[0])
	return err
}

// rest opens the loaders, plans the programs and opens the hooks.
func (r *Run) rest() error {
	if err := r.in.load(&r.Resolved); err != nil {
		return err
	}
	if err := r.checkKept(); err != nil {
		return err
	}
	r.pos.Epoch = 1
	if err := r.resumeScale(nil); err != nil {
		return err
	}
	if err := r.plan(); err != nil {
		return err
	}
	return r.openHooks()
}

// plan prepares the programs of all batches, so that what cannot run, or does not fit in memory, is known before anything is written.
func (r *Run) plan() error {
	ahead, err := r.in.memory(r.Resolved.Batch, hostmemory.Free())
	if err != nil {
		return err
	}
	return r.Net.Prepare(r.later(false)+ahead, r.in.works(&r.Resolved)...)
}

// Images is the number of images of an epoch and of an evaluation.
func (r *Run) Images() (train, val int) { return r.in.images() }

// Close releases the network, the data and what hooks hold.
func (r *Run) Close() error {
	var errs []error
	for _, h := range r.hooks {
		if h, ok := h.(hook.ClosingHook); ok {
			errs = append(errs, h.Close())
		}
	}
	for _, v := range append([]device.Vector{r.sum}, r.update.State...) {
		if v != nil {
			v.Free()
		}
	}
	errs = append(errs, r.written(), r.locked.Release())
	r.locked = nil
	if r.reserved != "" {
		if os.Remove(r.reserved) == nil { // it is empty
			os.Remove(filepath.Dir(r.reserved))
		}
	}
	r.spare.Free()
	r.averaged.free()
	if r.Net != nil {
		errs = append(errs, r.Net.Close())
	}
	return errors.Join(append(errs, r.in.close())...)
}

// Meta describes the present weights of this run.
func (r *Run) Meta(kind network.Kind) network.Meta {
	c, epoch := &r.Resolved, r.pos.Epoch
	if r.pos.Batch == 0 { // it has not begun
		epoch--
	}
	return network.Meta{Model: c.Model, Classes: c.Classes, ImageSize: c.ImageSize, BlurPool: c.BlurPool, ValResize: c.ValResize, Interpolation: c.Interpolation, Mean: c.Mean, Std: c.Std, Epoch: epoch, Kind: kind, Split: r.in.split}
}
