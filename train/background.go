package train

import (
	"fmt"

	"onlinerna/train/internal/store"
)

// background is a checkpoint that goes to disk while training goes on: its files are written, for the system to bring there.
type background struct {
	done chan struct{}
	err  error // once that is closed
}

// finish makes a draft a checkpoint behind the back of the training. There is none under way.
func (r *Run) finish(d *store.Draft) {
	b := &background{done: make(chan struct{})}
	r.writing = b
	keep := r.Resolved.CheckpointKeep
	go func() {
		defer close(b.done)
		if _, err := d.Finish(keep, r.showConfig); err != nil {
			b.err = fmt.Errorf("writing the checkpoint: %w", err)
		}
	}()
}

// written waits for the checkpoint that is under way, if there is one, and is its error.
func (r *Run) written() error {
	b := r.writing
	if b == nil {
		return nil
	}
	<-b.done
	r.writing = nil
	return b.err
}

// unwritten says whether the checkpoint that is under way has failed by now. Written is its error.
func (r *Run) unwritten() bool {
	if r.writing == nil {
		return false
	}
	select {
	case <-r.writing.done:
		return r.writing.err != nil
	default:
		return false
	}
}
