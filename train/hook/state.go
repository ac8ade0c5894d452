package hook

import (
	"context"
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/rna"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/shard"
	"onlinerna/train/schedule"
)

// State shows the run to hooks. It is valid only during a call.
//
// RNA and the averages of iterates use only its methods and the vectors of Net. The methods operate on the weights and
// statistics currently in the network: a hook writes a point there, within Temporarily to examine it, or permanently to
// make training continue from it.
type State struct {
	Ranks *ranks.Group // nil for one process
	Net   *network.Network

	// As the run's Spec has them, resolved.
	Epochs    int    // epochs of the run
	Ends      bool   // the run ends with this epoch unless it has better weights than all before
	Optimizer string // its name in the usual spelling, such as AdamW
	Schedule  schedule.Schedule
	Threads   int // for computations on the host

	Epoch   int // current or just ended, counted from 1
	Batch   int // batches of this epoch so far
	Batches int // batches per epoch
	Steps   int // optimiser steps since the start of the run

	StepBatches int // batches per optimiser step; the last one of an epoch may have fewer

	Step   *StepRecord  // record of the last step
	Record *EpochRecord // record of the epoch, during AfterEpoch

	Seconds *Seconds // of the epoch so far; a hook adds its own

	Share network.Share // that a ShardedHook writes during Save

	run Run
}

// Run implements [State]'s methods of the same names, which are documented there.
type Run interface {
	Temporarily(fn func() error) error
	Iterate() (device.Vector, error)
	Recalibrate(ctx context.Context) error
	Statistics() ([]float64, error)
	Evaluate(ctx context.Context) (*network.Score, error)
	EvaluateHeld(ctx context.Context) (*network.Score, error)
	HeldLosses(ctx context.Context) ([]float64, error)
	Scores() bool
	// Judge takes a ScoreRecord with the kind of the weights, without their score.
	Judge(ctx context.Context, rec *EpochRecord, of ScoreRecord, val *network.Score) error
	// Keep takes a ScoreRecord with the kind of the weights, without their score.
	Keep(name string, of ScoreRecord) error
	// Gradient takes the record of its step.
	Gradient(step *StepRecord) (grad device.Vector, scale float64, err error)
	ResetMomentum() error
}

// New returns the State of a run, for its loop to pass to hooks.
func New(s State, r Run) *State {
	s.run = r
	return &s
}

// Warming reports whether the learning rate is warming up: the epoch's rate or, in a schedule by step, that of the step
// issued last.
func (s *State) Warming() bool {
	each := (s.Batches + s.StepBatches - 1) / s.StepBatches
	return s.Schedule.Warming(max(s.Steps-1, 0), each)
}

// LastEpoch reports whether the run ends with this epoch, or may do so: then the last epoch comes again.
func (s *State) LastEpoch() bool { return s.Epoch == s.Epochs || s.Ends }

// Temporarily runs fn, which may change the network's weights and statistics, and restores them.
func (s *State) Temporarily(fn func() error) error { return s.run.Temporarily(fn) }

// Iterate returns the current iterate, read-only: the network's parameters, also after an epoch, or a copy of the
// separate average while an averaging optimiser trains. It is valid until the next step.
func (s *State) Iterate() (device.Vector, error) { return s.run.Iterate() }

// Recalibrate replaces the BatchNorm statistics by their mean over training batches, the same batches at each call in
// an epoch.
func (s *State) Recalibrate(ctx context.Context) error { return s.run.Recalibrate(ctx) }

// Statistics reads the running statistics, averaged over the ranks. It returns nil for a network without BatchNorm.
func (s *State) Statistics() ([]float64, error) { return s.run.Statistics() }

// Evaluate scores the network's weights on the validation images. It returns nil if there are none.
func (s *State) Evaluate(ctx context.Context) (*network.Score, error) { return s.run.Evaluate(ctx) }

// EvaluateHeld scores the network's weights on the held-out images. It returns nil if there are none.
func (s *State) EvaluateHeld(ctx context.Context) (*network.Score, error) {
	return s.run.EvaluateHeld(ctx)
}

// HeldLosses returns the losses of the network's weights on the held-out images, one per image in a fixed order; nil if
// there are none.
func (s *State) HeldLosses(ctx context.Context) ([]float64, error) { return s.run.HeldLosses(ctx) }

// Scores reports whether there are validation or held-out images.
func (s *State) Scores() bool { return s.run.Scores() }

// Judge scores the network's weights on the held-out images, writes the score into the record under their kind, and
// keeps them as best.safetensors if they are the best so far by the run's measure. Without held-out images it takes
// val, the score on the validation images; nil does nothing.
func (s *State) Judge(ctx context.Context, kind network.Kind, val *network.Score) error {
	return s.run.Judge(ctx, s.Record, ScoreRecord{Kind: kind}, val)
}

// JudgeAverage is Judge for the uniform average of the given number of snapshots.
func (s *State) JudgeAverage(ctx context.Context, snapshots int, val *network.Score) error {
	return s.run.Judge(ctx, s.Record, ScoreRecord{Kind: network.Average, Snapshots: snapshots}, val)
}

// Keep writes the network's weights to name.safetensors in the run's folder, if it has one. The kind is for the file's
// [network.Meta].
func (s *State) Keep(name string, kind network.Kind) error {
	return s.run.Keep(name, ScoreRecord{Kind: kind})
}

// KeepAverage is Keep for the uniform average of the given number of snapshots.
func (s *State) KeepAverage(snapshots int) error {
	return s.run.Keep(fmt.Sprintf("average-%d", snapshots), ScoreRecord{Kind: network.Average, Snapshots: snapshots})
}

// KeepEMA is Keep for the power average with exponent γ, among the weights that Spec.KeepEvery keeps.
func (s *State) KeepEMA(gamma float64) error {
	return s.run.Keep(EMAFile(s.Epoch, gamma), ScoreRecord{Kind: network.EMA, Gamma: gamma})
}

// EMAFile is the name of a kept power average in the run's folder, without its extension.
func EMAFile(epoch int, gamma float64) string {
	return fmt.Sprintf("kept/epoch-%04d-ema-%g", epoch, gamma)
}

// Gradient returns the gradient of the step that AfterStep is called for: scale times grad. grad is nil if the device
// skipped the step. A hook that calls it must not be asynchronous.
func (s *State) Gradient() (grad device.Vector, scale float64, err error) {
	return s.run.Gradient(s.Step)
}

// ResetMomentum resets the optimiser's state.
func (s *State) ResetMomentum() error { return s.run.ResetMomentum() }

// Spacer is a [device.Device] that keeps RNA's snapshots in its own memory.
type Spacer interface {
	// NewSpace returns a space of vectors of dim elements.
	NewSpace(dim int) (rna.Space, error)
	// SpaceBytes returns the memory of such a space with the given number of vectors.
	SpaceBytes(dim, vectors int) int64
}

// NewSpace returns a space of weight snapshots in the device's element type and order: in its memory if possible, else
// in the host's. Each of several ranks keeps a part of every snapshot; all ranks must make the same calls.
func (s *State) NewSpace() (rna.Space, error) {
	d := s.Net.Device
	return shard.New(s.Ranks, s.Net.Params.Len(), 8*d.DType().Size(), func(dim int) (rna.Space, error) {
		return NewSpace(d, dim, s.Threads)
	}, gather(d))
}

// gather returns the function that assembles a vector on all devices of a group of ranks; nil for a single device.
func gather(d device.Device) shard.Gather {
	c, ok := device.As[device.Collective](d)
	if !ok || c.Ranks() == nil {
		return nil
	}
	return func(dst rna.Sink, part int) (bool, error) {
		v, ok := dst.(device.Vector)
		if !ok {
			return false, nil
		}
		return true, c.Ranks().Gather(v, part)
	}
}

// NewSpace returns a space for snapshots of dim elements: in the memory of a [Spacer], else in the host's, using the
// given number of threads.
func NewSpace(d device.Device, dim, threads int) (rna.Space, error) {
	if d, ok := device.As[Spacer](d); ok {
		return d.NewSpace(dim)
	}
	if d.DType() == op.Float64 {
		return rna.NewHost64(dim, threads)
	}
	return rna.NewHost32(dim, threads)
}
