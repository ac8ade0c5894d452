package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"

	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/runs"
)

// A Sweep trains the candidates of a plan.
type Sweep struct {
	Dir  string // with the plan, and a folder for each run
	Plan Plan
	Jobs int // runs at a time
	// Shard is the part of the candidates to train, from 1 to Plan.Shards; 0 for all.
	Shard int
	// Open opens a device for a run of the job-th of Jobs workers, from 0. It may set the Spec's device and precision.
	Open func(c *train.Spec, job int) (device.Device, error)
	// Arrived is called, by one goroutine at a time, after a run has arrived at its last epoch for now.
	Arrived func(e Event)
	// Log receives the messages of a run that are not errors.
	Log func(run, message string)
}

// Event is the arrival of a run.
type Event struct {
	Candidate Candidate
	Run       runs.Run
	Known     bool // it had arrived before this process started
}

// Result counts a sweep's candidates and diverged runs.
type Result struct {
	Candidates int
	Stopped    int // candidates that stopped early
	Diverged   int // runs
}

// task is a run to train up to an epoch.
type task struct {
	candidate Candidate
	seed      int // from 0
	epochs    int
	done      chan struct{} // closed after value and err are set
	value     Value
	err       error
}

// Check prepares the runs of all candidates of this shard, so that mistakes show before the first one trains. It
// writes nothing.
func (s *Sweep) Check() error {
	list, err := s.own()
	if err != nil {
		return err
	}
	first := 0
	for _, c := range list {
		epochs, err := s.epochs(c)
		if err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
		if first = cmp.Or(first, epochs); s.Plan.Halving > 0 && epochs != first {
			return fmt.Errorf("%v: halving compares runs of equal length: %s here, %d for %v", c, text.Count(epochs, "epoch"),
				first, list[0])
		}
	}
	return nil
}

// own lists the candidates of this shard.
func (s *Sweep) own() ([]Candidate, error) {
	all, err := s.Plan.Candidates()
	if err != nil || s.Shard == 0 {
		return all, err
	}
	var list []Candidate
	for _, c := range all {
		if (c.Index-1)%s.Plan.Shards == s.Shard-1 {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("shard %d of %d has no candidate: there are %d", s.Shard, s.Plan.Shards, len(all))
	}
	return list, nil
}

// epochs prepares a candidate's run, without training it, and returns its number of epochs.
func (s *Sweep) epochs(c Candidate) (epochs int, err error) {
	spec, err := s.spec(c, 0)
	if err != nil {
		return 0, err
	}
	if spec.TimeBudget > 0 && s.Plan.Halving > 0 {
		return 0, errors.New("halving compares runs of equal length: a time-budget changes the number of epochs")
	}
	dev, err := s.Open(&spec, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = device.Closed(err, dev.Close()) }()
	run, err := train.New(spec, train.Deps{Device: dev})
	if err != nil {
		return 0, err
	}
	if _, val := run.Images(); (s.Plan.Halving > 0 || s.Plan.Search == TPE) && val == 0 && run.Resolved.Holdout == 0 {
		err = errors.New("there are no validation images to compare candidates by: give --val-split or --holdout")
	}
	return run.Resolved.Epochs, errors.Join(err, run.Close())
}

// spec is the Spec of a run.
func (s *Sweep) spec(c Candidate, seed int) (train.Spec, error) {
	spec, err := s.Plan.spec(c.Settings)
	spec.Seed += uint64(seed)
	spec.Out = s.folder(c, seed)
	return spec, err
}

func (s *Sweep) folder(c Candidate, seed int) string {
	name := fmt.Sprintf("%03d", c.Index)
	if s.Plan.Seeds > 1 {
		name += fmt.Sprintf("-seed%d", seed+1)
	}
	return filepath.Join(s.Dir, name)
}

// Run trains the candidates, or goes on with them. If the context ends, runs save their state, and the error wraps
// train.ErrInterrupted. A run that diverges is a result; any other error stops the sweep, which can go on later.
func (s *Sweep) Run(ctx context.Context) (result Result, err error) {
	list, err := s.own()
	if err != nil {
		return result, err
	}
	h := Halving{Rungs: []int{math.MaxInt}, Width: len(list)}
	if s.Plan.Halving > 0 {
		epochs, err := s.epochs(list[0])
		if err != nil {
			return result, err
		}
		h = Halving{Rungs: rungs(epochs, s.Plan.Halving, s.Plan.MinEpochs), Eta: s.Plan.Halving, Width: max(1, s.Plan.Width)}
	}
	if s.Plan.Search == TPE {
		if h.Propose, err = s.proposer(list); err != nil {
			return result, err
		}
		h.Width = max(1, s.Plan.Width)
	}
	p := newPool(ctx, s)
	reached, err := h.Decide(ctx, len(list), func(candidate, epochs int) func() ([]Value, error) {
		var tasks []*task
		for seed := range s.Plan.Seeds {
			tasks = append(tasks, &task{candidate: list[candidate], seed: seed, epochs: epochs, done: make(chan struct{})})
		}
		p.add(tasks...)
		return func() (values []Value, err error) {
			for _, t := range tasks {
				<-t.done
				if t.err != nil {
					return nil, t.err
				}
				values = append(values, t.value)
			}
			return values, nil
		}
	})
	if first := p.close(); first != nil {
		err = first // others were interrupted by it
	}
	result.Candidates, result.Diverged = len(list), p.diverged
	for _, rung := range reached {
		if rung < len(h.Rungs)-1 {
			result.Stopped++
		}
	}
	return result, err
}

// proposer chooses the settings of candidates in list, from the tenth on, when they start.
func (s *Sweep) proposer(list []Candidate) (func(candidate int, last []*arrival), error) {
	space, err := s.Plan.space()
	if err != nil {
		return nil, err
	}
	first, err := s.Plan.spec(nil)
	if err != nil {
		return nil, err
	}
	t := &tpe{space: space, seed: first.Seed}
	for _, c := range list {
		t.drawn = append(t.drawn, c.Settings)
	}
	return func(candidate int, last []*arrival) {
		var earlier []observation
		for i, a := range last {
			o := observation{settings: list[i].Settings}
			if a != nil {
				o.arrived, o.rung, o.value = true, a.rung, mean(a.values)
			}
			earlier = append(earlier, o)
		}
		list[candidate].Settings = t.propose(earlier)
	}, nil
}

// A pool has the goroutines that train.
type pool struct {
	s      *Sweep
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	some     *sync.Cond
	tasks    []*task // waiting
	closed   bool
	failed   error // of the first run that failed
	diverged int
}

func newPool(ctx context.Context, s *Sweep) *pool {
	p := &pool{s: s}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.some = sync.NewCond(&p.mu)
	for job := range max(1, s.Jobs) {
		p.wg.Go(func() { p.work(job) })
	}
	return p
}

func (p *pool) add(tasks ...*task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks = append(p.tasks, tasks...)
	p.some.Broadcast()
}

// close interrupts runs that nobody waits for, and returns the error of the first run that failed.
func (p *pool) close() error {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	p.some.Broadcast()
	p.mu.Unlock()
	p.wg.Wait()
	return p.failed
}

func (p *pool) next() *task {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.tasks) == 0 && !p.closed {
		p.some.Wait()
	}
	if len(p.tasks) == 0 {
		return nil
	}
	t := p.tasks[0]
	p.tasks = p.tasks[1:]
	return t
}

func (p *pool) work(job int) {
	for {
		t := p.next()
		if t == nil {
			return
		}
		var e Event
		if t.err = p.ctx.Err(); t.err != nil {
			t.err = train.ErrInterrupted
		} else {
			e, t.value, t.err = p.s.train(p.ctx, job, t)
		}
		p.mu.Lock()
		switch {
		case t.err == nil:
			if math.IsInf(t.value.Main, 1) {
				p.diverged++
			}
			if p.s.Arrived != nil {
				p.s.Arrived(e)
			}
		case !errors.Is(t.err, train.ErrInterrupted) && p.failed == nil:
			p.failed = t.err
			p.cancel()
		}
		p.mu.Unlock()
		close(t.done)
	}
}

// train trains a run up to an epoch, unless it is there already.
func (s *Sweep) train(ctx context.Context, job int, t *task) (e Event, v Value, err error) {
	dir := s.folder(t.candidate, t.seed)
	e = Event{Candidate: t.candidate}
	e.Run, v, e.Known = s.known(dir, t.epochs)
	if e.Known {
		return e, v, nil
	}
	err = s.toEpoch(ctx, job, t, dir)
	if diverged := (*train.DivergedError)(nil); err != nil && !errors.As(err, &diverged) {
		return e, v, fmt.Errorf("%s: %w", dir, err)
	}
	var ok bool
	if e.Run, v, ok = s.known(dir, t.epochs); !ok {
		return e, v, fmt.Errorf("%s has no record of epoch %d: %w", dir, t.epochs, cmp.Or(err, errors.New("metrics.jsonl is "+
			"not as this program wrote it")))
	}
	return e, v, nil
}

// known reads the value of a run at an epoch, if it has arrived there or has diverged.
func (s *Sweep) known(dir string, epochs int) (r runs.Run, v Value, ok bool) {
	r, err := runs.Read(dir)
	if err != nil {
		return r, v, false
	}
	r.Name = filepath.Base(dir)
	last := epochs >= r.Config.Epochs
	switch {
	case r.State == train.Done || !last && r.Epoch() >= epochs:
		b := r.BestAt(min(epochs, r.Epoch())) // a run ends before its last epoch if its patience does
		if b == nil {                         // nothing to compare: see epochs
			return r, v, true
		}
		v = Value{b.Score.Error(), b.Score.Loss}
		if r.Config.BestBy == hook.ByLoss {
			v = Value{v.Tie, v.Main}
		}
		return r, v, true
	case r.State == train.Failed && r.Failure.Diverged:
		return r, Value{math.Inf(1), math.Inf(1)}, true
	}
	return r, v, false
}

// toEpoch starts or resumes a run, and trains it up to an epoch.
func (s *Sweep) toEpoch(ctx context.Context, job int, t *task, dir string) (err error) {
	spec, err := s.spec(t.candidate, t.seed)
	if err != nil {
		return err
	}
	_, missing := train.Checkpoint(dir)
	if missing == nil {
		if spec, err = train.ReadSpec(dir); err != nil {
			return err
		}
	}
	dev, err := s.Open(&spec, job)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, dev.Close()) }()
	d := train.Deps{Device: dev, Log: func(format string, args ...any) {
		if s.Log != nil {
			s.Log(filepath.Base(dir), fmt.Sprintf(format, args...))
		}
	}}
	var run *train.Run
	if missing != nil {
		run, err = train.New(spec, d)
	} else {
		run, err = train.Resume(dir, d, func(c *train.Spec) { c.Device, c.Precision = spec.Device, spec.Precision })
	}
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, run.Close()) }()
	return run.TrainTo(ctx, t.epochs)
}
