package terminal

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"onlinerna/internal/text"
)

// Bar shows progress in the last line of a terminal, and nothing elsewhere. Its methods are safe for concurrent use.
type Bar struct {
	out     io.Writer // nil if nothing is shown
	escapes bool      // the terminal understands them

	mu    sync.Mutex
	what  string
	done  int64
	now   *progressbar.ProgressBar // nil without a bar
	shown time.Time
	width int // of the line that is shown
	stop  chan struct{}
}

// barEvery is the least time between two drawings of a bar.
const barEvery = 100 * time.Millisecond

// The options of a bar that counts steps, or bytes.
var (
	CountSteps = progressbar.OptionShowCount()
	CountBytes = progressbar.OptionShowBytes(true)
)

// NewBar is a bar on w, which shows nothing if that is no terminal or the user wants quiet.
func NewBar(w io.Writer, quiet bool) *Bar {
	if quiet || !Is(w) {
		return &Bar{}
	}
	return &Bar{out: w, escapes: Escapes(w)}
}

// Shown says whether the bar is shown on a terminal.
func (b *Bar) Shown() bool { return b.out != nil }

// Start begins a bar in place of the one before.
func (b *Bar) Start(what string, total int64, count progressbar.Option) {
	b.Finish()
	if b.out == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.what, b.done, b.stop = what, 0, make(chan struct{})
	b.now = progressbar.NewOptions64(max(total, 1), count, progressbar.OptionSetWriter(io.Discard),
		progressbar.OptionSetWidth(12), progressbar.OptionSetPredictTime(true))
	b.draw()
	go b.follow(b.stop)
}

// Bytes begins a bar of bytes, or removes the one before if there are none.
func (b *Bar) Bytes(what string, total int64) {
	if b.Finish(); total > 0 {
		b.Start(what, total, CountBytes)
	}
}

// follow draws the bar anew when the terminal has another size, and each second.
func (b *Bar) follow(stop <-chan struct{}) {
	resized := make(chan os.Signal, 1)
	Resized(resized)
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

// change draws the changes that f makes.
func (b *Bar) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil {
		return
	}
	f()
	if time.Since(b.shown) >= barEvery {
		b.draw()
	}
}

// Set sets the amount of work done.
func (b *Bar) Set(done int64) { b.change(func() { b.done = done }) }

// Add adds to the amount of work done.
func (b *Bar) Add(more int64) { b.change(func() { b.done += more }) }

// Describe changes the bar's description of the work.
func (b *Bar) Describe(what string) { b.change(func() { b.what = what }) }

// Finish removes the bar.
func (b *Bar) Finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil {
		return
	}
	close(b.stop)
	b.now = nil
	io.WriteString(b.out, b.cleared())
	b.width = 0
}

// draw shows the bar. The cursor is left where the line begins: a terminal that becomes narrower then keeps it above
// all rows that the line is broken into, and they are cleared together.
func (b *Bar) draw() {
	b.shown = time.Now()
	line := b.line(Columns(b.out) - 1)
	io.WriteString(b.out, b.cleared()+line+"\r")
	b.width = text.Width(line)
}

// cleared removes the line that is shown.
func (b *Bar) cleared() string {
	if b.escapes {
		return "\r\x1b[J"
	}
	return "\r" + strings.Repeat(" ", b.width) + "\r"
}

// line is the bar in at most the given number of columns. A description that does not fit is shortened.
func (b *Bar) line(columns int) string {
	b.now.Describe(b.what)
	b.now.Set64(b.done)
	line := strings.TrimSpace(b.now.String())
	if over := text.Width(line) - columns; over > 0 {
		b.now.Describe(text.Shorten(max(text.Width(b.what)-over, 1), b.what))
		line = strings.TrimSpace(b.now.String())
	}
	if text.Width(line) > columns {
		line = text.Shorten(columns, line)
	}
	return line
}
