package train

import (
	"errors"
	"fmt"
)

// A FailedError says where a run failed, and which state of it is kept.
type FailedError struct {
	Epoch, Step int    // in progress, counted from 1; Step is 0 after the last one of the epoch
	Checkpoint  string // the last state that was saved, "" if there is none
	Err         error
}

func (e *FailedError) Error() string {
	where := fmt.Sprintf("epoch %d, step %d", e.Epoch, e.Step)
	if e.Step == 0 {
		where = fmt.Sprintf("after the steps of epoch %d", e.Epoch)
	}
	s := fmt.Sprintf("%s: %v", where, e.Err)
	if oom := outOfMemory(nil); errors.As(e.Err, &oom) && oom.OutOfMemory() {
		s += "; another process may have taken the memory: a smaller batch needs less"
	}
	if e.Checkpoint != "" {
		s += "; the state saved last is in " + e.Checkpoint
	}
	return s
}

func (e *FailedError) Unwrap() error { return e.Err }

// outOfMemory is an error of a device that had too little memory.
type outOfMemory interface {
	error
	OutOfMemory() bool
}

// failed says where the run is. Divergence says so itself.
func (r *Run) failed(err error) error {
	if errors.As(err, new(*DivergedError)) {
		return err
	}
	e := &FailedError{Epoch: r.pos.Epoch, Step: r.pos.Steps + 1, Checkpoint: r.folder.savedState(), Err: err}
	if r.pos.Batch >= r.in.train.Steps() {
		e.Step = 0
	}
	return e
}
