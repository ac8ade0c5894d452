package ranks

import (
	"bytes"
	"encoding/gob"
	"errors"
	"slices"
)

// ErrStop stops all ranks at the same place.
var ErrStop = errors.New("a rank is to stop")

// GatherAll concatenates the values of all ranks, sent with encoding/gob.
func GatherAll[T any](g *Group, own []T) (all []T, err error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(own); err != nil {
		return nil, err
	}
	list, err := g.Gather(b.Bytes())
	for _, x := range list {
		var part []T
		err = errors.Join(err, gob.NewDecoder(bytes.NewReader(x)).Decode(&part))
		all = append(all, part...)
	}
	return all, err
}

// meetEvery is the number of batches of each rank between two meetings.
const meetEvery = 16

// Meetings synchronise ranks that each go through their own batches of a set. At a meeting the ranks decide whether to
// stop and send rank 0 their output, which it writes in the order of the batches. A single process holds no meetings.
type Meetings struct {
	g       *Group
	stop    func() bool
	write   func([]byte) error
	batches int // of all ranks between two meetings
	held    int
	all     int // total number of meetings
	given   []given
}

// given is the output of one batch.
type given struct {
	Batch int
	Bytes []byte
}

// NewMeetings makes the meetings for the given number of batches over all ranks. stop reports whether this rank wants
// to stop; write, if not nil, receives the output of the ranks.
func NewMeetings(g *Group, batches int, stop func() bool, write func([]byte) error) *Meetings {
	m := &Meetings{g: g, stop: stop, write: write, batches: meetEvery * g.Size()}
	m.all = (batches + m.batches - 1) / m.batches
	return m
}

// Before is called with the number of each batch in the set, from 0, before Give. It returns ErrStop if any rank wants
// to stop.
func (m *Meetings) Before(batch int) error { return m.until(batch / m.batches) }

// Give queues a batch's output for rank 0.
func (m *Meetings) Give(batch int, b []byte) { m.given = append(m.given, given{batch, b}) }

// Rest holds the remaining meetings after this rank's last batch.
func (m *Meetings) Rest() error { return m.until(m.all) }

// until holds meetings until n have taken place.
func (m *Meetings) until(n int) error {
	for !m.g.Single() && m.held < n {
		if err := m.meet(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Meetings) meet() error {
	m.held++
	stop, err := m.g.Any(m.stop())
	if err != nil {
		return err
	}
	if stop {
		return ErrStop
	}
	list, err := GatherAll(m.g, m.given)
	m.given = m.given[:0]
	if err != nil || m.write == nil {
		return err
	}
	slices.SortFunc(list, func(a, b given) int { return a.Batch - b.Batch })
	for _, x := range list {
		if err := m.write(x.Bytes); err != nil {
			return err
		}
	}
	return nil
}
