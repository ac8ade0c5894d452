package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"onlinerna/internal/files"
	"onlinerna/nn/device"
	"onlinerna/train/hook"
	"onlinerna/train/internal/store"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// checkpointDir is the folder of checkpoints within the run's folder.
const checkpointDir = "checkpoint"

const (
	configName = "config.json"
	stateName  = "state.json"
)

// checkpointVersion is the version of state.json.
const checkpointVersion = 1

// checkpoint is state.json: the run's state except its vectors.
type checkpoint struct {
	Version  int                        `json:"version"`
	Position position                   `json:"position"`
	Images   int                        `json:"images"` // in an epoch
	Data     *identities                `json:"data,omitempty"`
	Teacher  string                     `json:"teacher,omitempty"` // its Fingerprint
	Best     *hook.BestRecord           `json:"best,omitempty"`
	Scale    *device.LossScale          `json:"loss_scale,omitempty"` // nil for a device without loss scaling
	Hooks    map[string]json.RawMessage `json:"hooks,omitempty"`
}

// Save writes the state of the run to a new folder in the run's "checkpoint" folder. The newest Spec.CheckpointKeep
// checkpoints stay.
func (r *Run) Save() error {
	if err := r.saveLater(); err != nil {
		return err
	}
	return r.folder.written()
}

// saveLater is Save without waiting for the disk. A later failure becomes an error of the next step or checkpoint.
func (r *Run) saveLater() error {
	if r.Resolved.Out == "" {
		return errors.New("the run has no folder to save its state in")
	}
	if r.broken != nil {
		return fmt.Errorf("the run failed, and its weights are of no step: %w", r.broken)
	}
	r.Ranks.At(ranks.At{Epoch: r.pos.Epoch, What: "the checkpoint"})
	if err := r.engine.sameBits(); err != nil {
		return err
	}
	return r.between("checkpoint", r.saveTogether)
}

// saveTogether makes the ranks write the state of the run in the background, each its share.
func (r *Run) saveTogether() error {
	if err := r.folder.written(); err != nil {
		return err
	}
	if r.Ranks.First() {
		r.tick()
	}
	d, err := r.folder.draft(store.Manifest{Epoch: r.pos.Epoch, Batch: r.pos.Batch, Step: r.pos.Steps})
	if err == nil {
		err = r.Ranks.Together(d.Fill(r.save))
		if err == nil {
			r.folder.finish(d)
		} else if r.Ranks.First() {
			d.Abandon()
		}
	}
	r.folder.due = due{saved: time.Now(), savedSteps: r.pos.Steps, savedEpoch: r.pos.Epoch}
	if err != nil {
		return fmt.Errorf("writing the checkpoint: %w", err)
	}
	return nil
}

// save writes this rank's share of the state of the run.
func (r *Run) save(tmp string) error {
	share := r.folder.share()
	c, err := r.saveOwn(tmp, share)
	for _, h := range r.hooks {
		saving, ok := h.(hook.SavingHook)
		if !ok {
			continue
		}
		if _, ok := h.(hook.ShardedHook); ok {
			if err := r.Ranks.Together(err); err != nil { // no rank waits for one that has failed
				return err
			}
		} else if !r.Ranks.First() || err != nil {
			continue
		}
		s := r.state()
		s.Share = share
		var small json.RawMessage
		if small, err = saving.Save(s, tmp); err != nil {
			err = fmt.Errorf("%s: %w", h.Name(), err)
			continue
		}
		c.Hooks[h.Name()] = small
	}
	if err = r.Ranks.Together(err); err == nil {
		err = r.judge.saveBest(tmp, share)
	}
	if err != nil || !r.Ranks.First() {
		return err
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(tmp, stateName), append(b, '\n'))
}

// saveOwn writes this rank's share of the state without that of the hooks.
func (r *Run) saveOwn(tmp string, share network.Share) (c checkpoint, err error) {
	if r.Ranks.First() {
		if err := r.Resolved.write(tmp); err != nil {
			return c, err
		}
	}
	if err := r.Net.SaveWeightsShare(filepath.Join(tmp, "weights.safetensors"), r.Net.Params, r.Net.Stats,
		r.Meta(network.SGD), share); err != nil {
		return c, err
	}
	for i, name := range r.engine.update.Optimizer.State() {
		if err := r.Net.SaveShare(filepath.Join(tmp, stateFile(name)), r.engine.update.State[i], name, share); err != nil {
			return c, err
		}
	}
	scale, err := r.engine.lossScale()
	return checkpoint{Version: checkpointVersion, Position: r.pos, Images: r.in.train.Images(), Data: &r.in.are,
		Teacher: r.teacher, Best: r.judge.best, Scale: scale, Hooks: map[string]json.RawMessage{}}, err
}

// Checkpoint returns the folder of the newest checkpoint of the run in a folder. Its contents are not verified.
func Checkpoint(dir string) (string, error) {
	list, err := store.List(filepath.Join(dir, checkpointDir))
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s has no checkpoint", dir)
	}
	if err != nil {
		return "", err
	}
	return list[0], nil
}

// ReadSpec reads the config of the run in a folder: from its newest checkpoint with an undamaged config, else from
// config.json.
func ReadSpec(dir string) (Spec, error) {
	list, err := store.List(filepath.Join(dir, checkpointDir))
	if err != nil {
		return Spec{}, err
	}
	var errs []error
	for _, c := range list {
		if err := store.VerifyFile(c, configName); err != nil {
			errs = append(errs, err)
			continue
		}
		return readSpec(c)
	}
	c, err := readSpec(dir)
	if err == nil {
		return c, nil
	}
	return c, errors.Join(append(errs, err)...)
}

// Resume prepares the run in a folder to continue from its checkpoint. adjust, if not nil, may change options that do
// not affect results: the location of the data, workers, threads, the limit on unreadable images. It may also change
// the number of epochs, even of a finished run: the learning rate then follows the schedule of the new length from the
// current position. The hooks must be those that the run was started with. A run locks its folder until it is closed or
// its process ends.
func Resume(dir string, d Deps, adjust func(*Spec)) (_ *Run, err error) {
	root := filepath.Join(dir, checkpointDir)
	var locked *store.Lock // before the newest checkpoint is looked for: no other process writes a newer one
	defer func() {
		if err != nil {
			err = errors.Join(err, locked.Release())
		}
	}()
	err = d.first(func() error {
		list, err := store.List(root)
		if err == nil && len(list) > 0 {
			locked, err = store.Acquire(root)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("resuming %s: %w", dir, err)
	}
	newest, err := store.Find(root)
	var c Spec
	if err == nil {
		c, err = readSpec(newest.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("nothing to resume: %w", err)
	}
	before := c.Epochs
	if c.BestBy == "" { // the run predates this option
		c.BestBy = hook.ByLoss
	}
	if adjust != nil {
		adjust(&c)
	}
	c.Out = dir
	r, err := prepare(c, d)
	_, gone := os.Stat(c.Data)
	if errors.Is(err, fs.ErrNotExist) && c.Data != "" && !filepath.IsAbs(c.Data) && errors.Is(gone, fs.ErrNotExist) {
		err = fmt.Errorf("%w: the run was started in a folder that has it; go there, or name the place of the same data", err)
	}
	if err != nil {
		return nil, err
	}
	r.folder.locked, locked = locked, nil
	if err = r.folder.lock(); err == nil {
		err = r.Ranks.Together(r.load(newest.Dir))
	}
	if err == nil {
		err = r.judge.loadBest(newest.Dir)
	}
	if err == nil {
		err = r.folder.tidy(newest)
	}
	if err == nil {
		err = r.preflight()
	}
	if err == nil && c.Epochs != before {
		err = r.extend(before)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resuming %s: %w", dir, err), r.Close())
	}
	return r, nil
}

// load reads a checkpoint of the run.
func (r *Run) load(dir string) error {
	path := filepath.Join(dir, stateName)
	b, err := files.Read(path)
	if err != nil {
		return err
	}
	var c checkpoint
	if err := json.Unmarshal(b, &c); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case c.Version != checkpointVersion:
		return fmt.Errorf("%s: version %d, this program reads %d", path, c.Version, checkpointVersion)
	case c.Images != r.in.train.Images():
		return fmt.Errorf("%s: the run's epochs have %d images, now there are %d: the data has changed", path, c.Images,
			r.in.train.Images())
	case c.Position.Epoch > r.Resolved.Epochs+1:
		return fmt.Errorf("%s: %d epochs are done: a run of %d epochs is shorter", path, c.Position.Epoch-1,
			r.Resolved.Epochs)
	case c.Position.Epoch < 1 || c.Position.Batch < 0 || c.Position.Batch > r.in.train.Steps() || c.Position.Steps < 0:
		return fmt.Errorf("%s: epoch %d, batch %d is not in a run of %d epochs of %d batches",
			path, c.Position.Epoch, c.Position.Batch, r.Resolved.Epochs, r.in.train.Steps())
	}
	if c.Teacher != r.teacher {
		return fmt.Errorf("%s: the weights of the teacher, %s, have changed since the checkpoint: name the place of the same "+
			"weights by --teacher", path, r.Resolved.Teacher)
	}
	if c.Data != nil {
		switch what := r.in.are.differ(c.Data); {
		case what == "":
		case r.DataChanged:
			r.Resolved.note("the data have changed since the checkpoint (%s)", what)
		default:
			return fmt.Errorf("%s: the data have changed since the checkpoint (%s): name the place of the same data, or "+
				"say that others "+
				"are meant: --data-changed ok", path, what)
		}
	}
	if _, err := r.Net.LoadWeights(filepath.Join(dir, "weights.safetensors")); err != nil {
		return err
	}
	for i, name := range r.engine.update.Optimizer.State() {
		if err := r.Net.LoadVector(filepath.Join(dir, stateFile(name)), r.engine.update.State[i]); err != nil {
			return err
		}
	}
	r.pos, r.judge.best, r.folder.begun = c.Position, c.Best, true
	r.folder.due = due{saved: time.Now(), savedSteps: r.pos.Steps, savedEpoch: r.pos.Epoch}
	if err := r.engine.resumeScale(c.Scale); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, h := range r.hooks {
		h, ok := h.(hook.SavingHook)
		if !ok {
			continue
		}
		small, ok := c.Hooks[h.Name()]
		if !ok {
			return fmt.Errorf("%s: no state of the hook %s", path, h.Name())
		}
		if err := h.Load(r.state(), dir, small); err != nil {
			return fmt.Errorf("%s: %s: %w", path, h.Name(), err)
		}
	}
	return nil
}

// stateFile is the file of a vector of the optimiser's state within a checkpoint.
func stateFile(name string) string { return name + ".safetensors" }

// extend saves a resumed run whose number of epochs has changed, since a checkpoint stores its run's config.
func (r *Run) extend(before int) error {
	c := &r.Resolved
	r.Resolved.note("%d epochs in place of %d: the learning rate is that of a run of %d epochs from here on, %v", c.Epochs,
		before, c.Epochs, c.Schedule)
	return r.Save()
}
