package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
)

// bar shows how far work has come in the last line of a terminal, and nothing elsewhere. Its methods are safe for concurrent use.
type bar struct {
	out     io.Writer // nil where nothing is shown
	escapes bool      // the terminal understands them

	mu          sync.Mutex
	what        string
	done, total int64
	count       func(done, total int64) string // nil where there is no bar at present
	began       time.Time
	shown       time.Time
	width       int // of the line that is shown
	stop        chan struct{}
}

// barEvery is the least time between two drawings of a bar.
const barEvery = 100 * time.Millisecond

// What a bar counts: steps, or bytes.
var (
	countSteps = func(done, total int64) string { return fmt.Sprintf("%d/%d", done, total) }
	countBytes = func(done, total int64) string { return text.Bytes(done) + "/" + text.Bytes(total) }
)

// newBar is a bar on w, which shows nothing if that is no terminal or the user wants quiet.
func newBar(w io.Writer, quiet bool) *bar {
	if quiet || !terminal.Is(w) {
		return &bar{}
	}
	return &bar{out: w, escapes: terminal.Escapes(w)}
}

// start begins a bar in place of the one before.
func (b *bar) start(what string, total int64, count func(done, total int64) string) {
	b.finish()
	if b.out == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.what, b.done, b.total, b.count = what, 0, total, count
	b.began, b.stop = time.Now(), make(chan struct{})
	b.draw()
	go b.follow(b.stop)
}

// follow draws the bar anew when the terminal has another size, and each second.
func (b *bar) follow(stop <-chan struct{}) {
	resized := make(chan os.Signal, 1)
	terminal.Resized(resized)
	defer signal.Stop(resized)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-resized:
		case <-tick.C:
		}
		b.change(func() { b.shown = time.Time{} })
	}
}

// change draws what f has changed.
func (b *bar) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == nil {
		return
	}
	f()
	if time.Since(b.shown) >= barEvery {
		b.draw()
	}
}

// set says how much is done.
func (b *bar) set(done int64) { b.change(func() { b.done = done }) }

// add says how much more is done.
func (b *bar) add(more int64) { b.change(func() { b.done += more }) }

// describe changes what the bar says of the work.
func (b *bar) describe(what string) { b.change(func() { b.what = what }) }

// finish removes the bar.
func (b *bar) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == nil {
		return
	}
	close(b.stop)
	b.count = nil
	io.WriteString(b.out, b.cleared())
	b.width = 0
}

// draw shows the bar. The cursor is left where the line begins: a terminal that becomes narrower then keeps it above all rows that the line is broken
// into, and they are cleared together.
func (b *bar) draw() {
	b.shown = time.Now()
	line := b.line(terminal.Columns(b.out) - 1)
	io.WriteString(b.out, b.cleared()+line+"\r")
	b.width = text.Width(line)
}

// cleared removes the line that is shown.
func (b *bar) cleared() string {
	if b.escapes {
		return "\r\x1b[J"
	}
	return "\r" + strings.Repeat(" ", b.width) + "\r"
}

// line is the bar in so many columns at most: without what does not fit.
func (b *bar) line(columns int) string {
	const least, most = 8, 30 // columns of the bar itself
	what, count, times := b.what, "  "+b.count(b.done, b.total), ""
	part := min(1, float64(b.done)/float64(max(b.total, 1)))
	if spent := time.Since(b.began); spent > time.Second {
		times = "  " + clock(spent)
		if part > 0 && part < 1 {
			times += ", " + clock(time.Duration(float64(spent)*(1-part)/part)) + " left"
		}
	}
	percent := fmt.Sprintf("  %3.0f %%", 100*part)
	rest := columns - text.Width(what+percent+count+times)
	if rest < least+2 {
		rest, times = rest+text.Width(times), ""
	}
	if rest < 0 {
		rest, count = rest+text.Width(count), ""
	}
	drawn := ""
	if n := min(rest-2, most); n >= least {
		full := int(part * float64(n))
		drawn = "  " + strings.Repeat("█", full) + strings.Repeat("░", n-full)
	}
	if rest < 0 {
		what = text.Shorten(max(columns-text.Width(percent), 1), what)
	}
	return what + percent + drawn + count + times
}

// clock writes a time as minutes and seconds, from an hour on with the hours.
func clock(t time.Duration) string {
	s := int(t.Seconds() + 0.5)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
