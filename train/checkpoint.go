package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"onlinerna/nn/device"
	"onlinerna/train/internal/files"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// checkpointDir is the folder of the checkpoint in that of the run.
const checkpointDir = "checkpoint"

// checkpointVersion is that of state.json.
const checkpointVersion = 1

// checkpoint is state.json: all of a run's state that is not in vectors.
type checkpoint struct {
	Version  int                        `json:"version"`
	Position position                   `json:"position"`
	Images   int                        `json:"images"` // of an epoch
	Best     *BestRecord                `json:"best,omitempty"`
	Scale    *device.LossScale          `json:"loss_scale,omitempty"` // where the device has one
	Hooks    map[string]json.RawMessage `json:"hooks,omitempty"`
}

// Save writes the state of the run to the folder "checkpoint" in that of the run. It replaces the one before when
// it is complete.
func (r *Run) Save() error {
	if r.Config.Out == "" {
		return errors.New("the run has no folder to save its state in")
	}
	if r.beyond != nil {
		return fmt.Errorf("the run failed, and its weights are of no step: %w", r.beyond)
	}
	r.Config.Ranks.At(ranks.At{Epoch: r.pos.Epoch, What: "the checkpoint"})
	if err := r.sameBits(); err != nil {
		return err
	}
	return r.saveTogether()
}

// saveTogether writes the state of the run: rank 0 does, while the others give it what only they have.
func (r *Run) saveTogether() error {
	g := r.Config.Ranks
	var err error
	if g.First() {
		err = r.save()
	} else {
		for _, h := range r.hooks {
			if h, ok := h.(DividedHook); ok && h.Divided() && err == nil {
				_, err = r.saveDivided(h, "")
			}
		}
	}
	return g.Together(err)
}

// saveDivided is Save of a hook on all ranks, if none of them has failed before.
func (r *Run) saveDivided(h DividedHook, dir string) (json.RawMessage, error) {
	if err := r.Config.Ranks.Together(nil); err != nil {
		return nil, err
	}
	return h.Save(r.state(), dir)
}

// save writes the state of the run, with the others in saveTogether where hooks need them.
func (r *Run) save() error {
	dir := filepath.Join(r.Config.Out, checkpointDir)
	err := files.ReplaceDir(dir, func(tmp string) error {
		if err := r.Net.SaveWeights(filepath.Join(tmp, "weights.safetensors"), r.Net.Params, r.Net.Stats, r.Meta(network.SGD)); err != nil {
			return err
		}
		for i, name := range r.update.Optimizer.State() {
			if err := r.Net.SaveVector(filepath.Join(tmp, stateFile(name)), r.update.State[i]); err != nil {
				return err
			}
		}
		scale, err := r.lossScale()
		if err != nil {
			return err
		}
		c := checkpoint{Version: checkpointVersion, Position: r.pos, Images: r.train.Images(), Best: r.best, Scale: scale, Hooks: map[string]json.RawMessage{}}
		for _, h := range r.hooks {
			saving, ok := h.(SavingHook)
			if !ok {
				continue
			}
			var small json.RawMessage
			if d, ok := h.(DividedHook); ok && d.Divided() {
				small, err = r.saveDivided(d, tmp)
			} else {
				small, err = saving.Save(r.state(), tmp)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", h.Name(), err)
			}
			c.Hooks[h.Name()] = small
		}
		b, err := json.MarshalIndent(c, "", "  ")
		if err != nil {
			return err
		}
		return files.Write(filepath.Join(tmp, "state.json"), append(b, '\n'))
	})
	if err != nil {
		return fmt.Errorf("writing the checkpoint: %w", err)
	}
	return nil
}

// Resume prepares the run in a folder to go on from its checkpoint. adjust, if not nil, may change what does
// not change results: where the data lies, workers, threads, the limit on unreadable images. It may also change the number of epochs, also of a
// run that is over: the schedule of the learning rate is then that of the new length, from where the run is on. The
// hooks are those that the run was started with.
func Resume(dir string, dev device.Device, adjust func(*Config), hooks ...Hook) (*Run, error) {
	c, err := ReadConfig(dir)
	if err != nil {
		return nil, fmt.Errorf("nothing to resume: %w", err)
	}
	before := c.Epochs
	if adjust != nil {
		adjust(&c)
	}
	c.Out = dir
	r, err := prepare(c, dev, hooks)
	if err != nil {
		return nil, err
	}
	if err = r.Config.Ranks.Together(r.load()); err == nil {
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

// load reads the checkpoint of the run.
func (r *Run) load() error {
	dir, err := files.FindDir(filepath.Join(r.Config.Out, checkpointDir))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "state.json")
	b, err := os.ReadFile(path)
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
	case c.Images != r.train.Images():
		return fmt.Errorf("%s: the run's epochs have %d images, now there are %d: the data has changed", path, c.Images, r.train.Images())
	case c.Position.Epoch < 1 || c.Position.Epoch > r.Config.Epochs+1 || c.Position.Batch < 0 || c.Position.Batch > r.train.Steps() || c.Position.Steps < 0:
		return fmt.Errorf("%s: epoch %d, batch %d is not in a run of %d epochs of %d batches",
			path, c.Position.Epoch, c.Position.Batch, r.Config.Epochs, r.train.Steps())
	}
	if _, err := r.Net.LoadWeights(filepath.Join(dir, "weights.safetensors")); err != nil {
		return err
	}
	for i, name := range r.update.Optimizer.State() {
		if err := r.Net.LoadVector(filepath.Join(dir, stateFile(name)), r.update.State[i]); err != nil {
			return err
		}
	}
	r.pos, r.best, r.begun = c.Position, c.Best, true
	if err := r.resumeScale(c.Scale); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, h := range r.hooks {
		h, ok := h.(SavingHook)
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
