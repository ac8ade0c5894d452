package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bar shows how far work has come, on a terminal alone.
type bar struct {
	out io.Writer // nil where nothing is shown
	now *progressbar.ProgressBar
}

// The options of a bar that counts what is done: steps, or bytes.
var (
	countSteps = progressbar.OptionShowCount()
	countBytes = progressbar.OptionShowBytes(true)
)

// newBar is a bar on w, which shows nothing if that is no terminal or the user wants quiet.
func newBar(w io.Writer, quiet bool) *bar {
	if quiet || !isTerminal(w) {
		return &bar{}
	}
	return &bar{out: w}
}

func isTerminal(w io.Writer) bool {
	f, ok := under(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// start begins a bar in place of the one before.
func (b *bar) start(what string, total int64, count progressbar.Option) {
	b.done()
	if b.out == nil {
		return
	}
	b.now = progressbar.NewOptions64(total, count,
		progressbar.OptionSetWriter(b.out), progressbar.OptionSetWidth(12), progressbar.OptionSetDescription(what),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
}

// set says how much is done.
func (b *bar) set(done int64) {
	if b.now != nil {
		b.now.Set64(done)
	}
}

// add says how much more is done.
func (b *bar) add(more int64) {
	if b.now != nil {
		b.now.Add64(more)
	}
}

// describe changes what the bar says of the work.
func (b *bar) describe(what string) {
	if b.now != nil {
		b.now.Describe(what)
	}
}

// done removes the bar.
func (b *bar) done() {
	if b.now != nil {
		b.now.Clear()
		b.now = nil
	}
}
