package ranks

import (
	"bytes"
	"encoding/gob"
	"errors"
	"slices"
)

// ErrStop is returned where a rank is to stop, on all of them at the same place.
var ErrStop = errors.New("a rank is to stop")

// GatherAll is what all ranks have, one after the other, as encoding/gob sends it.
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

// meetEvery is how many batches of each rank come between two meetings.
const meetEvery = 16

// Meetings are where ranks that go through the batches of a set, each through its own, say now and then whether to stop, and give rank 0 what it writes, in
// the order of the batches. A single process holds none.
type Meetings struct {
	g       *Group
	stop    func() bool
	write   func([]byte) error
	batches int // of all ranks from one meeting to the next
	held    int
	all     int // meetings that there are to be
	given   []given
}

// given is what a batch gave.
type given struct {
	Batch int
	Bytes []byte
}

// NewMeetings are those of so many batches of all ranks. Stop says whether this rank is to stop; write, if it is not nil, writes what the ranks give.
func NewMeetings(g *Group, batches int, stop func() bool, write func([]byte) error) *Meetings {
	m := &Meetings{g: g, stop: stop, write: write, batches: meetEvery * g.Size()}
	m.all = (batches + m.batches - 1) / m.batches
	return m
}

// Before is called once a batch is there, by its number in the set from 0 on, before what it gives. The error is ErrStop where a rank is to stop.
func (m *Meetings) Before(batch int) error { return m.until(batch / m.batches) }

// Give is what a batch gives rank 0 to write.
func (m *Meetings) Give(batch int, b []byte) { m.given = append(m.given, given{batch, b}) }

// Rest holds the meetings that are left, behind the last batch of this rank.
func (m *Meetings) Rest() error { return m.until(m.all) }

// until holds meetings up to a number of them.
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
