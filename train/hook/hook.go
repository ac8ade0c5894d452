// Package hook is what a training run and those who take part in it share: the interfaces that a hook implements, the [State] that it is
// called with, by whose methods it does what it does, and the records that it writes into. Package train calls hooks and has these names, too.
package hook

import (
	"context"
	"encoding/json"
)

// Hook takes part in a run through the interfaces below that it implements. Its errors end the run; they carry its name.
//
// The contexts of its methods are that of Train: they end when the run is to stop. A hook passes them on to the methods of [State]. With several
// ranks it returns no error of its own because one has ended, since the other ranks may still wait for it: the run stops on all ranks at once.
type Hook interface {
	Name() string
}

// StepHook is called after each step of the optimiser. When one fails, the others are still called.
type StepHook interface {
	Hook
	AfterStep(ctx context.Context, s *State) error
}

// AsyncHook is a StepHook that may need the record of a step alone. On a device that computes asynchronously it is then called while the next step
// is under way, when the network's vectors are no longer those of the step. Other StepHooks make the run wait for each step.
type AsyncHook interface {
	StepHook
	// Async reports whether the hook needs the record alone. The run asks before each epoch.
	Async() bool
}

// QueuedHook takes part in steps by operations on the network's vectors alone, which the device does in order: the run calls it when it issues the
// step, with a State that lacks the record, and waits for nothing.
type QueuedHook interface {
	Hook
	AfterIssue(ctx context.Context, s *State) error
}

// EpochHook is called after each epoch, when the iterate has been evaluated: RNA first, then the power average, the caller's
// hooks in their order, then metrics, which write the record. What a hook that fails wrote into the record is
// dropped.
type EpochHook interface {
	Hook
	AfterEpoch(ctx context.Context, s *State) error
}

// SavingHook has state that belongs into checkpoints. If a run is stopped while the hooks of an epoch are being
// called, those that had not finished are called for that epoch when it is resumed.
type SavingHook interface {
	Hook
	// Save writes large state as files whose names start with the hook's into dir, and returns the small rest.
	Save(s *State, dir string) (json.RawMessage, error)
	// Load is the inverse.
	Load(s *State, dir string, small json.RawMessage) error
}

// ShardedHook is a SavingHook with state that no rank has as a whole: Save is called on all ranks, and only the one that is given a folder writes.
type ShardedHook interface {
	SavingHook
	// Sharded reports whether that is so in this run.
	Sharded() bool
}

// OpeningHook allocates something before the run begins, or is loaded, when the network is there.
type OpeningHook interface {
	Hook
	Open(s *State) error
}

// HoldingHook takes memory of the device.
type HoldingHook interface {
	Hook
	// Holds is known before Open is called.
	Holds() Holdings
}

// Holdings are what a hook holds at most.
type Holdings struct {
	Weights   int // vectors like the network's weights, with their statistics
	Snapshots int // vectors of State.NewSpace, which may lie elsewhere than in the device's memory
}

// ClosingHook holds something that the end of the run releases.
type ClosingHook interface {
	Hook
	Close() error
}
