package main

import (
	"io"
	"path/filepath"
	"time"

	"onlinerna/internal/canvas"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/report"
)

// livePlot draws a run while it goes on: after its first epoch here, and from then on now and then.
type livePlot struct {
	run  *train.Run
	next time.Time
	lost bool // a figure could not be written: that was said
}

// replot is the time from one figure to the next.
const replot = 5 * time.Second

// after draws the run with the epoch that is over.
func (l *livePlot) after(epoch hook.EpochRecord) {
	if time.Now().Before(l.next) || epoch.Epoch == l.run.Resolved.Epochs { // the end of the run draws itself
		return
	}
	l.draw(append(l.run.History[:len(l.run.History):len(l.run.History)], epoch))
	l.next = time.Now().Add(replot)
}

// draw draws the figures of epochs. That they cannot be written does not end a run.
func (l *livePlot) draw(history []hook.EpochRecord) {
	if l.run.Resolved.Out == "" || l.lost {
		return
	}
	if _, err := drawRun(l.run.Resolved.Spec, history); err != nil {
		l.lost = true
		l.run.Log("the figures of the run: %v", err)
	}
}

// drawRun writes the figures for which there are numbers into the folder of a run, and returns their names.
func drawRun(c train.Spec, history []hook.EpochRecord) (names []string, err error) {
	for _, f := range []struct {
		name  string
		there bool
		draw  func(w io.Writer, format string, c train.Spec, history []hook.EpochRecord) error
	}{
		{"plot.svg", report.Drawable(c, history), report.Plot},
		{"coefficients.svg", report.Extrapolated(history), report.Coefficients},
	} {
		if !f.there {
			continue
		}
		path := filepath.Join(c.Out, f.name)
		if err := canvas.Draw(path, func(w io.Writer, format string) error { return f.draw(w, format, c, history) }); err != nil {
			return names, err
		}
		names = append(names, f.name)
	}
	return names, nil
}
