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

// State shows hooks the run. It is valid during a call only.
//
// RNA and the averages of iterates use its methods and the vectors of Net alone. The methods work on the weights and
// statistics that are in the network at the moment: a hook writes a point there, within Temporarily to look at it, or
// for good to have training go on from it.
type State struct {
	Ranks *ranks.Group // nil for one process
	Net   *network.Network

	// As the run's Spec has them, resolved.
	Epochs    int    // of the run
	Optimizer string // its name as it is written, as AdamW
	Schedule  schedule.Schedule
	Threads   int // that compute on the host

	Epoch   int // in progress or just ended, counted from 1
	Batch   int // batches of this epoch so far
	Batches int // batches of an epoch
	Steps   int // of the optimiser since the start of the run

	StepBatches int // batches of a step of the optimiser; the last one of an epoch may have fewer

	Step   *StepRecord  // of the last step
	Record *EpochRecord // of the epoch, during AfterEpoch

	Seconds *Seconds // of the epoch so far; a hook adds its own

	run Run
}

// Run does for [State] the methods of the same names, which are described there.
type Run interface {
	Temporarily(fn func() error) error
	Iterate() (device.Vector, error)
	Recalibrate(ctx context.Context) error
	Statistics() ([]float64, error)
	Evaluate(ctx context.Context) (*network.Score, error)
	EvaluateHeld(ctx context.Context) (*network.Score, error)
	HeldLosses(ctx context.Context) ([]float64, error)
	Scores() bool
	// Judge takes the kind of the weights without their score.
	Judge(ctx context.Context, rec *EpochRecord, of ScoreRecord, val *network.Score) error
	// Keep takes the kind of the weights without their score.
	Keep(name string, of ScoreRecord) error
	// Gradient takes the record of its step.
	Gradient(step *StepRecord) (grad device.Vector, scale float64, err error)
	ResetMomentum() error
}

// New makes s the state of a run, for its loop to hand to hooks.
func New(s State, r Run) *State {
	s.run = r
	return &s
}

// Warming reports whether the learning rate is warming up: that of the epoch or, in a schedule by step, of the step
// issued last.
func (s *State) Warming() bool {
	each := (s.Batches + s.StepBatches - 1) / s.StepBatches
	return s.Schedule.Warming(max(s.Steps-1, 0), each)
}

// LastEpoch reports whether the run ends with this epoch.
func (s *State) LastEpoch() bool { return s.Epoch == s.Epochs }

// Temporarily runs fn, which may change the network's weights and statistics, and restores them.
func (s *State) Temporarily(fn func() error) error { return s.run.Temporarily(fn) }

// Iterate is the present iterate, to read: the network's parameters, also after an epoch, or a copy of the average
// beside them while an averaging optimiser trains. It is valid until the next step.
func (s *State) Iterate() (device.Vector, error) { return s.run.Iterate() }

// Recalibrate replaces the BatchNorm statistics by their mean over training batches, which are the same ones at each
// call in an epoch.
func (s *State) Recalibrate(ctx context.Context) error { return s.run.Recalibrate(ctx) }

// Statistics reads the running statistics, averaged over the ranks. It is nil for a network without BatchNorm.
func (s *State) Statistics() ([]float64, error) { return s.run.Statistics() }

// Evaluate scores the network's weights on the validation images. It is nil if there are none.
func (s *State) Evaluate(ctx context.Context) (*network.Score, error) { return s.run.Evaluate(ctx) }

// EvaluateHeld scores the network's weights on the held-out images. It is nil if there are none.
func (s *State) EvaluateHeld(ctx context.Context) (*network.Score, error) {
	return s.run.EvaluateHeld(ctx)
}

// HeldLosses are the losses of the network's weights on the held-out images, one each, in an order that stays the same;
// nil if there are none.
func (s *State) HeldLosses(ctx context.Context) ([]float64, error) { return s.run.HeldLosses(ctx) }

// Scores reports whether there are validation or held-out images.
func (s *State) Scores() bool { return s.run.Scores() }

// Judge scores the network's weights on the held-out images, writes the score into the record under their kind, and
// keeps them as best.safetensors if none were better so far by the measure of the run. Without held-out images it takes
// val, the score on the validation images; nil does nothing.
func (s *State) Judge(ctx context.Context, kind network.Kind, val *network.Score) error {
	return s.run.Judge(ctx, s.Record, ScoreRecord{Kind: kind}, val)
}

// JudgeAverage is Judge for the uniform average of so many snapshots.
func (s *State) JudgeAverage(ctx context.Context, snapshots int, val *network.Score) error {
	return s.run.Judge(ctx, s.Record, ScoreRecord{Kind: network.Average, Snapshots: snapshots}, val)
}

// Keep writes the network's weights to name.safetensors in the run's folder, if it has one. The kind is for the file's
// [network.Meta].
func (s *State) Keep(name string, kind network.Kind) error {
	return s.run.Keep(name, ScoreRecord{Kind: kind})
}

// KeepAverage is Keep for the uniform average of so many snapshots.
func (s *State) KeepAverage(snapshots int) error {
	return s.run.Keep(fmt.Sprintf("average-%d", snapshots), ScoreRecord{Kind: network.Average, Snapshots: snapshots})
}

// Gradient is the gradient of the step that AfterStep is called for: scale times grad. grad is nil if the device
// skipped the step. A hook that calls it must not be asynchronous.
func (s *State) Gradient() (grad device.Vector, scale float64, err error) {
	return s.run.Gradient(s.Step)
}

// ResetMomentum has the optimiser forget the steps so far.
func (s *State) ResetMomentum() error { return s.run.ResetMomentum() }

// Spacer is a [device.Device] that keeps RNA's snapshots in its own memory.
type Spacer interface {
	// NewSpace makes a space of vectors of dim elements.
	NewSpace(dim int) (rna.Space, error)
	// SpaceBytes is the memory of such a space with so many vectors.
	SpaceBytes(dim, vectors int) int64
}

// NewSpace makes a space of snapshots of the weights, in the element type and the order of the device: in its memory,
// or else in the host's. Each of several ranks keeps a part of every snapshot; they make the same calls.
func (s *State) NewSpace() (rna.Space, error) {
	d := s.Net.Device
	return shard.New(s.Ranks, s.Net.Params.Len(), 8*d.DType().Size(), func(dim int) (rna.Space, error) {
		return NewSpace(d, dim, s.Threads)
	}, gather(d))
}

// gather is how vectors of a device that is one of several ranks' are put together; nil for one that goes alone.
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

// NewSpace makes a space for snapshots of dim elements: in the memory of a [Spacer], else in the host's, with so many
// threads.
func NewSpace(d device.Device, dim, threads int) (rna.Space, error) {
	if d, ok := device.As[Spacer](d); ok {
		return d.NewSpace(dim)
	}
	if d.DType() == op.Float64 {
		return rna.NewHost64(dim, threads)
	}
	return rna.NewHost32(dim, threads)
}
