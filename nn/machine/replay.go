package machine

import (
	"fmt"

	"onlinerna/nn/device"
)

// A Replay is a machine's run with what its caller issues behind it. On a [device.Pipeline] the first run warms up, the second is
// recorded, and from then on the recording is run; on other devices each run issues everything. When memory moves, so that the recording
// is of no use any more, the next run records another.
type Replay struct {
	m         *Machine
	then      func() error
	warm      bool
	moved     int // of the arena, when it was recorded
	recording device.Recording
}

// NewReplay makes the replay of m.Run and then. What then issues has to be the same in each run, but for the content of memory; it may be nil.
func (m *Machine) NewReplay(then func() error) *Replay { return &Replay{m: m, then: then} }

// Run issues the work. What is said about [Machine.Run] and Read holds here, too. A machine that is traced runs unrecorded.
func (r *Replay) Run() error {
	m := r.m
	dev, ok := device.As[device.Pipeline](m.dev)
	if !ok || m.tracer != nil {
		return r.issue()
	}
	if err := m.prepare(); err != nil {
		return err
	}
	if r.recording != nil && (r.moved != m.arena.moved || !r.recording.Valid()) {
		r.Free()
	}
	if r.recording == nil {
		if !r.warm {
			r.warm = true
			return r.issue()
		}
		rec, err := dev.Record(r.issue)
		if err != nil {
			return fmt.Errorf("machine: recording %d kernels: %w", len(m.kernels), err)
		}
		if rec == nil {
			return r.issue()
		}
		r.recording, r.moved = rec, m.arena.moved
	}
	if err := r.recording.Run(); err != nil {
		return fmt.Errorf("machine: replay of %d kernels: %w", len(m.kernels), err)
	}
	return nil
}

// Recorded says whether the next run is one of a recording, as far as one can know.
func (r *Replay) Recorded() bool { return r.recording != nil && r.recording.Valid() }

func (r *Replay) issue() error {
	if err := r.m.Run(); err != nil || r.then == nil {
		return err
	}
	return r.then()
}

// Free gives back what the recording takes. A later run makes another.
func (r *Replay) Free() {
	if r.recording != nil {
		r.recording.Free()
		r.recording = nil
	}
}
