package train

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"onlinerna/internal/files"
	"onlinerna/train/network"
	"onlinerna/train/profile"
)

// profileName is the file of the trace in the run's folder.
const profileName = "profile.json"

// profileWarmup is the number of this process's steps before the profiled ones, if the run has enough: the first steps
// plan and record programs and touch memory for the first time, and the loader gets ahead.
const profileWarmup = 10

// MaxProfile is the maximum number of profiled steps: a step of a large net takes 0.1 MB of records.
const MaxProfile = 1000

// profiler profiles some steps of a run. A nil profiler does nothing.
type profiler struct {
	*Run
	first, end int // numbers of the first step and of the one after the last
	p          *profile.Profile
	on         bool // the current step is profiled
	begin      time.Time
	plain      []float64 // seconds of the steps before
}

// checkProfile checks Run.Profile.
func (r *Run) checkProfile() error {
	if r.Profile < 0 || r.Profile > MaxProfile {
		return fmt.Errorf("profile of %d steps: 1 to %d", r.Profile, MaxProfile)
	}
	return nil
}

// openProfiler chooses the steps.
func (r *Run) openProfiler() {
	n := r.Profile
	if n == 0 || r.profiler != nil || r.pos.Epoch > r.Resolved.Epochs {
		return
	}
	each := r.Resolved.Accumulate * r.Ranks.Size()
	left := (r.Resolved.Epochs-r.pos.Epoch+1)*r.engine.epochSteps() - (r.pos.Batch+each-1)/each
	first := r.pos.Steps + 1 + min(profileWarmup, max(0, left-n))
	c := &r.Resolved
	about := profile.Description{Model: c.Model, Batch: c.Batch, ImageSize: c.SizeAt(r.pos.Epoch-1, c.ImageSize),
		Accumulate: c.Accumulate,
		Rank:       r.Ranks.Rank(), Ranks: r.Ranks.Size()}
	r.profiler = &profiler{Run: r, first: first, end: first + n, p: profile.New(about, r.Net, r.engine.update.Optimizer)}
}

// under reports whether a step has been profiled and profiling continues.
func (q *profiler) under() bool { return q != nil && q.p != nil && q.p.Steps() > 0 }

// starts marks the start of the wait for a step's first batch.
func (q *profiler) starts(step int, from time.Time) {
	if q == nil || q.p == nil {
		return
	}
	q.begin = from
	if q.on = step >= q.first; q.on {
		q.p.Begin(step, from)
		q.Net.Trace(q.p)
	}
}

// waited records a wait for a batch of the step.
func (q *profiler) waited(from, to time.Time) {
	if q != nil && q.on {
		q.p.Waited(from, to.Sub(from))
	}
}

// alone reports whether a step must finish before the next one begins: it or the next one is profiled.
func (q *profiler) alone(step int) bool { return q != nil && q.p != nil && step >= q.first-1 }

// hook records a hook's call in a step.
func (q *profiler) hook(name string, f func() error) error {
	if q == nil || !q.on {
		return f()
	}
	at := time.Now()
	err := f()
	if err == nil {
		err = q.Device.Sync()
	}
	q.p.Hook(name, at, time.Since(at))
	return err
}

// communicates records communication with the other ranks in a step.
func (q *profiler) communicates(f func() error) error {
	if q == nil || !q.on || q.Ranks.Single() {
		return f()
	}
	at := time.Now()
	err := f()
	q.p.Part(network.Communication, at, time.Since(at))
	return err
}

// between records work between steps, for this program's profile and a profiler of the device.
func (r *Run) between(name string, f func() error) error {
	return r.ranges.In(name, func() error { return r.profiler.between(name, f) })
}

// between records work between steps.
func (q *profiler) between(name string, f func() error) error {
	if !q.under() {
		return f()
	}
	at := time.Now()
	err := f()
	q.p.Between(name, at, time.Since(at))
	return err
}

// ends marks the end of a step, and shows the profile after the last one.
func (q *profiler) ends(step int) {
	if q == nil || q.p == nil {
		return
	}
	now := time.Now()
	if !q.on {
		q.plain = append(q.plain, now.Sub(q.begin).Seconds())
		return
	}
	q.p.End(now)
	q.off()
	if step+1 >= q.end {
		q.show()
	}
}

// off stops profiling of later batches.
func (q *profiler) off() {
	if q != nil && q.on {
		q.on = false
		q.Net.Trace(nil)
	}
}

// show writes the trace and shows the tables of the steps profiled so far.
func (q *profiler) show() {
	if q == nil || q.p == nil {
		return
	}
	p := q.p
	q.p = nil
	if !q.Ranks.First() {
		return
	}
	if p.Steps() == 0 {
		q.log("no profile: the run ended before step %d", q.first)
		return
	}
	if k := len(q.plain); k > 0 {
		last := slices.Sorted(slices.Values(q.plain[max(0, k-5):]))
		p.Plain = last[len(last)/2]
	}
	path := ""
	if q.Resolved.Out != "" {
		path = filepath.Join(q.Resolved.Out, profileName)
		if err := writeTrace(path, p); err != nil {
			q.log("the profile is not written: %v", err) // training continues
			path = ""
		}
	}
	if q.Profiled != nil {
		q.Profiled(p, path)
	}
}

func writeTrace(path string, p *profile.Profile) error {
	f, err := files.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := p.WriteTrace(f); err != nil {
		return err
	}
	return f.Commit()
}
