// Package hook is the contract between a training run and its hooks: the interfaces that a hook implements, the [State]
// that the run calls it with, and the records of metrics.jsonl.
package hook

import (
	"context"
	"encoding/json"
)

// Hook takes part in a run through the interfaces below that it implements. Its errors end the run; they carry its
// name.
//
// The context of its methods is that of Train; it ends when the run is to stop. A hook passes them on to the methods of
// [State]. With several ranks it returns no error of its own because one has ended, since the other ranks may still
// wait for it: the run stops on all ranks at once.
type Hook interface {
	Name() string
}

// StepHook is called after each step of the optimiser. When one fails, the others are still called.
type StepHook interface {
	Hook
	AfterStep(ctx context.Context, s *State) error
}

// AsyncHook is a StepHook that may need the record of a step alone. On a device that computes asynchronously it is then
// called while the next step is under way, when the network's vectors are no longer those of the step. Other StepHooks
// make the run wait for each step.
type AsyncHook interface {
	StepHook
	// Async reports whether the hook needs the record alone. The run asks before each epoch.
	Async() bool
}

// QueuedHook takes part in steps by operations on the network's vectors alone, which the device does in order: the run
// calls it when it issues the step, with a State that lacks the record, and waits for nothing.
type QueuedHook interface {
	Hook
	AfterIssue(ctx context.Context, s *State) error
}

// EpochHook is called after each epoch, when the iterate has been evaluated: RNA first, then the power average, the
// caller's hooks in their order, then metrics, which write the record. The run drops changes of the record by a hook
// that fails.
type EpochHook interface {
	Hook
	AfterEpoch(ctx context.Context, s *State) error
}

// SavingHook has state that belongs into checkpoints. If a run stops among the hooks of an epoch, the resumed run calls
// the ones that had not finished.
type SavingHook interface {
	Hook
	// Save writes large state as files whose names start with the hook's into dir, and returns the small rest.
	Save(s *State, dir string) (json.RawMessage, error)
	// Load is the inverse.
	Load(s *State, dir string, small json.RawMessage) error
}

// ShardedHook is a SavingHook whose state lies in shards on the ranks. All ranks call Save, and only the one with a
// folder writes.
type ShardedHook interface {
	SavingHook
	// Sharded reports whether this run has shards.
	Sharded() bool
}

// OpeningHook allocates memory once the network is there, before the run begins or a checkpoint is loaded.
type OpeningHook interface {
	Hook
	Open(s *State) error
}

// HoldingHook uses memory of the device, which the run counts when it looks for a batch that fits.
type HoldingHook interface {
	Hook
	// Holds may be called before Open.
	Holds() Holdings
}

// Holdings are the most that a hook holds.
type Holdings struct {
	Weights   int // vectors like the network's weights, with their statistics
	Snapshots int // vectors of State.NewSpace, which may lie in the host's memory
}

// ClosingHook holds something that Run.Close releases.
type ClosingHook interface {
	Hook
	Close() error
}
