// Package hook is what a training run and those who take part in it share: the interfaces that a hook implements, the [State] that it is
// called with, by whose methods it does what it does, and the records that it writes into. Package train calls hooks and has these names, too.
package hook

import "encoding/json"

// Hook takes part in a run. What it does besides having a name is said by the interfaces below. Errors are
// reported with the name of the hook and end the run.
type Hook interface {
	Name() string
}

// StepHook is called after each step of the optimiser. When one fails, the others are still called.
type StepHook interface {
	Hook
	AfterStep(s *State) error
}

// LateHook is a StepHook that may not need more of a step than its record, as Late says before each epoch. On a device that works behind the
// host's back it is called when the next step is under way already, and the network's vectors are no longer those of
// the step. For other StepHooks each step is waited for.
type LateHook interface {
	StepHook
	Late() bool
}

// QueuedHook takes part in steps by operations on the network's vectors alone, which the device does in their order: it is called when the step is
// issued, with a State that lacks the record. No step is waited for on its account.
type QueuedHook interface {
	Hook
	AfterIssue(s *State) error
}

// EpochHook is called after each epoch, when the iterate has been evaluated: RNA first, then the power average, the caller's
// hooks in their order, then metrics, which write the record. What a hook that fails wrote into the record is
// dropped.
type EpochHook interface {
	Hook
	AfterEpoch(s *State) error
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

// DividedHook is a SavingHook with state that no rank has as a whole: Save is called on all ranks, and only the one that is given a folder writes.
type DividedHook interface {
	SavingHook
	// Divided says whether that is so in this run.
	Divided() bool
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
