package machine

import (
	"fmt"
	"time"

	"onlinerna/nn/device"
)

// Tracer is called for each group of a run with its start and duration, once for each portion of the samples. The group
// is the same value in every run and must not be changed.
type Tracer func(g *device.Group, at time.Time, took time.Duration)

// Trace has later runs report their groups, in order, to t; nil ends that. A device with a clock times the groups
// itself while its queue goes on; any other is waited for after each group.
func (m *Machine) Trace(t Tracer) { m.tracer = t }

// runTraced runs the bound kernels.
func (m *Machine) runTraced() error {
	if c, ok := device.As[device.Clock](m.dev); ok {
		return m.runTimed(c)
	}
	if err := m.dev.Sync(); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	start := time.Now()
	for _, c := range m.calls {
		err := c.kernel()
		if err == nil {
			err = m.dev.Sync()
		}
		if err != nil {
			return m.runError(c.task, err)
		}
		end := time.Now()
		m.tracer(m.plan.tasks[c.task].group, start, end.Sub(start))
		start = time.Now() // excludes the tracer's own time
	}
	return nil
}

// runTimed runs the bound kernels by the device's clock. They end when the last mark has passed.
func (m *Machine) runTimed(c device.Clock) error {
	if err := c.Mark(0); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	for i, k := range m.calls {
		err := k.kernel()
		if err == nil {
			err = c.Mark(i + 1)
		}
		if err != nil {
			return m.runError(k.task, err)
		}
	}
	times := make([]time.Duration, len(m.calls))
	all := time.Duration(0)
	for i, k := range m.calls {
		var err error
		if times[i], err = c.Between(i, i+1); err != nil {
			return m.runError(k.task, err)
		}
		all += times[i]
	}
	at := time.Now().Add(-all)
	for i, took := range times {
		m.tracer(m.plan.tasks[m.calls[i].task].group, at, took)
		at = at.Add(took)
	}
	return nil
}
