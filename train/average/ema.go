package average

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
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
//
// Of several power averages the last one is scored. All of them are kept at the end of each few epochs, and package
// posthoc makes others of them after the run.
type EMA struct {
	rule emaRule
	x    device.Vector // the scored average
	more []device.Vector
	keep int // epochs from one kept row of averages to the next, 0 for none
}

// emaRule is the rule of an EMA: by a power, or with a decay. More has the exponents of the averages beside it.
type emaRule struct {
	Gamma float64   `json:"gamma,omitempty"`
	Decay float64   `json:"decay,omitempty"`
	Every int       `json:"every,omitempty"`
	More  []float64 `json:"more,omitempty"`
}

func (r emaRule) equal(s emaRule) bool {
	return r.Gamma == s.Gamma && r.Decay == s.Decay && r.Every == s.Every && slices.Equal(r.More, s.More)
}

var (
	_ hook.OpeningHook = (*EMA)(nil)
	_ hook.HoldingHook = (*EMA)(nil)
	_ hook.QueuedHook  = (*EMA)(nil)
	_ hook.EpochHook   = (*EMA)(nil)
	_ hook.ShardedHook = (*EMA)(nil)
	_ hook.ClosingHook = (*EMA)(nil)
)

// NewEMA returns the hook of power averages with exponents γ. Several of them are kept every given number of epochs, if
// that is not 0.
func NewEMA(gammas []float64, keep int) *EMA {
	n := len(gammas) - 1
	h := &EMA{rule: emaRule{Gamma: gammas[n]}}
	if n > 0 {
		h.rule.More, h.keep = gammas[:n], keep
	}
	return h
}

// NewDecayEMA returns the hook of an average with a decay that is applied every given number of steps.
func NewDecayEMA(decay float64, every int) *EMA {
	return &EMA{rule: emaRule{Decay: decay, Every: every}}
}

// Holds implements hook.HoldingHook.
func (h *EMA) Holds() hook.Holdings { return hook.Holdings{Weights: 1 + len(h.rule.More)} }

// Open implements hook.OpeningHook.
func (h *EMA) Open(s *hook.State) (err error) {
	h.x, err = s.Net.NewParams()
	for range h.rule.More {
		var x device.Vector
		if err == nil {
			x, err = s.Net.NewParams()
		}
		if err == nil {
			h.more = append(h.more, x)
		}
	}
	return err
}

func (h *EMA) Name() string { return "ema" }

// all returns the averages with their exponents.
func (h *EMA) all(f func(x device.Vector, gamma float64) error) error {
	for i, x := range h.more {
		if err := f(x, h.rule.More[i]); err != nil {
			return err
		}
	}
	return f(h.x, h.rule.Gamma)
}

// AfterIssue adds the weights after a step to the averages.
func (h *EMA) AfterIssue(_ context.Context, s *hook.State) error {
	defer since(time.Now(), &s.Seconds.EMA)
	if every := h.rule.Every; every > 0 && s.Steps > 1 && s.Steps%every != 0 {
		return nil
	}
	w, err := s.Iterate()
	if err != nil {
		return err
	}
	return h.all(func(x device.Vector, gamma float64) error {
		switch {
		case s.Steps == 1 || h.rule.Every > 0 && s.Warming():
			return x.Copy(w)
		case h.rule.Every > 0:
			return x.Lerp(1-h.rule.Decay, w)
		}
		return x.Lerp((gamma+1)/(float64(s.Steps)+gamma), w)
	})
}

// AfterEpoch scores the average, with statistics re-estimated, and keeps its weights and the averages beside it.
func (h *EMA) AfterEpoch(ctx context.Context, s *hook.State) error {
	defer since(time.Now(), &s.Seconds.EMA)
	return s.Temporarily(func() error {
		if h.keep > 0 && s.Epoch%h.keep == 0 { // with the iterate's statistics
			if err := h.all(func(x device.Vector, gamma float64) error {
				if err := s.Net.Params.Copy(x); err != nil {
					return err
				}
				return s.KeepEMA(gamma)
			}); err != nil {
				return err
			}
		}
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
		if err := h.all(func(x device.Vector, gamma float64) error {
			return s.Net.SaveShare(h.file(dir, x, gamma), x, "", s.Share)
		}); err != nil {
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
	if !rule.equal(h.rule) {
		return fmt.Errorf("the checkpoint's average is for %+v, the config's for %+v", rule, h.rule)
	}
	if s.Steps == 0 {
		return nil
	}
	return h.all(func(x device.Vector, gamma float64) error { return s.Net.LoadVector(h.file(dir, x, gamma), x) })
}

func (h *EMA) Close() error {
	for _, x := range append(h.more, h.x) {
		if x != nil {
			x.Free()
		}
	}
	return nil
}

// file is the file of an average in a checkpoint.
func (h *EMA) file(dir string, x device.Vector, gamma float64) string {
	name := "ema"
	if x != h.x {
		name = fmt.Sprintf("ema-%g", gamma)
	}
	return filepath.Join(dir, name+".safetensors")
}
