package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"onlinerna/internal/files"
	"onlinerna/train/internal/store"
)

// folder manages the run's folder: its lock, its checkpoints, and when the next one is due.
type folder struct {
	*Deps
	c   *Resolved
	pos *position

	reserved string      // created for this run, and still empty
	begun    bool        // it holds this run
	locked   *store.Lock // held by this process
	due      due
	writing  *background // the checkpoint being written, or nil
}

// reserve creates a folder with that name, or with a number appended if another run of this second has it. close
// removes it if it is still empty.
func (f *folder) reserve(name string) (string, error) {
	if !f.Ranks.First() {
		return name, nil // rank 0 chooses
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return "", fmt.Errorf("the run's folder: %w", err)
	}
	for i := 1; ; i++ {
		dir := name
		if i > 1 {
			dir = fmt.Sprintf("%s-%d", name, i)
		}
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			f.reserved = dir
			return dir, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("the run's folder: %w", err)
		}
	}
}

// begin creates the folder and saves a first checkpoint there, which includes config.json.
func (f *folder) begin(save func() error) error {
	out := f.c.Out
	if out == "" {
		return nil
	}
	root := filepath.Join(out, checkpointDir)
	free := func() error {
		for _, name := range []string{configName, metricsName, keptDir, finalName, "best.safetensors",
			"rna.safetensors", "ema.safetensors"} {
			if _, err := os.Lstat(filepath.Join(out, name)); err == nil {
				return holdsRun(out, name)
			}
		}
		if list, err := store.List(root); err != nil || len(list) > 0 {
			return errors.Join(err, holdsRun(out, checkpointDir))
		}
		return nil
	}
	err := f.first(func() error {
		if err := free(); err != nil { // before anything changes
			return err
		}
		if err := files.MkdirAll(root); err != nil {
			return fmt.Errorf("the run's folder %s: %w", out, err)
		}
		return nil
	})
	if err == nil {
		err = f.lock()
	}
	if err == nil {
		err = f.first(free)
	}
	if err != nil {
		return err
	}
	if err = save(); err == nil {
		err = f.Ranks.Together(f.written())
	}
	if err == nil {
		return nil
	}
	if f.Ranks.First() {
		store.Remove(root)
	}
	return fmt.Errorf("the run's folder %s: %w", out, err)
}

func holdsRun(out, name string) error {
	return fmt.Errorf("%s holds a run already (%s): resume it, or choose another folder", out, name)
}

// due determines when to write the next checkpoint.
type due struct {
	saved      time.Time // time of the last one
	at         bool      // the timer has expired: save after the current step
	savedSteps int       // the run's steps at the last one
	savedEpoch int       // the epoch in which the last one goes on
}

// wants reports whether a checkpoint is due by this process's clock. Rank 0 decides.
func (f *folder) wants() bool {
	c := f.c
	return c.Out != "" && c.CheckpointMinutes > 0 && f.Ranks.First() &&
		time.Since(f.due.saved).Minutes() >= c.CheckpointMinutes
}

// atEpochEnd reports whether a checkpoint is due after an epoch, which may be the last one.
func (f *folder) atEpochEnd(epoch int, last bool) (bool, error) {
	c := f.c
	switch {
	case c.Out == "":
		return false, nil
	case last:
		return true, nil
	case c.CheckpointEvery > 0:
		return epoch%c.CheckpointEvery == 0, nil
	case c.CheckpointSteps > 0:
		return f.pos.Steps-f.due.savedSteps >= c.CheckpointSteps, nil
	}
	return f.Ranks.Any(f.wants())
}

// dueAfter reports whether a checkpoint is due after a step within an epoch.
func (f *folder) dueAfter(step int) bool {
	c := f.c
	return c.Out != "" && (f.due.at || c.CheckpointSteps > 0 && step-f.due.savedSteps >= c.CheckpointSteps)
}

// lock takes the run's folder for this process, or for its ranks.
func (f *folder) lock() error {
	return f.first(func() (err error) {
		if f.locked == nil {
			if f.locked, err = store.Acquire(filepath.Join(f.c.Out, checkpointDir)); err != nil {
				return err
			}
			for _, dir := range []string{f.c.Out, filepath.Join(f.c.Out, keptDir)} {
				err = errors.Join(err, files.RemoveLeft(dir))
			}
		}
		return err
	})
}

// showConfig sets the run's config.json to that of a checkpoint.
func (f *folder) showConfig(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, configName))
	if err != nil {
		return err
	}
	path := filepath.Join(f.c.Out, configName)
	if has, err := os.ReadFile(path); err == nil && bytes.Equal(has, b) {
		return nil
	}
	return files.Write(path, b)
}

// tidy renames damaged checkpoints, and restores config.json from the checkpoint to resume.
func (f *folder) tidy(from store.Newest) error {
	return f.first(func() error {
		for _, d := range from.Damaged {
			to, err := d.SetAside()
			if err != nil {
				return err
			}
			f.c.note("%v: the checkpoint is now %s, and the one before it, %s, is taken", d.Err, to, from.Dir)
		}
		path := filepath.Join(f.c.Out, configName)
		has, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		list, _ := store.List(filepath.Join(f.c.Out, checkpointDir))
		if err == nil && !configOf(has, list) {
			if err := os.Rename(path, path+".other"); err != nil {
				return err
			}
			own, _ := os.ReadFile(filepath.Join(from.Dir, configName))
			f.c.note("%s differs from that of the checkpoint (%s): it is now %s.other; what a resumed run is to do "+
				"otherwise, say on the command line",
				path, differ(has, own), configName)
		}
		return f.showConfig(from.Dir)
	})
}

// configOf reports whether text is the config.json of one of the checkpoints: a killed run may have left that of the
// last but one.
func configOf(text []byte, checkpoints []string) bool {
	return slices.ContainsFunc(checkpoints, func(dir string) bool {
		b, err := os.ReadFile(filepath.Join(dir, configName))
		return err == nil && bytes.Equal(b, text)
	})
}

// background is a checkpoint being written during training: its files are written but not yet synced.
type background struct {
	done chan struct{}
	err  error // valid once done is closed
}

// finish turns a draft into a checkpoint in the background. No other may be in progress.
func (f *folder) finish(d *store.Draft) {
	b := &background{done: make(chan struct{})}
	f.writing = b
	keep := f.c.CheckpointKeep
	go func() {
		defer close(b.done)
		if _, err := d.Finish(keep, f.showConfig); err != nil {
			b.err = fmt.Errorf("writing the checkpoint: %w", err)
		}
	}()
}

// written waits for the checkpoint in progress, if any, and returns its error.
func (f *folder) written() error {
	b := f.writing
	if b == nil {
		return nil
	}
	<-b.done
	f.writing = nil
	return b.err
}

// unwritten reports whether the checkpoint in progress has failed by now. written returns its error.
func (f *folder) unwritten() bool {
	if f.writing == nil {
		return false
	}
	select {
	case <-f.writing.done:
		return f.writing.err != nil
	default:
		return false
	}
}

// savedState returns the folder of the last checkpoint, "" for none.
func (f *folder) savedState() string {
	if f.c.Out == "" {
		return ""
	}
	if f.writing != nil {
		<-f.writing.done
	}
	dir, _ := Checkpoint(f.c.Out)
	return dir
}

// close waits for the checkpoint in progress, and unlocks the folder.
func (f *folder) close() error {
	err := errors.Join(f.written(), f.locked.Release())
	f.locked = nil
	if f.reserved != "" && os.Remove(f.reserved) == nil { // it is empty
		os.Remove(filepath.Dir(f.reserved))
	}
	return err
}

// awaitEvery is the interval at which Await checks a lock.
const awaitEvery = time.Second

// Await waits until no process writes to the run in a folder, and reports whether it has a checkpoint to resume from. A
// missing folder has none. said, if not nil, is called once with the lock's holder.
func Await(ctx context.Context, dir string, said func(holder error)) (checkpoint bool, err error) {
	root := filepath.Join(dir, checkpointDir)
	for {
		lock, err := store.Acquire(root)
		var held *store.HeldError
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case errors.As(err, &held):
			if said != nil {
				said(held)
				said = nil
			}
			select {
			case <-ctx.Done():
				return false, context.Cause(ctx)
			case <-time.After(awaitEvery):
			}
			continue
		case err != nil:
			return false, err
		}
		list, err := store.List(root)
		return len(list) > 0, errors.Join(err, lock.Release())
	}
}
