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
	gamma float64
	x     device.Vector
}

var (
	_ OpeningHook = (*emaHook)(nil)
	_ HoldingHook = (*emaHook)(nil)
	_ QueuedHook  = (*emaHook)(nil)
	_ EpochHook   = (*emaHook)(nil)
	_ SavingHook  = (*emaHook)(nil)
	_ ClosingHook = (*emaHook)(nil)
)

func newEMAHook(gamma float64) *emaHook { return &emaHook{gamma: gamma} }

// Holds implements HoldingHook.
func (h *emaHook) Holds() Holdings { return Holdings{Weights: 1} }

// Open implements OpeningHook.
func (h *emaHook) Open(s *State) (err error) {
	h.x, err = s.Net.NewParams()
	return err
}

func (h *emaHook) Name() string { return "ema" }

// AfterIssue takes the weights after a step into the average.
func (h *emaHook) AfterIssue(s *State) error {
	defer since(time.Now(), &s.Seconds.EMA)
	if s.Steps == 1 {
		return h.x.Copy(s.Net.Params)
	}
	a := (h.gamma + 1) / (float64(s.Steps) + h.gamma)
	return h.x.Lerp(a, s.Net.Params)
}

// AfterEpoch scores the average, with statistics re-estimated, and keeps its weights.
func (h *emaHook) AfterEpoch(s *State) error {
	defer since(time.Now(), &s.Seconds.EMA)
	return s.Aside(func() error {
		if err := s.Net.Params.Copy(h.x); err != nil {
			return err
		}
		err := s.Restate()
		if err != nil {
			return err
		}
		if s.Record.EMA, err = s.Evaluate(); err != nil {
			return err
		}
		if err := s.Judge(kindEMA, s.Record.EMA); err != nil {
			return err
		}
		return s.Keep("ema", kindEMA)
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
