package machine

import (
	"fmt"
	"time"

	"onlinerna/nn/device"
)

// Tracer is told of each group of a run how long it took. The group is the same value in every run and must
// not be changed.
type Tracer func(g *device.Group, took time.Duration)

// Trace has later runs report their groups, in order, to t; nil ends that. A traced run waits for the device after
// each group, so on a device with queues it is slower than others.
func (m *Machine) Trace(t Tracer) { m.tracer = t }

// runTraced runs the bound kernels.
func (m *Machine) runTraced() error {
	if err := m.dev.Sync(); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	start := time.Now()
	for i, k := range m.kernels {
		err := k()
		if err == nil {
			err = m.dev.Sync()
		}
		if err != nil {
			return m.runError(i, err)
		}
		end := time.Now()
		m.tracer(m.plan.tasks[i].group, end.Sub(start))
		start = time.Now() // the tracer's time is nobody's
	}
	return nil
}
