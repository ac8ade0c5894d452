package machine

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/device"
)

// A Replay is a machine's run followed by work that its caller issues. On a [device.Pipeline] the first run warms up,
// the second is recorded, and from then on the recording is run; on other devices each run issues everything. When
// memory moves the recording is invalid, and the next run records another.
type Replay struct {
	m         *Machine
	then      func() error
	marks     []mark
	warm      bool
	moved     int // of the arena, when it was recorded
	recording device.Recording
}

// A Mark is a call in the middle of a run: Do is called as soon as the kernels that make Nodes are issued, before the
// remaining kernels. Work that Do issues is part of the run.
type Mark struct {
	Nodes G.Nodes // kept or bound results; without any, Do is called before the first kernel
	Do    func() error
}

// mark is a Mark with the task after which it comes.
type mark struct {
	task int
	do   func() error
}

// NewReplay makes the replay of m.Run with marks in it, those of one task in their order, followed by then. Marks and
// then must issue the same work in each run, except for the content of memory; then may be nil.
func (m *Machine) NewReplay(then func() error, marks ...Mark) (*Replay, error) {
	r := &Replay{m: m, then: then}
	for _, k := range marks {
		at := -1
		for _, n := range k.Nodes {
			t, err := m.makes(n)
			if err != nil {
				return nil, fmt.Errorf("mark: %w", err)
			}
			at = max(at, t)
		}
		r.marks = append(r.marks, mark{at, k.Do})
	}
	slices.SortStableFunc(r.marks, func(a, b mark) int { return cmp.Compare(a.task, b.task) })
	return r, nil
}

// Makes is the position in a run, from 0, of the kernel that completes a kept or bound result.
func (m *Machine) Makes(n *G.Node) (int, error) {
	t, err := m.makes(n)
	if err != nil {
		return 0, err
	}
	return m.plan.runs(t+1) - 1, nil
}

// makes is the task that makes a kept or bound result.
func (m *Machine) makes(n *G.Node) (int, error) {
	v, ok := m.prog.values[n]
	if !ok || m.prog.sources[v] != computed {
		return 0, fmt.Errorf("machine: %s is not computed", label(n))
	}
	if !slices.Contains(m.prog.Keep, v) {
		return 0, fmt.Errorf("machine: %s is not kept: add it to Config.Keep", m.prog.Values[v].Name)
	}
	for t := range m.plan.tasks {
		if slices.ContainsFunc(m.plan.tasks[t].out, func(out int) bool {
			whole, portion := m.prog.portionOf[out]
			return out == v || portion && whole == v
		}) {
			return t, nil
		}
	}
	return 0, fmt.Errorf("machine: %s is made by no kernel", m.prog.Values[v].Name)
}

// Run issues the work. The rules of [Machine.Run] and Read apply. A traced machine runs unrecorded.
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
			return fmt.Errorf("machine: recording %d kernels: %w", len(m.calls), err)
		}
		if rec == nil {
			return r.issue()
		}
		r.recording, r.moved = rec, m.arena.moved
	}
	if err := r.recording.Run(); err != nil {
		return fmt.Errorf("machine: replay of %d kernels: %w", len(m.calls), err)
	}
	return nil
}

// Recorded reports whether the next run is expected to use a recording.
func (r *Replay) Recorded() bool { return r.recording != nil && r.recording.Valid() }

func (r *Replay) issue() error {
	if err := r.m.run(r.marks); err != nil || r.then == nil {
		return err
	}
	return r.then()
}

// Free releases the recording. A later run makes another.
func (r *Replay) Free() {
	if r.recording != nil {
		r.recording.Free()
		r.recording = nil
	}
}
