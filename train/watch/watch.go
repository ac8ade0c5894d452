// Package watch shows a run in progress from its folder: on a terminal as a screen, elsewhere as lines.
package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"onlinerna/internal/files"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/report"
	"onlinerna/train/runs"
)

// View is a run as its folder shows it.
type View struct {
	runs.Run
	Steps    int             // of the epoch in progress
	Step     hook.StepRecord // the last of them
	Losses   []float64       // of all steps
	Sessions []train.Session
	Log      []string // the last messages

	read int64 // bytes of whole lines of metrics.jsonl
}

// maxLosses bounds View.Losses: beyond it every second one is dropped.
const maxLosses = 1 << 16

// Read reads the new records in the folder.
func (v *View) Read(dir string) error {
	r, err := runs.Read(dir)
	if err != nil {
		return err
	}
	v.Run = r
	if v.Sessions, err = train.ReadSessions(dir); err != nil {
		return err
	}
	if v.Log, err = train.ReadLog(dir); err != nil {
		return err
	}
	f, err := files.Open(filepath.Join(dir, "metrics.jsonl"))
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return err
	} else if st.Size() < v.read { // a resumed run repeats steps
		*v = View{Run: v.Run, Sessions: v.Sessions, Log: v.Log}
	}
	if _, err := f.Seek(v.read, io.SeekStart); err != nil {
		return err
	}
	return files.Lines(f, func(line []byte) error {
		if files.Whole(line) {
			v.read += int64(len(line))
			v.add(line)
		}
		return nil
	})
}

// add takes a line of metrics.jsonl.
func (v *View) add(line []byte) {
	var s hook.StepRecord
	if json.Unmarshal(line, &s) != nil {
		return
	}
	switch s.Kind {
	case "epoch":
		v.Steps = 0
	case "step":
		v.Steps, v.Step = v.Steps+1, s
		v.Losses = append(v.Losses, s.Loss)
	}
	if n := len(v.Losses); n > maxLosses {
		for i := range n / 2 {
			v.Losses[i] = v.Losses[2*i]
		}
		v.Losses = v.Losses[:n/2]
	}
}

// every is the time between two looks at the folder.
const every = time.Second

// Lines writes a line for each finished epoch and each message, until the run is no longer running.
func Lines(ctx context.Context, dir string, out io.Writer) error {
	var v View
	epochs, said := 0, 0
	if err := v.Read(dir); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n", dir, v.State)
	for {
		for ; said < len(v.Log); said++ {
			fmt.Fprintln(out, text.Printable(v.Log[said]))
		}
		for ; epochs < len(v.History); epochs++ {
			if _, err := fmt.Fprintln(out, report.EpochLine(&v.Config, &v.History[epochs])); err != nil {
				return err
			}
		}
		if v.State != train.Running {
			_, err := fmt.Fprintln(out, ended(&v))
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
		if err := v.Read(dir); err != nil {
			return err
		}
		epochs, said = min(epochs, len(v.History)), min(said, len(v.Log))
	}
}

// ended tells how a run ended.
func ended(v *View) string {
	s := fmt.Sprintf("%s after %d of %s", v.State, v.Epoch(), text.Count(v.Config.Epochs, "epoch"))
	switch {
	case v.Failure != nil:
		s += ": " + text.Printable(v.Failure.Error)
	case v.State == train.Interrupted:
		s += "; rna train --resume goes on with it"
	}
	return s
}

// Screen shows the run on the terminal out until the user ends it by a key of in: q, Escape or Ctrl-C.
func Screen(ctx context.Context, dir string, in *os.File, out io.Writer) error {
	var v View
	if err := v.Read(dir); err != nil {
		return err
	}
	keys := make(chan byte)
	if fd := int(in.Fd()); term.IsTerminal(fd) {
		old, err := term.MakeRaw(fd)
		if err != nil {
			return err
		}
		defer term.Restore(fd, old)
		go func() {
			b := make([]byte, 1)
			for {
				if n, err := in.Read(b); err != nil || n == 0 {
					return
				}
				select {
				case keys <- b[0]:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	const enter, leave = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
	fmt.Fprint(out, enter)
	defer fmt.Fprint(out, leave)
	resized := make(chan os.Signal, 1)
	terminal.Resized(resized)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var b bytes.Buffer
		b.WriteString("\x1b[H")
		width, height := terminal.Size(out)
		for i, line := range Frame(&v, width, height) {
			if i > 0 {
				b.WriteString("\r\n")
			}
			b.WriteString(line + "\x1b[K")
		}
		b.WriteString("\x1b[J")
		if _, err := out.Write(b.Bytes()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case k := <-keys:
			if k == 'q' || k == 'Q' || k == 3 || k == 27 {
				return nil
			}
		case <-resized:
		case <-tick.C:
			if err := v.Read(dir); err != nil {
				return err
			}
		}
	}
}
