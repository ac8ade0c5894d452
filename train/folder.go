package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"onlinerna/internal/files"
	"onlinerna/train/internal/store"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// folder manages the run's folder: its lock, its checkpoints, and when the next one is due.
type folder struct {
	*Deps
	c   *Resolved
	pos *position

	reserved string      // created for this run, and still empty
	begun    bool        // it holds this run
	locked   *store.Lock // held by this process
	writers  int         // ranks that write checkpoints: all, or rank 0 alone
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
		err = f.written()
	}
	if err == nil {
		return nil
	}
	if f.Ranks.First() {
		files.Remove(filepath.Join(out, configName)) // first: without it the folder is free once the checkpoints are gone
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
	root := filepath.Join(f.c.Out, checkpointDir)
	err := f.first(func() (err error) {
		if f.locked == nil {
			f.locked, err = store.Acquire(root)
		}
		return err
	})
	if err == nil {
		err = f.chooseWriters(root)
	}
	if err != nil {
		return err
	}
	return f.first(func() (err error) { // also files that the search for writers may have left
		for _, dir := range []string{f.c.Out, filepath.Join(f.c.Out, keptDir), root} {
			err = errors.Join(err, files.RemoveLeft(dir, written))
		}
		return err
	})
}

// written are the names that only the process with the lock writes. The run's folder may be a user's, with other files.
var written = regexp.MustCompile(`^((config|failure|stopped|profile|\.lock)\.json|(metrics|sessions)\.jsonl|probe|` +
	`(final|best|rna|ema|average-[0-9]+|epoch-[0-9]+(-ema-.+)?)\.safetensors)$`)

// chooseWriters makes all ranks write checkpoints if all can write to the run's folder, else rank 0 alone.
func (f *folder) chooseWriters(root string) error {
	f.writers = 1
	if f.Ranks.Single() {
		return nil
	}
	holder := store.HolderOf(root)
	first := holder
	if err := f.Ranks.Share(&first); err != nil {
		return err
	}
	err := files.Writable(root)
	if err == nil && !holder.Is(first) {
		err = fmt.Errorf("%s is another folder than that of rank 0", root)
	}
	apart, e := f.Ranks.Any(err != nil)
	if e != nil {
		return e
	}
	if !apart {
		f.writers = f.Ranks.Size()
	} else if err := f.Ranks.Together(err); f.Ranks.First() {
		f.log("rank 0 alone writes checkpoints, since not all ranks can: %v", err)
	}
	return nil
}

// share is the part of a checkpoint that this rank writes.
func (f *folder) share() network.Share {
	return network.Share{Index: f.Ranks.Rank(), Of: f.writers}
}

// showConfig sets the run's config.json to that of a checkpoint.
func (f *folder) showConfig(dir string) error {
	b, err := files.Read(filepath.Join(dir, configName))
	if err != nil {
		return err
	}
	path := filepath.Join(f.c.Out, configName)
	if has, err := files.Read(path); err == nil && bytes.Equal(has, b) {
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
		has, err := files.Read(path)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		list, _ := store.List(filepath.Join(f.c.Out, checkpointDir))
		if err == nil && !configOf(has, list) {
			if err := os.Rename(path, path+".other"); err != nil {
				return err
			}
			own, _ := files.Read(filepath.Join(from.Dir, configName))
			f.c.note("%s differs from that of the checkpoint (%s): it is now %s.other; give changed options of a "+
				"resumed run on the command line",
				path, differ(has, own), configName)
		}
		return f.showConfig(from.Dir)
	})
}

// configOf reports whether text is the config.json of one of the checkpoints: a killed run may have left that of the
// last but one.
func configOf(text []byte, checkpoints []string) bool {
	return slices.ContainsFunc(checkpoints, func(dir string) bool {
		b, err := files.Read(filepath.Join(dir, configName))
		return err == nil && bytes.Equal(b, text)
	})
}

// background is a checkpoint being written during training: its files are written but not yet synced.
type background struct {
	draft *store.Draft
	part  bool // this rank's share only: seal makes the shares a checkpoint
	done  chan struct{}
	parts []store.Part // valid once done is closed
	err   error        // valid once done is closed
}

// draft begins a checkpoint on all ranks.
func (f *folder) draft(m store.Manifest) (*store.Draft, error) {
	root := filepath.Join(f.c.Out, checkpointDir)
	var d *store.Draft
	err := f.first(func() (err error) {
		d, err = store.Begin(root, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	var name string
	if f.Ranks.First() {
		name = d.Name()
	}
	if err := f.Ranks.Share(&name); err != nil {
		return nil, err
	}
	if d == nil {
		d = store.Join(root, name)
	}
	return d, nil
}

// start runs the rest of a checkpoint in the background.
func (f *folder) start(b *background, work func() error) {
	b.done = make(chan struct{})
	f.writing = b
	go func() {
		defer close(b.done)
		if err := work(); err != nil {
			b.err = fmt.Errorf("writing the checkpoint: %w", err)
		}
	}()
}

// finish turns a draft into a checkpoint in the background, or this rank's share of it into a part. No other may be in
// progress.
func (f *folder) finish(d *store.Draft) {
	switch {
	case f.writers > 1:
		own := f.share()
		b := &background{draft: d, part: true}
		f.start(b, func() (err error) {
			b.parts, err = d.Sync(func(name string) bool { return network.ShareOf(name) == own })
			return err
		})
	case f.Ranks.First():
		f.complete(d, nil)
	}
}

// complete makes a draft a checkpoint in the background.
func (f *folder) complete(d *store.Draft, parts []store.Part) {
	f.start(&background{draft: d}, func() error {
		_, err := d.Finish(parts, f.c.CheckpointKeep, f.showConfig)
		return err
	})
}

// ready reports whether this rank's share is on the disk, and the others' are not known to be.
func (f *folder) ready() bool {
	return f.writing != nil && f.writing.part && f.ended() && f.writing.err == nil
}

// seal completes a checkpoint whose shares are all on the disk. All ranks call it.
func (f *folder) seal() error {
	b := f.writing
	f.writing = nil
	all, err := ranks.GatherAll(f.Ranks, b.parts)
	if err == nil && f.Ranks.First() {
		f.complete(b.draft, all)
	}
	return err
}

// written waits for the checkpoint in progress, if any, and returns its error. All ranks call it.
func (f *folder) written() error {
	if b := f.writing; b != nil && b.part { // on all ranks
		<-b.done
		if err := f.Ranks.Together(b.err); err != nil {
			f.abandon()
			return err
		}
		if err := f.seal(); err != nil {
			return err
		}
	}
	var err error
	if b := f.writing; b != nil {
		<-b.done
		f.writing, err = nil, b.err
	}
	return f.Ranks.Together(err)
}

// abandon gives up a checkpoint whose shares have not been sealed.
func (f *folder) abandon() {
	if f.Ranks.First() {
		f.writing.draft.Abandon()
	}
	f.writing = nil
}

// ended reports whether the work in the background has ended, or failed.
func (f *folder) ended() bool {
	select {
	case <-f.writing.done:
		return true
	default:
		return false
	}
}

// unwritten reports whether the checkpoint in progress has failed by now. written returns its error.
func (f *folder) unwritten() bool { return f.writing != nil && f.ended() && f.writing.err != nil }

// savedState returns the folder of the last checkpoint, "" for none. common tells that all ranks call it.
func (f *folder) savedState(common bool) string {
	if f.c.Out == "" {
		return ""
	}
	if b := f.writing; b != nil && b.part && common {
		f.written() // a failure leaves the checkpoint before
	} else if b != nil {
		<-b.done
	}
	dir, _ := Checkpoint(f.c.Out)
	return dir
}

// close waits for the checkpoint in progress, and unlocks the folder.
func (f *folder) close() error {
	var err error
	if b := f.writing; b != nil {
		<-b.done
		if err = b.err; b.part { // the run failed before all ranks had written
			f.abandon()
		}
		f.writing = nil
	}
	err = errors.Join(err, f.locked.Release())
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
