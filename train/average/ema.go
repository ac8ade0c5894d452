package average

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"onlinerna/nn/device"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// EMA keeps an average of the iterates without affecting training: with a decay d, every k steps,
//
//	x ← d·x + (1−d)·w   after step t = k, 2k, 3k, …
//
// where x = w until the learning rate has warmed up, or a power average,
//
//	x ← x + (γ+1)/(t+γ)·(w − x)   after step t = 1, 2, …
//
// The weight of the iterate of step t is then about (t/T)^γ after T steps: the average forgets the start for any length
// of the run. The first step sets x to w.
type EMA struct {
	rule emaRule
	x    device.Vector
}

// emaRule is the rule of an EMA: by a power, or with a decay.
type emaRule struct {
	Gamma float64 `json:"gamma,omitempty"`
	Decay float64 `json:"decay,omitempty"`
	Every int     `json:"every,omitempty"`
}

var (
	_ hook.OpeningHook = (*EMA)(nil)
	_ hook.HoldingHook = (*EMA)(nil)
	_ hook.QueuedHook  = (*EMA)(nil)
	_ hook.EpochHook   = (*EMA)(nil)
	_ hook.ShardedHook = (*EMA)(nil)
	_ hook.ClosingHook = (*EMA)(nil)
)

// NewEMA returns the hook of a power average with exponent γ.
func NewEMA(gamma float64) *EMA { return &EMA{rule: emaRule{Gamma: gamma}} }

// NewDecayEMA returns the hook of an average with a decay that is applied every given number of steps.
func NewDecayEMA(decay float64, every int) *EMA {
	return &EMA{rule: emaRule{Decay: decay, Every: every}}
}

// Holds implements hook.HoldingHook.
func (h *EMA) Holds() hook.Holdings { return hook.Holdings{Weights: 1} }

// Open implements hook.OpeningHook.
func (h *EMA) Open(s *hook.State) (err error) {
	h.x, err = s.Net.NewParams()
	return err
}

func (h *EMA) Name() string { return "ema" }

// AfterIssue adds the weights after a step to the average.
func (h *EMA) AfterIssue(_ context.Context, s *hook.State) error {
	defer since(time.Now(), &s.Seconds.EMA)
	if every := h.rule.Every; every > 0 && s.Steps > 1 && s.Steps%every != 0 {
		return nil
	}
	w, err := s.Iterate()
	if err != nil {
		return err
	}
	if s.Steps == 1 {
		return h.x.Copy(w)
	}
	if h.rule.Every > 0 {
		if s.Warming() {
			return h.x.Copy(w)
		}
		return h.x.Lerp(1-h.rule.Decay, w)
	}
	a := (h.rule.Gamma + 1) / (float64(s.Steps) + h.rule.Gamma)
	return h.x.Lerp(a, w)
}

// AfterEpoch scores the average, with statistics re-estimated, and keeps its weights.
func (h *EMA) AfterEpoch(ctx context.Context, s *hook.State) error {
	defer since(time.Now(), &s.Seconds.EMA)
	return s.Temporarily(func() error {
		if err := s.Net.Params.Copy(h.x); err != nil {
			return err
		}
		err := s.Recalibrate(ctx)
		if err != nil {
			return err
		}
		if s.Record.EMA, err = s.Evaluate(ctx); err != nil {
			return err
		}
		if err := s.Judge(ctx, network.EMA, s.Record.EMA); err != nil {
			return err
		}
		return s.Keep("ema", network.EMA)
	})
}

// Sharded implements hook.ShardedHook.
func (h *EMA) Sharded() {}

// Save writes the average under the parameters' names.
func (h *EMA) Save(s *hook.State, dir string) (json.RawMessage, error) {
	if s.Steps > 0 { // otherwise there is no average yet
		if err := s.Net.SaveShare(emaFile(dir), h.x, "", s.Share); err != nil {
			return nil, err
		}
	}
	return json.Marshal(h.rule)
}

// Load is the inverse of Save.
func (h *EMA) Load(s *hook.State, dir string, small json.RawMessage) error {
	var rule emaRule
	if err := json.Unmarshal(small, &rule); err != nil { // formerly a power average was saved as a number
		if err := json.Unmarshal(small, &rule.Gamma); err != nil {
			return err
		}
	}
	if rule != h.rule {
		return fmt.Errorf("the checkpoint's average is for %+v, the config's for %+v", rule, h.rule)
	}
	if s.Steps == 0 {
		return nil
	}
	return s.Net.LoadVector(emaFile(dir), h.x)
}

func (h *EMA) Close() error {
	if h.x != nil {
		h.x.Free()
	}
	return nil
}

func emaFile(dir string) string { return filepath.Join(dir, "ema.safetensors") }
