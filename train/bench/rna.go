package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"time"

	"gonum.org/v1/gonum/mat"

	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/ranks"
)

// RNAOptions configure [RunRNA].
type RNAOptions struct {
	Places []*Place // all others are compared with the first
	NoGPU  string   // reason for the missing GPU, for the report

	Windows []int // N, in ascending order
	Exactly bool  // fail unless the memory suffices for all windows; otherwise those that do not fit are left out
	Repeats int   // minimum of each pass; default 5. Quick passes get more
	Seed    uint64

	// Device opens the device for the forward and backward passes of a network, to compare RNA with; nil for no network.
	// It is closed before RNA runs.
	Device func() (device.Device, error)

	// Free returns the free memory of the device, 0 if unknown; nil for a device in host memory.
	Free func(device.Device) (int64, error)

	// Net configures that network. Batch 0 means 256, as in the paper, or as many as fit. Steps default to 3 after 1.
	Net Options

	// Progress receives the number of finished parts of the work, and the name of the next.
	Progress func(done, total int, next string)
}

// Passes of RNA, by name.
const (
	// FullPass is RNA from scratch: the Gram matrix of all residuals, the coefficients, the combination.
	FullPass = "full"
	// OnlinePass is the cost of adding an iterate to a full window: a check, a copy, a row of the Gram matrix, the
	// coefficients, the combination.
	OnlinePass = "online"
	// HostOnlinePass is an OnlinePass with the weights in host memory and the window elsewhere.
	HostOnlinePass = "online, weights on the host"
)

const (
	// quick is the time below which a pass is repeated, up to many times as often.
	quick = 500 * time.Millisecond
	many  = 10
	// agreement is the tolerance between Gram matrices, relative to their largest entry.
	agreement = 1e-10
)

// RunRNA measures passes of RNA and a forward and backward pass. A failure ends it, and so does ctx between passes.
func RunRNA(ctx context.Context, o RNAOptions) (*RNAResult, error) {
	r, err := runRNA(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return r, nil
}

func runRNA(ctx context.Context, o RNAOptions) (*RNAResult, error) {
	b, err := newRNABench(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Device != nil {
		if err := b.network(); err != nil {
			return nil, err
		}
		debug.FreeOSMemory() // the windows need the memory
	}
	for i, p := range o.Places {
		if err := b.measurePlace(p, &b.result.Places[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	b.result.compare()
	return b.result, nil
}

// rnaBench is an RNA measurement in progress.
type rnaBench struct {
	RNAOptions
	ctx         context.Context
	result      *RNAResult
	windows     map[*Place][]int
	grams       map[int]*mat.SymDense // computed at the first place, by N
	done, total int
}

// resolved fills in defaults and finds mistakes.
func (o RNAOptions) resolved() (RNAOptions, error) {
	if o.Repeats == 0 {
		o.Repeats = 5
	}
	if o.Net.Steps == 0 {
		o.Net.Steps = 3
	}
	if o.Net.Warmup == 0 {
		o.Net.Warmup = 1
	}
	if o.Progress == nil {
		o.Progress = func(int, int, string) {}
	}
	switch {
	case len(o.Places) == 0:
		return o, errors.New("no place for RNA")
	case len(o.Windows) == 0:
		return o, errors.New("no windows")
	case o.Repeats < 0:
		return o, fmt.Errorf("%d repeats: there must be at least 1", o.Repeats)
	}
	for i, n := range o.Windows {
		if n < 1 || n > rna.MaxColumns {
			return o, fmt.Errorf("window of %d residuals: it must be 1 to %d", n, rna.MaxColumns)
		}
		if i > 0 && n <= o.Windows[i-1] {
			return o, fmt.Errorf("windows %v: they must be in ascending order", o.Windows)
		}
	}
	if o.Device != nil {
		net, err := o.Net.withDefaults()
		if err != nil {
			return o, err
		}
		net.Batch = o.Net.Batch
		o.Net = net
	}
	return o, nil
}

// newRNABench finds mistakes in the options, and windows too large for the memory, before anything runs.
func newRNABench(ctx context.Context, o RNAOptions) (*rnaBench, error) {
	o, err := o.resolved()
	if err != nil {
		return nil, err
	}
	b := &rnaBench{RNAOptions: o, ctx: ctx, windows: map[*Place][]int{}, grams: map[int]*mat.SymDense{}}
	if o.Device != nil {
		b.total = o.Net.Warmup + o.Net.Steps
	}
	dim := o.Places[0].Space.Dim()
	b.result = newRNAResult(dim, o)
	for _, p := range o.Places {
		if p.Space.Dim() != dim {
			return nil, fmt.Errorf("%s has vectors of %d elements and %s of %d", p.Name, p.Space.Dim(), o.Places[0].Name, dim)
		}
		fit, left, free, err := p.room(o.Windows)
		if err != nil {
			return nil, err
		}
		if len(left) > 0 && (o.Exactly || len(fit) == 0) {
			return nil, fmt.Errorf("%s: a window of %d residuals takes %d vectors of %s elements, %s, and %s are free, of "+
				"which a tenth is left alone: choose shorter windows or fewer elements",
				p.Name, left[0], left[0]+2, text.Thousands(dim), gigabytes(windowBytes(left[0], dim)), gigabytes(free))
		}
		b.windows[p] = fit
		b.result.Places = append(b.result.Places, RNAPlace{Name: p.Name, Device: p.Device, Threads: p.Threads, LeftOut: left,
			Free: free})
		b.total += (len(b.passes(p)) + 1) * len(fit) // plus one to fill the window
	}
	return b, nil
}

// passes returns those to measure at a place.
func (b *rnaBench) passes(p *Place) []string {
	if p.FromHost == nil {
		return []string{FullPass, OnlinePass}
	}
	return []string{FullPass, OnlinePass, HostOnlinePass}
}

// next begins a part of the work.
func (b *rnaBench) next(what string) error {
	b.Progress(b.done, b.total, what)
	b.done++
	return b.ctx.Err()
}

// network measures the network on its device.
func (b *rnaBench) network() (err error) {
	dev, err := b.Device()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	free := FreeMemory()
	if b.Free != nil {
		if free, err = b.Free(dev); err != nil {
			return err
		}
	}
	batch, why, err := fit(dev, b.Net, free)
	if err != nil {
		return err
	}
	b.Net.Batch, b.result.Net = batch, &NetSpeed{Why: why}
	debug.FreeOSMemory() // frees the plans
	return b.measureNet(dev)
}

// measureNet runs forward and backward passes and SGD steps.
func (b *rnaBench) measureNet(dev device.Device) (err error) {
	net, err := open(dev, b.Net, &feed{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, net.close()) }()
	if net.next, _, err = net.in.batches(b.ctx, Synthetic); err != nil {
		return err
	}
	net.apart = true
	run := func(n int) error {
		for range n {
			if err := b.next(fmt.Sprintf("forward + backward, batch %d", b.Net.Batch)); err != nil {
				return err
			}
			if err := net.steps(b.ctx, 1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := run(b.Net.Warmup); err != nil {
		return err
	}
	net.profile.Forget()
	if err := run(b.Net.Steps); err != nil {
		return err
	}
	b.result.Net.set(net)
	return nil
}

// measurePlace measures windows in turn.
func (b *rnaBench) measurePlace(p *Place, r *RNAPlace) error {
	if err := p.Ranks.Barrier(); err != nil { // others may wait for a place of this process alone
		return err
	}
	speed, err := p.Bandwidth()
	if err != nil {
		return err
	}
	for _, n := range b.windows[p] {
		runtime.GC() // frees the previous window: this one needs its memory
		if err := b.measureWindow(p, n); err != nil {
			return fmt.Errorf("window of %d: %w", n, err)
		}
	}
	// Other load on the machine can only lower it.
	again, err := p.Bandwidth()
	r.Bandwidth = max(speed, again) / 1e9
	return err
}

// measureWindow measures all passes with a window of n residuals.
func (b *rnaBench) measureWindow(p *Place, n int) (err error) {
	w, err := rna.NewWindow(p.Space, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := b.next(fmt.Sprintf("%s, N = %d: filling the window", p.Name, n)); err != nil {
		return err
	}
	k := 0
	another := func(to rna.Sink) error {
		k++
		return iterate(to, k, b.Seed)
	}
	for range n + 1 {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		if err := another(p.Weights); err != nil {
			return err
		}
		if err := w.Push(p.Weights); err != nil {
			return err
		}
	}
	if err := b.check(p, w); err != nil {
		return err
	}
	for _, name := range b.passes(p) {
		if err := b.next(fmt.Sprintf("%s, N = %d: %s", p.Name, n, name)); err != nil {
			return err
		}
		var pass func(t *timing) error
		switch name {
		case FullPass:
			rs := residuals(w)
			pass = func(t *timing) error { return t.full(w, rs, p.Weights) }
		case OnlinePass:
			pass = func(t *timing) error { return t.online(w, p.Weights, another) }
		case HostOnlinePass:
			pass = func(t *timing) error { return t.online(w, p.FromHost, another) }
		}
		times, err := b.repeat(p.Ranks, pass)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.result.Passes = append(b.result.Passes, newRNAPass(p, name, n, times))
	}
	return nil
}

// check compares the Gram matrix updated by the pushes with the one from scratch and with that of the first place:
// wrong results are not measured.
func (b *rnaBench) check(p *Place, w *rna.Window) error {
	grown := w.Gram(0)
	scratch, err := rna.Gram(p.Space, residuals(w))
	if err != nil {
		return err
	}
	if d := distance(scratch, grown); !(d <= agreement) {
		return fmt.Errorf("the Gram matrix from scratch differs from the one that grew by %.2g of the largest entry", d)
	}
	first, ok := b.grams[w.Cap()]
	if !ok {
		b.grams[w.Cap()] = scratch
		return nil
	}
	if d := distance(scratch, first); !(d <= agreement) {
		return fmt.Errorf("the Gram matrix differs from that of %s by %.2g of the largest entry", b.Places[0].Name, d)
	}
	return nil
}

// distance returns the largest difference of two matrices, relative to the largest entry.
func distance(a, b *mat.SymDense) float64 {
	d, most := 0.0, 0.0
	for i := range a.SymmetricDim() {
		for j := range i + 1 {
			d, most = max(d, math.Abs(a.At(i, j)-b.At(i, j))), max(most, math.Abs(b.At(i, j)))
		}
	}
	return d / most
}

// residuals returns those of a window of successive iterates.
func residuals(w *rna.Window) []rna.Residual {
	rs := make([]rna.Residual, w.Len())
	for i := range rs {
		rs[i] = rna.Residual{X: w.Vector(i + 1).(rna.Vector), Y: w.Vector(i).(rna.Vector)}
	}
	return rs
}

// timing is the time of a pass and its parts.
type timing struct{ all, gram, solve, combine time.Duration }

// repeat runs a pass once to warm up, and then as often as the options say; more often if it is quick.
func (b *rnaBench) repeat(g *ranks.Group, pass func(*timing) error) (times []timing, err error) {
	total := time.Duration(0)
	for k := 0; ; k++ {
		more, err := g.Any(len(times) < b.Repeats || total < quick && len(times) < many*b.Repeats)
		if err != nil || !more {
			return times, err
		}
		if err := b.ctx.Err(); err != nil {
			return nil, err
		}
		var t timing
		if err := pass(&t); err != nil {
			return nil, err
		}
		if t.all = t.gram + t.solve + t.combine; k > 0 {
			times, total = append(times, t), total+t.all
		}
	}
}

// full is a pass from scratch.
func (t *timing) full(w *rna.Window, rs []rna.Residual, to rna.Sink) error {
	start := time.Now()
	gram, err := rna.Gram(w.Space(), rs)
	if err != nil {
		return err
	}
	t.gram = time.Since(start)
	start = time.Now()
	res := rna.Factor(gram).Solve(rna.DefaultLambda)
	t.solve = time.Since(start)
	return t.finish(w, res, to)
}

// online is a pass in which the iterate is read from, and the point written to, the same weights, as in training.
func (t *timing) online(w *rna.Window, weights rna.Point, another func(rna.Sink) error) error {
	if err := another(weights); err != nil {
		return err
	}
	start := time.Now()
	if err := w.Push(weights); err != nil {
		return err
	}
	t.gram = time.Since(start)
	start = time.Now()
	res, err := w.Solve(rna.Options{})
	if err != nil {
		return err
	}
	t.solve = time.Since(start)
	return t.finish(w, res, weights)
}

func (t *timing) finish(w *rna.Window, res rna.Result, to rna.Sink) error {
	if err := res.Err(); err != nil {
		return err
	}
	start := time.Now()
	err := w.Combine(to, res.C, rna.DefaultBeta)
	t.combine = time.Since(start)
	return err
}
