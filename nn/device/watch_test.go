package device

import (
	"errors"
	"slices"
	"testing"
	"time"

	"onlinerna/nn/op"
)

// monitored is a device whose card goes through states.
type monitored struct {
	Device
	states chan CardState
	err    error
}

func (m *monitored) CardState() (CardState, error) {
	select {
	case s := <-m.states:
		return s, m.err
	default:
		return CardState{}, errors.New("no more states")
	}
}

func TestWatch(t *testing.T) {
	m := &monitored{Device: NewReference(op.Float32), states: make(chan CardState, 9)}
	m.states <- CardState{}
	w := NewWatch(m, time.Millisecond)
	m.states <- CardState{Clock: 1000, Power: 100, PowerLimit: 700, Temperature: 60, Used: 5}
	m.states <- CardState{Clock: 2000, Power: 300, PowerLimit: 700, Temperature: 50, Used: 7, Slowed: []string{"heat"}}
	m.states <- CardState{Clock: 3000, Power: 200, PowerLimit: 700, Temperature: 40, Used: 6,
		Slowed: []string{"power", "heat"}}
	m.states <- CardState{Clock: 2000, Power: 200, PowerLimit: 700}
	for start := time.Now(); len(m.states) > 0 && time.Since(start) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	w.Close()
	got := w.Take()
	if got.Clock != 2000 || got.Power != 200 || got.PowerLimit != 700 || got.Temperature != 60 || got.Used != 7 ||
		got.SlowedShare != .5 || !slices.Equal(got.Slowed, []string{"heat", "power"}) {
		t.Errorf("%+v", got)
	}
	if s := got.String(); s != "2000 MHz, 200 of 700 W, 60 °C, 0.0 GB in use, slowed by heat, power in 50 % of the time" {
		t.Error(s)
	}
	if w.Take() != nil { // nothing more was read
		t.Error("a state from nowhere")
	}
	m.states <- CardState{Clock: 5} // shorter than the interval
	if s := w.Take(); s == nil || s.Clock != 5 {
		t.Errorf("%+v", s)
	}
	if w := NewWatch(NewReference(op.Float32), time.Second); w != nil || w.Take() != nil {
		t.Error("a device without a card is watched")
	}
	m.states, m.err = make(chan CardState, 1), errors.New("no NVML")
	m.states <- CardState{}
	if NewWatch(m, time.Second) != nil {
		t.Error("a card without a state is watched")
	}
}
