package train

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"

	"onlinerna/data"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// Common says whether all ranks return an error, each its own value of it. After any other the ranks have to be aborted: they may wait for this one.
func Common(err error) bool {
	return ranks.Common(err) || errors.Is(err, ErrInterrupted) || errors.As(err, new(*DivergedError))
}

// first has rank 0 do something, with the error on all ranks.
func (r *Run) first(f func() error) error {
	g := r.Ranks
	var err error
	if g.First() {
		err = f()
	}
	return g.Together(err)
}

// stopped says whether the context of any rank has ended.
func (r *Run) stopped(ctx context.Context) (bool, error) { return r.Ranks.Any(ctx.Err() != nil) }

// pulse has ranks that evaluate their batches ask each other now and then whether to stop: as often on all, whatever the number of their batches.
type pulse struct {
	*Run
	stop                func() bool // this rank is to
	batches, beats, all int
}

// pulseEvery is how many batches are evaluated from one question to the next.
const pulseEvery = 16

func (r *Run) newPulse(ctx context.Context, l *data.Loader) *pulse {
	most := (l.Steps() + r.Ranks.Size() - 1) / r.Ranks.Size() // of a rank
	return &pulse{Run: r, stop: func() bool { return ctx.Err() != nil }, all: (most + pulseEvery - 1) / pulseEvery}
}

// before is called before each batch. It is errStop where a rank is to stop.
func (p *pulse) before() error {
	p.batches++
	if p.Ranks.Single() || p.batches%pulseEvery != 1 {
		return nil
	}
	return p.beat()
}

// rest makes up for the batches that others have more.
func (p *pulse) rest() error {
	for !p.Ranks.Single() && p.beats < p.all {
		if err := p.beat(); err != nil {
			return err
		}
	}
	return nil
}

func (p *pulse) beat() error {
	p.beats++
	stop, err := p.Ranks.Any(p.stop())
	if err == nil && stop {
		err = errStop
	}
	return err
}

// sumTally adds up the results of ranks.
func sumTally(g *ranks.Group, t network.Tally) (network.Tally, error) {
	if g.Single() {
		return t, nil
	}
	x := []float64{t.Loss, t.Top1, t.Top5, float64(t.Images)}
	err := g.Sum64(x).Wait()
	return network.Tally{Loss: x[0], Top1: x[1], Top5: x[2], Images: int(x[3])}, err
}

// sumRight is the outcomes of all ranks, each of which has those of its own images.
func sumRight(g *ranks.Group, right []bool) (network.Outcomes, error) {
	if !g.Single() {
		x := make([]float64, len(right))
		for i, r := range right {
			if r {
				x[i] = 1
			}
		}
		if err := g.Sum64(x).Wait(); err != nil {
			return "", err
		}
		for i, v := range x {
			right[i] = v > 0
		}
	}
	return network.NewOutcomes(right), nil
}

// total makes what a rank knows of a step that of all: the sum of the losses over images, the tally, the unreadable images, and whether one is to
// stop, to write a checkpoint, or has lost one.
func (f *flow) total(ctx context.Context, bad int) (allBad int, stop bool, err error) {
	g := f.Ranks
	stop = ctx.Err() != nil
	if g.Single() {
		f.due.at, f.lost = f.due.at || f.wants(), f.unwritten()
		return bad, stop, nil
	}
	x := []float64{f.loss, float64(f.images), f.got.Loss, f.got.Top1, f.got.Top5, float64(f.got.Images), float64(bad), 0, 0, 0}
	if stop {
		x[7] = 1
	}
	if f.wants() {
		x[8] = 1
	}
	if f.unwritten() {
		x[9] = 1
	}
	if err := g.Sum64(x).Wait(); err != nil {
		return 0, false, err
	}
	f.loss, f.images = x[0], int(x[1])
	f.got = network.Tally{Loss: x[2], Top1: x[3], Top5: x[4], Images: int(x[5])}
	f.due.at, f.lost = f.due.at || x[8] > 0, x[9] > 0
	return int(x[6]), x[7] > 0, nil
}

// checkBad is an error if ranks have met more unreadable images than are allowed, though none has by itself.
func (r *Run) checkBad(bad, allowed, of int) error {
	if r.Ranks.Single() || bad <= allowed {
		return nil
	}
	return &ranks.RankError{Name: "all ranks", Err: &data.TooManyBad{Bad: bad, Of: of, Allowed: allowed}}
}

// averageStats sets the running statistics to their mean over the ranks, as evaluation and checkpoints need them, once after each step: over those that had a batch
// of it, so that the mean follows from the mean before, whatever the ranks' own were.
func (r *Run) averageStats() error {
	g := r.Ranks
	if g.Single() || r.Net.Stats == nil || !r.strayed {
		return nil
	}
	weight := 1.
	if r.idle {
		weight = 0
	}
	r.strayed, r.idle = false, false
	return r.weighStats(weight)
}

// weighStats sets the running statistics to their mean over the ranks, each with a weight.
func (r *Run) weighStats(weight float64) error {
	n := r.Net.Stats.Len()
	x := make([]float64, n+1)
	if err := r.Net.Stats.ReadAt64(x[:n], 0); err != nil {
		return err
	}
	for i := range n {
		x[i] *= weight
	}
	x[n] = weight
	if err := r.Ranks.Sum64(x).Wait(); err != nil || x[n] == 0 {
		return err
	}
	for i := range n {
		x[i] /= x[n]
	}
	return r.Net.Stats.WriteAt64(x[:n], 0)
}

// host is the context of work that a rank must not leave by itself: with one process the caller's, else one that does not end.
func (r *Run) host(ctx context.Context) context.Context {
	if r.Ranks.Single() {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// sameBits is an error that names the rank whose parameters or state of the optimiser are not those of the others.
func (r *Run) sameBits() error {
	g := r.Ranks
	if g.Single() {
		return nil
	}
	params, err := network.Hash(r.Net.Params)
	if err != nil {
		return err
	}
	facts := []ranks.Fact{{Name: "hash of the parameters", Value: params}}
	for i, name := range r.update.Optimizer.State() {
		x, err := network.Hash(r.update.State[i])
		if err != nil {
			return err
		}
		facts = append(facts, ranks.Fact{Name: "hash of the " + name, Value: x})
	}
	return g.Compare(facts...)
}

// program tells builds apart: the version of Go and a hash of the file.
var program = sync.OnceValue(func() string {
	h := sha256.New()
	path, err := os.Executable()
	if err == nil {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			_, err = io.Copy(h, f)
			f.Close()
		}
	}
	if err != nil {
		return runtime.Version()
	}
	return fmt.Sprintf("%s %x", runtime.Version(), h.Sum(nil)[:8])
})

// preflight compares, before the first step, what all ranks have to agree about.
func (r *Run) preflight() error {
	g := r.Ranks
	if g.Single() {
		return nil
	}
	facts := []ranks.Fact{{Name: "program", Value: program()}}
	options := Options()
	for i := range options {
		if o := &options[i]; !o.Local {
			facts = append(facts, ranks.Fact{Name: o.Name, Value: cmp.Or(o.Text(&r.Resolved.Spec), "no value")})
		}
	}
	train, val := r.Images()
	for _, f := range []struct {
		name string
		n    int
	}{{"parameters", r.Net.Params.Len()}, {"training images", train}, {"validation images", val}, {"epoch", r.pos.Epoch},
		{"batches of the epoch done", r.pos.Batch}, {"steps done", r.pos.Steps}} {
		facts = append(facts, ranks.Fact{Name: f.name, Value: strconv.Itoa(f.n)})
	}
	if err := g.Compare(facts...); err != nil {
		return err
	}
	return r.sameBits()
}
