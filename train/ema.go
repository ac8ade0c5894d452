package train

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"onlinerna/nn/device"
)

// emaHook keeps a power average of the iterates beside training, which it leaves alone:
//
//	x ← x + (γ+1)/(t+γ)·(w − x)   after step t = 1, 2, …
//
// The weight of the iterate of step t is then about (t/T)^γ after T steps: the average forgets the start at any
// length of a run. The first step sets x to w.
type emaHook struct {
	run   *Run
	gamma float64
	x     device.Vector
}

var (
	_ QueuedHook  = (*emaHook)(nil)
	_ EpochHook   = (*emaHook)(nil)
	_ SavingHook  = (*emaHook)(nil)
	_ ClosingHook = (*emaHook)(nil)
)

func newEMAHook(r *Run) (*emaHook, error) {
	x, err := r.Net.NewParams()
	return &emaHook{run: r, gamma: r.Config.EMA, x: x}, err
}

func (h *emaHook) Name() string { return "ema" }

// AfterIssue takes the weights after a step into the average.
func (h *emaHook) AfterIssue(s *State) error {
	defer since(time.Now(), &h.run.pos.Seconds.EMA)
	if s.Steps == 1 {
		return h.x.Copy(s.Net.Params)
	}
	a := (h.gamma + 1) / (float64(s.Steps) + h.gamma)
	return h.x.Lerp(a, s.Net.Params)
}

// AfterEpoch scores the average, with statistics re-estimated, and keeps its weights.
func (h *emaHook) AfterEpoch(s *State) error {
	defer since(time.Now(), &s.Record.Seconds.EMA)
	return h.run.aside(func() error {
		if err := s.Net.Params.Copy(h.x); err != nil {
			return err
		}
		err := h.run.reestimate()
		if err != nil {
			return err
		}
		if s.Record.EMA, err = h.run.Evaluate(); err != nil {
			return err
		}
		if err := h.run.judge(s.Record, kindEMA, s.Record.EMA); err != nil {
			return err
		}
		return h.run.keep("ema", kindEMA)
	})
}

// Save writes the average under the parameters' names.
func (h *emaHook) Save(s *State, dir string) (json.RawMessage, error) {
	if s.Steps == 0 { // there is none yet
		return json.Marshal(h.gamma)
	}
	if err := s.Net.SaveVector(emaFile(dir), h.x); err != nil {
		return nil, err
	}
	return json.Marshal(h.gamma)
}

// Load is the inverse of Save.
func (h *emaHook) Load(s *State, dir string, small json.RawMessage) error {
	var gamma float64
	if err := json.Unmarshal(small, &gamma); err != nil {
		return err
	}
	if gamma != h.gamma {
		return fmt.Errorf("the checkpoint's average is for gamma %g, the config's for %g", gamma, h.gamma)
	}
	if s.Steps == 0 {
		return nil
	}
	return s.Net.LoadVector(emaFile(dir), h.x)
}

func (h *emaHook) Close() error {
	if h.x != nil {
		h.x.Free()
	}
	return nil
}

func emaFile(dir string) string { return filepath.Join(dir, "ema.safetensors") }
