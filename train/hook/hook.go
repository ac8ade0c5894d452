// Package hook defines the contract between a training run and its hooks: the interfaces that a hook implements, the
// [State] that it receives from the run, and the records of metrics.jsonl.
package hook

import (
	"context"
	"encoding/json"
)

// Hook takes part in a run through those interfaces below that it implements. Its errors end the run, prefixed with its
// name.
//
// Its methods receive Train's context, which ends when the run must stop. A hook passes the context on to the methods
// of [State]. With several ranks a hook returns no error of its own because the context ended, since the other ranks
// may still wait for it: the run stops on all ranks at once.
type Hook interface {
	Name() string
}

// StepHook is called after each optimiser step. If one fails, the others are still called.
type StepHook interface {
	Hook
	AfterStep(ctx context.Context, s *State) error
}

// AsyncHook is a StepHook that may need only the record of a step. On an asynchronous device it is then called while
// the next step runs, when the network's vectors no longer belong to the recorded step. Other StepHooks make the run
// wait for each step.
type AsyncHook interface {
	StepHook
	// Async reports whether the hook needs only the record. The run asks before each epoch.
	Async() bool
}

// QueuedHook takes part in steps only by operations on the network's vectors, which the device executes in order: the
// run calls it when it issues the step, with a State that lacks the record, and does not wait.
type QueuedHook interface {
	Hook
	AfterIssue(ctx context.Context, s *State) error
}

// EpochHook is called after each epoch, once the iterate has been evaluated: RNA first, then the power average, the
// caller's hooks in their order, then metrics, which write the record. The run discards a failing hook's changes of the
// record.
type EpochHook interface {
	Hook
	AfterEpoch(ctx context.Context, s *State) error
}

// SavingHook has state that checkpoints must store. If a run stops among the hooks of an epoch, the resumed run calls
// those that had not finished.
type SavingHook interface {
	Hook
	// Save writes large state to files in dir whose names start with the hook's, and returns the small rest.
	Save(s *State, dir string) (json.RawMessage, error)
	// Load is the inverse.
	Load(s *State, dir string, small json.RawMessage) error
}

// ShardedHook is a SavingHook that all ranks call: each writes its State.Share of every vector, as
// network.SaveShare does. The result of Save on rank 0 counts.
type ShardedHook interface {
	SavingHook
	Sharded()
}

// OpeningHook allocates memory after the network exists and before the run begins or a checkpoint is loaded.
type OpeningHook interface {
	Hook
	Open(s *State) error
}

// HoldingHook uses device memory, which the run takes into account when it searches for a batch that fits.
type HoldingHook interface {
	Hook
	// Holds may be called before Open.
	Holds() Holdings
}

// Holdings are the maximum memory of a hook.
type Holdings struct {
	Weights   int // vectors like the network's weights, with their statistics
	Snapshots int // vectors of State.NewSpace, which may lie in the host's memory
}

// ClosingHook holds resources that Run.Close releases.
type ClosingHook interface {
	Hook
	Close() error
}
