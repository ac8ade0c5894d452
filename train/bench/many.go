package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/reduce"
)

// ManyResult is a measurement of ranks that train together, and of one rank that trains alone while the others wait.
type ManyResult struct {
	Model  string  `json:"model"`
	Batch  int     `json:"batch"` // per rank
	Ranks  int     `json:"ranks"`
	Nodes  int     `json:"nodes"`
	Engine string  `json:"engine"`
	Device string  `json:"device"`
	Load   float64 `json:"load,omitempty"`

	// Seconds per step: of rank 0 alone, of all ranks, of all without a sum over them, and of one process on rank 0's host
	// with the threads and batches of all its ranks, 0 if it may not use that many.
	Alone   Spread `json:"alone"`
	All     Spread `json:"all"`
	Apart   Spread `json:"apart"`
	Whole   Spread `json:"whole,omitempty"`
	Threads int    `json:"whole_threads,omitempty"`
	Steps   int    `json:"steps"` // of each way in a round
	Rounds  int    `json:"rounds"`

	Sums    Spread `json:"sums"` // seconds that the sums of a step take by themselves
	Bytes   int    `json:"bytes"`
	Buckets int    `json:"buckets"`
}

// Images returns the images per second of all ranks.
func (r *ManyResult) Images() float64 { return float64(r.Ranks*r.Batch) / r.All.Median }

// Efficiency returns the speed of all ranks relative to R times the speed of one.
func (r *ManyResult) Efficiency() float64 { return r.Alone.Median / r.All.Median }

// OfWhole returns the speed of one host's ranks relative to one process with as many threads.
func (r *ManyResult) OfWhole() float64 { return r.Whole.Median / r.All.Median }

// Hidden returns the share of the sums that overlaps with computation.
func (r *ManyResult) Hidden() float64 {
	return min(max(1-(r.All.Median-r.Apart.Median)/r.Sums.Median, 0), 1)
}

// ManyOptions configure a measurement of ranks.
type ManyOptions struct {
	Options
	Ranks  *ranks.Group
	Rounds int // in each of which every way is measured in turn; default 3
	// Within, if positive, is the approximate duration of the measurement: slow steps and rounds are reduced in number.
	Within time.Duration
	// Whole opens a device with the given number of threads, nil if rank 0 may not use them.
	Whole func(threads int) (device.Device, error)
}

// RunMany measures steps of ranks on noise. All ranks call it with equal options and get the same result.
func RunMany(ctx context.Context, dev device.Device, o ManyOptions) (r *ManyResult, err error) {
	if r, err = runMany(ctx, dev, o); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return r, nil
}

func runMany(ctx context.Context, dev device.Device, o ManyOptions) (r *ManyResult, err error) {
	g := o.Ranks
	if o.Options, err = o.withDefaults(); err != nil {
		return nil, err
	}
	if o.Rounds == 0 {
		o.Rounds = 3
	}
	switch {
	case o.Eval || o.Data != "" || o.Batch == network.AutoBatch:
		return nil, errors.New("ranks are measured in training, with noise and a batch that is a number")
	case o.Rounds < 1:
		return nil, fmt.Errorf("%d rounds: must be at least 1", o.Rounds)
	}
	facts := []ranks.Fact{{Name: "model", Value: o.Model}, {Name: "batch", Value: fmt.Sprint(o.Batch)},
		{Name: "steps", Value: fmt.Sprint(o.Steps, o.Warmup, o.Rounds)},
		{Name: "image size", Value: fmt.Sprint(o.ImageSize)}, {Name: "freeze", Value: fmt.Sprint(o.Freeze)}}
	if err := g.Compare(facts...); err != nil {
		return nil, err
	}
	var own, whole *bench
	defer func() {
		for _, b := range []*bench{own, whole} {
			if b != nil {
				err = errors.Join(err, b.close())
			}
		}
	}()
	if own, err = openNoise(ctx, dev, o.Options); err == nil {
		err = reduce.Takes(dev, own.net.Params)
	}
	if err := g.Together(err); err != nil {
		return nil, err
	}
	r = &ManyResult{Model: o.Model, Batch: o.Batch, Ranks: g.Size(), Nodes: g.Nodes(), Engine: g.Engine(),
		Device: dev.Name(), Bytes: dev.DType().Size() * own.net.Params.Len()}
	buckets := network.Buckets(own.net.Tensors())
	r.Buckets = len(buckets)
	if p, ok := device.As[device.Processor](dev); ok && g.First() && o.Whole != nil && g.Nodes() == 1 {
		big := o.Options
		big.Batch *= g.Size()
		d, err := o.Whole(p.Threads() * g.Size())
		if err != nil {
			return nil, err
		}
		defer d.Close()
		if whole, err = openNoise(ctx, d, big); err != nil {
			return nil, err
		}
		r.Threads = p.Threads() * g.Size()
	}
	reducer := reduce.New(g, dev)
	if o.Within > 0 {
		if err := o.fit(ctx, own, whole, reducer); err != nil {
			return nil, err
		}
	}
	r.Steps, r.Rounds = o.Steps, o.Rounds
	var alone, all, apart, big, sums []float64
	for range o.Rounds {
		for _, w := range []struct {
			b     *bench
			first bool // rank 0 alone
			sum   device.Reducer
			times *[]float64
		}{{own, true, nil, &alone}, {own, false, reducer, &all}, {own, false, nil, &apart}, {whole, true, nil, &big}} {
			if err := g.Barrier(); err != nil {
				return nil, err
			}
			if w.b == nil || w.first && !g.First() {
				continue
			}
			w.b.reducer, w.b.ranks = w.sum, g.Size()
			if err := errors.Join(ctx.Err(), w.b.steps(ctx, o.Warmup)); err != nil {
				return nil, err
			}
			w.b.profile.Forget()
			if err := w.b.steps(ctx, o.Steps); err != nil {
				return nil, err
			}
			*w.times = append(*w.times, w.b.profile.Steps...)
			w.b.profile.Forget()
		}
		for range o.Steps {
			if err := g.Barrier(); err != nil {
				return nil, err
			}
			start := time.Now()
			for _, part := range buckets {
				if err := reducer.Sum(own.net.Grads, part); err != nil {
					return nil, err
				}
			}
			if err := errors.Join(reducer.Wait(), dev.Sync()); err != nil {
				return nil, err
			}
			sums = append(sums, time.Since(start).Seconds())
		}
	}
	if g.First() {
		r.Alone, r.All, r.Apart, r.Sums = spread(alone), spread(all), spread(apart), spread(sums)
		if whole != nil {
			r.Whole = spread(big)
		}
		r.Load = loadAverage()
	}
	return r, g.Share(r)
}

// fit plans the work of each way, times a step of all ranks, and sets the number of measurements by the available time.
func (o *ManyOptions) fit(ctx context.Context, own, whole *bench, reducer device.Reducer) error {
	g := o.Ranks
	own.ranks = g.Size()
	var slowest []float64
	for _, own.reducer = range []device.Reducer{nil, reducer, nil} {
		if err := g.Barrier(); err != nil {
			return err
		}
		from := time.Now()
		if err := own.steps(ctx, 1); err != nil {
			return err
		}
		slowest = []float64{time.Since(from).Seconds()}
		if err := g.Max64(slowest); err != nil {
			return err
		}
		if slowest[0] > o.Within.Seconds()/8 { // no time to measure it
			break
		}
	}
	o.within(slowest[0])
	if whole == nil || slowest[0] > o.Within.Seconds()/8 {
		return nil
	}
	whole.ranks = g.Size()
	return whole.steps(ctx, 1)
}

// within lowers the numbers of rounds and steps to fit the time, given the seconds of a step.
func (o *ManyOptions) within(step float64) {
	const ways = 4
	n := int(min(o.Within.Seconds()/(ways*step), 1e6)) // steps of each way
	o.Rounds = max(min(o.Rounds, n), 1)
	n /= o.Rounds
	o.Warmup = min(o.Warmup, n/4)
	o.Steps = max(min(o.Steps, n-o.Warmup), 1)
}

// openNoise prepares a measurement with a batch of noise.
func openNoise(ctx context.Context, dev device.Device, o Options) (*bench, error) {
	b, err := open(dev, o, &feed{})
	if err != nil {
		return nil, err
	}
	if b.next, _, err = b.in.batches(ctx, Synthetic); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// WriteTable writes r for people.
func (r *ManyResult) WriteTable(w io.Writer) error {
	b := terminal.NewPage(w)
	fmt.Fprintf(b, "%s on %s of %s, batch %d a rank: %s; %s of gradients in %s", r.Model, text.Count(r.Ranks, "rank"),
		text.Count(r.Nodes, "node"), r.Batch, r.Engine,
		gigabytes(int64(r.Bytes)), text.Count(r.Buckets, "bucket"))
	if r.Load > 0 {
		fmt.Fprintf(b, "; load %.1f", r.Load)
	}
	b.WriteString("\n\n")
	rows := [][]string{{"a step of", "ms", "quartiles", "", "images/s"}}
	add := func(what string, s Spread, images int) {
		if s.Median > 0 {
			rows = append(rows, []string{what, text.Number(1e3 * s.Median), text.Number(1e3 * s.Q1), text.Number(1e3 * s.Q3),
				text.Number(float64(images) / s.Median)})
		}
	}
	add("rank 0 alone", r.Alone, r.Batch)
	add("all ranks", r.All, r.Ranks*r.Batch)
	add("all ranks, without sums", r.Apart, r.Ranks*r.Batch)
	if r.Threads > 0 {
		add(fmt.Sprintf("one process, %s, batch %d", text.Count(r.Threads, "thread"), r.Ranks*r.Batch), r.Whole,
			r.Ranks*r.Batch)
	}
	add("the sums by themselves", r.Sums, 0)
	rows[len(rows)-1][4] = ""
	b.Table(rows)
	fmt.Fprintf(b, "\nefficiency against one rank: %s", text.Percent(r.Efficiency()))
	if r.Whole.Median > 0 {
		fmt.Fprintf(b, "; against one process with all threads: %s", text.Percent(r.OfWhole()))
	}
	fmt.Fprintf(b, "; hidden of the sums: %.0f %%\n", 100*r.Hidden())
	fmt.Fprintf(b, "each measured in turn, in %s of %s\n", text.Count(r.Rounds, "round"), text.Count(r.Steps, "step"))
	return b.Flush(w)
}
