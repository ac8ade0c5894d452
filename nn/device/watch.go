package device

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// CardState is a card's state. Zero means that the card does not report the figure.
type CardState struct {
	Clock       int      `json:"clock_mhz,omitempty"`
	MemoryClock int      `json:"memory_clock_mhz,omitempty"`
	Power       float64  `json:"watts,omitempty"`
	PowerLimit  float64  `json:"most_watts,omitempty"`
	Temperature int      `json:"celsius,omitempty"`
	Used        int64    `json:"used_bytes,omitempty"`   // by all programs
	Slowed      []string `json:"slowed_by,omitempty"`    // reasons for lowered clocks
	SlowedShare float64  `json:"slowed_share,omitempty"` // of the time
}

// String lists the figures.
func (s *CardState) String() string {
	var parts []string
	add := func(known bool, format string, args ...any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(s.Clock > 0, "%d MHz", s.Clock)
	add(s.Power > 0 && s.PowerLimit > 0, "%.0f of %.0f W", s.Power, s.PowerLimit)
	add(s.Power > 0 && s.PowerLimit == 0, "%.0f W", s.Power)
	add(s.Temperature > 0, "%d °C", s.Temperature)
	add(s.Used > 0, "%.1f GB in use", float64(s.Used)/1e9)
	add(len(s.Slowed) > 0, "slowed by %s in %.0f %% of the time", strings.Join(s.Slowed, ", "), 100*s.SlowedShare)
	return strings.Join(parts, ", ")
}

// Monitored is a Device on a card that reports its state.
type Monitored interface {
	Device
	// CardState may be called at any time by any goroutine.
	CardState() (CardState, error)
}

// A Watch reads the state of a card again and again.
type Watch struct {
	read func() (CardState, error)
	stop chan bool
	done sync.WaitGroup

	mutex sync.Mutex
	seen  []CardState
}

// NewWatch starts to watch a device's card; it returns nil if nothing reports its state. A nil Watch sees nothing.
func NewWatch(d Device, interval time.Duration) *Watch {
	m, ok := As[Monitored](d)
	if !ok {
		return nil
	}
	if _, err := m.CardState(); err != nil {
		return nil
	}
	w := &Watch{read: m.CardState, stop: make(chan bool)}
	w.done.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				w.look()
			}
		}
	})
	return w
}

// mostSeen limits the states that are kept: an hour of seconds.
const mostSeen = 3600

func (w *Watch) look() {
	s, err := w.read()
	if err != nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.seen) == mostSeen {
		w.seen = slices.Delete(w.seen, 0, mostSeen/2)
	}
	w.seen = append(w.seen, s)
}

// Take sums up the states since the last call: means of clocks and power, the highest temperature and use of memory,
// and all reasons for lowered clocks. It returns nil if none could be read.
func (w *Watch) Take() *CardState {
	if w == nil {
		return nil
	}
	w.mutex.Lock()
	seen := w.seen
	w.seen = nil
	w.mutex.Unlock()
	if len(seen) == 0 { // the interval is longer
		s, err := w.read()
		if err != nil {
			return nil
		}
		seen = append(seen, s)
	}
	sum := CardState{PowerLimit: seen[len(seen)-1].PowerLimit}
	slowed := 0
	for _, s := range seen {
		sum.Clock += s.Clock
		sum.MemoryClock += s.MemoryClock
		sum.Power += s.Power
		sum.Temperature = max(sum.Temperature, s.Temperature)
		sum.Used = max(sum.Used, s.Used)
		if len(s.Slowed) > 0 {
			slowed++
		}
		for _, why := range s.Slowed {
			if !slices.Contains(sum.Slowed, why) {
				sum.Slowed = append(sum.Slowed, why)
			}
		}
	}
	n := len(seen)
	sum.Clock, sum.MemoryClock, sum.Power = sum.Clock/n, sum.MemoryClock/n, sum.Power/float64(n)
	sum.SlowedShare = float64(slowed) / float64(n)
	return &sum
}

// Close ends the watch.
func (w *Watch) Close() {
	if w != nil {
		close(w.stop)
		w.done.Wait()
	}
}
