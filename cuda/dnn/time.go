//go:build gpu && cgo

package dnn

import (
	"errors"
	"time"

	"onlinerna/cuda/driver"
)

// rounds is the number of timed runs.
const rounds = 3

// hopeless is the time of a warm-up run from which on it is compared with the best: shorter ones may be the loading of
// kernels.
const hopeless = 20 * time.Millisecond

// Time is the shortest of a few runs of launch's work on the stream, after a warm-up run. If that takes several times
// as long as best, unless best is 0, it is the only one.
func (d *Handle) Time(launch func() error, best time.Duration) (least time.Duration, err error) {
	var events [rounds + 1]*driver.Event
	defer func() {
		for _, e := range events {
			if e != nil {
				err = errors.Join(err, e.Close())
			}
		}
	}()
	for i := range events {
		if events[i], err = d.c.NewEvent(true); err != nil {
			return 0, err
		}
	}
	if err := d.s.Synchronize(); err != nil {
		return 0, err
	}
	start := time.Now()
	for i := range events {
		if err := launch(); err != nil {
			return 0, err
		}
		if err := events[i].Record(d.s); err != nil {
			return 0, err
		}
		if i > 0 || best == 0 {
			continue
		}
		if err := events[0].Synchronize(); err != nil {
			return 0, err
		}
		if took := time.Since(start); took > max(hopeless, 4*best) {
			return took, nil
		}
	}
	if err := events[rounds].Synchronize(); err != nil {
		return 0, err
	}
	for i := range rounds {
		took, err := events[i+1].Since(events[i])
		if err != nil {
			return 0, err
		}
		if least == 0 || took < least {
			least = max(took, 1)
		}
	}
	return least, nil
}

// noise moves operands, of 16 bits where narrow is set, to memory of their own with random numbers about as large as a
// net's: an unused arena holds zeros, which a card multiplies faster. Without memory for that the operands stay as they
// are. The returned function frees the memory.
func (d *Handle) noise(operands []driver.Span, narrow []bool) (end func(), err error) {
	var held []*driver.Memory
	end = func() {
		for _, m := range held {
			_ = m.Close() // to the pool: a failure shows at the next call
		}
	}
	for i := range operands {
		m, err := d.c.AllocApart(operands[i].Bytes())
		if errors.Is(err, driver.ErrOutOfMemory) {
			continue
		}
		if err == nil {
			held = append(held, m)
			err = d.s.FillNoise(m.All(), narrow[i])
		}
		if err != nil {
			end()
			return nil, err
		}
		operands[i] = m.All()
	}
	return end, nil
}
