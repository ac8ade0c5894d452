package train

import (
	"errors"
	"fmt"
)

// A FailedError tells where a run failed, and which state of it is saved.
type FailedError struct {
	Epoch, Step int    // current, counted from 1; Step is 0 after the epoch's last step
	Checkpoint  string // the last saved state, "" if there is none
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

// outOfMemory is implemented by errors of a device with too little memory.
type outOfMemory interface {
	error
	OutOfMemory() bool
}

// failed adds the run's position to an error. DivergedError already has it.
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
