package report

import (
	"io"
	"path/filepath"
	"time"

	"onlinerna/internal/canvas"
	"onlinerna/train"
	"onlinerna/train/hook"
)

// Live draws a run in progress: after its first epoch in this process, and then every few seconds.
type Live struct {
	Run  *train.Run
	next time.Time
	lost bool // a figure could not be written, which was logged
}

// replot is the interval between figures.
const replot = 5 * time.Second

// after draws the run up to the finished epoch.
func (l *Live) after(epoch hook.EpochRecord) {
	if time.Now().Before(l.next) || epoch.Epoch == l.Run.Resolved.Epochs { // the end of the run draws the last figure
		return
	}
	l.Draw(append(l.Run.History[:len(l.Run.History):len(l.Run.History)], epoch))
	l.next = time.Now().Add(replot)
}

// Draw draws the figures of epochs. A failure to write them does not end a run.
func (l *Live) Draw(history []hook.EpochRecord) {
	if l.Run.Resolved.Out == "" || l.lost {
		return
	}
	if _, err := DrawRun(l.Run.Resolved.Spec, history); err != nil {
		l.lost = true
		l.Run.Log("the figures of the run: %v", err)
	}
}

// DrawRun writes the figures for which there is data into the folder of a run, c.Out, and returns their names.
func DrawRun(c train.Spec, history []hook.EpochRecord) (names []string, err error) {
	for _, f := range []struct {
		name  string
		there bool
		draw  func(w io.Writer, format string, c train.Spec, history []hook.EpochRecord) error
	}{
		{"plot.svg", Drawable(c, history), Plot},
		{"coefficients.svg", Extrapolated(history), Coefficients},
	} {
		if !f.there {
			continue
		}
		path := filepath.Join(c.Out, f.name)
		if err := canvas.Draw(path, func(w io.Writer, format string) error {
			return f.draw(w, format, c,
				history)
		}); err != nil {
			return names, err
		}
		names = append(names, f.name)
	}
	return names, nil
}
