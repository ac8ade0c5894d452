package train

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"onlinerna/nn/device"
)

// checkpointDir is the folder of the checkpoint in that of the run.
const checkpointDir = "checkpoint"

// checkpointVersion is that of state.json.
const checkpointVersion = 1

// checkpoint is state.json: all of a run's state that is not in vectors.
type checkpoint struct {
	Version      int                        `json:"version"`
	Position     position                   `json:"position"`
	StatsBatches int                        `json:"stats_batches"`
	Best         *bestRecord                `json:"best,omitempty"`
	Hooks        map[string]json.RawMessage `json:"hooks,omitempty"`
}

// Save writes the state of the run to the folder "checkpoint" in that of the run. It replaces the one before when
// it is complete.
func (r *Run) Save() error {
	dir := filepath.Join(r.Config.Out, checkpointDir)
	err := replaceDir(dir, func(tmp string) error {
		if err := r.Net.SaveWeights(filepath.Join(tmp, "weights.safetensors"), r.Net.Params, r.Net.Stats, r.Meta("sgd")); err != nil {
			return err
		}
		if err := r.Net.saveVector(filepath.Join(tmp, "momentum.safetensors"), r.momentum); err != nil {
			return err
		}
		c := checkpoint{Version: checkpointVersion, Position: r.pos, StatsBatches: r.Net.StatsBatches, Best: r.best, Hooks: map[string]json.RawMessage{}}
		for _, h := range r.hooks {
			if h, ok := h.(SavingHook); ok {
				small, err := h.Save(r.state(), tmp)
				if err != nil {
					return fmt.Errorf("%s: %w", h.Name(), err)
				}
				c.Hooks[h.Name()] = small
			}
		}
		b, err := json.MarshalIndent(c, "", "  ")
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(tmp, "state.json"), append(b, '\n'))
	})
	if err != nil {
		return fmt.Errorf("writing the checkpoint: %w", err)
	}
	return nil
}

// Resume prepares the run in a folder to go on from its checkpoint. adjust, if not nil, may change what does
// not change results: workers, threads, limits on bad images.
func Resume(dir string, dev device.Device, adjust func(*Config), hooks ...Hook) (*Run, error) {
	c, err := ReadConfig(dir)
	if err != nil {
		return nil, fmt.Errorf("nothing to resume: %w", err)
	}
	c.Out = dir
	if adjust != nil {
		adjust(&c)
	}
	r, err := New(c, dev, hooks...)
	if err != nil {
		return nil, err
	}
	if err := r.load(); err != nil {
		r.Close()
		return nil, fmt.Errorf("resuming %s: %w", dir, err)
	}
	return r, nil
}

func (r *Run) load() error {
	dir, err := findDir(filepath.Join(r.Config.Out, checkpointDir))
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
	case c.Position.Epoch < 1 || c.Position.Batch < 0 || c.Position.Batch > r.train.Steps():
		return fmt.Errorf("%s: position epoch %d, batch %d does not fit %d batches an epoch", path, c.Position.Epoch, c.Position.Batch, r.train.Steps())
	}
	if _, err := r.Net.LoadWeights(filepath.Join(dir, "weights.safetensors")); err != nil {
		return err
	}
	if err := r.Net.loadVector(filepath.Join(dir, "momentum.safetensors"), r.momentum); err != nil {
		return err
	}
	r.pos, r.best, r.Net.StatsBatches, r.resumed = c.Position, c.Best, c.StatsBatches, true
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
			return fmt.Errorf("%s: %w", h.Name(), err)
		}
	}
	return nil
}
