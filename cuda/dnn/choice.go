//go:build gpu && cgo

package dnn

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/internal/cache"
)

// algorithm is cuDNN's number for a convolution's algorithm, with its math type and the bytes of its scratch.
type algorithm struct {
	Number int   `json:"algorithm"`
	Math   int   `json:"math"`
	Bytes  int64 `json:"workspace"`
}

// choose takes an algorithm within the options, or the one with the least scratch if none fits. If several may be the
// fastest and none was measured before, Settle chooses. Algorithms that need little scratch, or no more than the chosen
// one, replace it if cuDNN refuses to run it.
func (v *Convolution) choose(o Options) error {
	all, err := v.algorithms(o)
	if err != nil {
		return err
	}
	least := slices.MinFunc(all, func(a, b algorithm) int { return cmp.Compare(a.Bytes, b.Bytes) })
	within := slices.DeleteFunc(all, func(a algorithm) bool { return a.Bytes > max(o.Workspace, least.Bytes) })
	within = within[:min(len(within), mostMeasured)]
	if !o.Measure || o.Deterministic || len(within) == 1 {
		return v.take(within[0], within)
	}
	v.key = v.name(o)
	if kept, ok := keptChoice(v.d.c.Options(), v.key); ok && slices.Contains(within, kept) {
		return v.take(kept, within)
	}
	if err := v.use(within[0]); err != nil {
		return err
	}
	v.unsettled = within
	for _, a := range within {
		v.workspace = max(v.workspace, a.Bytes)
	}
	return nil
}

// littleScratch is the scratch that may be reserved for replacements of the chosen algorithm.
const littleScratch = 16 << 20

// take uses a, with enough scratch for its replacements among all.
func (v *Convolution) take(a algorithm, all []algorithm) error {
	v.others = slices.DeleteFunc(slices.Clone(all), func(b algorithm) bool {
		return b == a ||
			b.Bytes > max(a.Bytes, littleScratch)
	})
	err := v.use(a)
	for _, b := range v.others {
		v.workspace = max(v.workspace, b.Bytes)
	}
	return err
}

// mostMeasured limits the algorithms or plans that are timed.
const mostMeasured = 8

// Settle measures the plans or algorithms, unless one is chosen already, takes the fastest and runs it once. The spans
// are as for Run; the result is overwritten. If no plan runs, an algorithm takes over, with its own workspace if need
// be. If no algorithm runs either, Settle fails with [ErrNoAlgorithm], or [driver.ErrOutOfMemory] if one lacked memory.
func (v *Convolution) Settle(a, b, to, workspace driver.Span) error {
	if v.plans != nil {
		err := v.plans.Settle([]driver.Span{a, b, to}, workspace)
		if err == nil || !errors.Is(err, ErrNoPlan) {
			return err
		}
		if err := v.instead(workspace); err != nil {
			return err
		}
	}
	return v.d.do(func() error {
		if err := v.Check(); err != nil {
			return err
		}
		if v.settled {
			return nil
		}
		spans := [4]driver.Span{a, b, to, workspace}
		if len(v.unsettled) > 0 {
			if err := v.measure(spans); err != nil || v.settled {
				return err
			}
		}
		err := v.launch(a, b, to, workspace)
		if err == nil {
			err = v.d.s.Synchronize()
		}
		if failed := (*driver.Error)(nil); errors.As(err, &failed) && !ends(err) {
			return fmt.Errorf("cuda: %w that runs for %v of %v in %v: %w", ErrNoAlgorithm, v.kindOf(), v.shape,
				v.precision, err)
		}
		v.settled = err == nil
		return err
	})
}

// measure times the algorithms and takes the fastest, or the first if none can be timed.
func (v *Convolution) measure(spans [4]driver.Span) error {
	best, least := v.unsettled[0], time.Duration(0)
	workspace := spans[3]
	narrow := v.precision.Bytes() == 2
	noise, err := v.d.noise(spans[:2], []bool{narrow, narrow})
	if err != nil {
		return err
	}
	defer noise()
	for _, x := range v.unsettled {
		took, err := v.time(x, spans)
		if errors.Is(err, driver.ErrLost) {
			return err
		}
		v.short = v.short || errors.Is(err, driver.ErrOutOfMemory)
		if v.o.Tried != nil {
			v.o.Tried(Tried{v.graph, fmt.Sprintf("algorithm %d", x.Number), x.Bytes, took, err})
		}
		if err == nil && (least == 0 || took < least) { // a failed algorithm is skipped
			best, least = x, took
		}
	}
	all := v.unsettled
	v.unsettled = nil
	v.settled = least > 0
	if v.settled && !v.short { // with more memory a later run may find a faster one
		keepChoice(v.d.c.Options(), v.key, best)
	}
	return v.take(best, slices.DeleteFunc(all, func(a algorithm) bool { return a.Bytes > workspace.Bytes() }))
}

// instead takes an algorithm in place of plans. If that lacks memory the plans stay, and the next Settle tries again.
func (v *Convolution) instead(workspace driver.Span) error {
	o := v.o
	o.Workspace = workspace.Bytes()
	err := v.legacy(o)
	if err == nil && v.workspace > workspace.Bytes() {
		if v.own, err = v.d.c.Alloc(v.workspace); err != nil {
			err = errors.Join(err, v.Resource.Close())
			v.Resource = nil
		}
	}
	if errors.Is(err, driver.ErrOutOfMemory) {
		return err
	}
	plans := v.plans
	v.plans = nil
	return errors.Join(err, plans.Close())
}

// time is the shortest of a few runs of an algorithm after a warm-up run.
func (v *Convolution) time(a algorithm, spans [4]driver.Span) (least time.Duration, err error) {
	if err := v.use(a); err != nil {
		return 0, err
	}
	return v.d.Time(func() error { return v.launch(spans[0], spans[1], spans[2], spans[3]) })
}

// choice is a file of the cache: the fastest algorithm for a convolution.
type choice struct {
	Key string `json:"key"`
	algorithm
}

// name lists everything on which the fastest algorithm depends.
func (v *Convolution) name(o Options) string {
	i := v.d.c.Info()
	return fmt.Sprintf("%v %v, %v, at most %d bytes of scratch, %s %s with %d multiprocessors, cuDNN %s", v.kindOf(),
		v.shape, v.precision, o.Workspace,
		i.Name, i.Arch(), i.Multiprocessors, Version())
}

func choiceFile(key string) string { return "convolution-" + cache.Digest(key) + ".json" }

// keptChoice reads a choice. A damaged file, or one for another key, counts as missing.
func keptChoice(o driver.Options, key string) (algorithm, bool) {
	b, ok := cache.Read(cache.Folder(o.KernelCache), choiceFile(key))
	var c choice
	if !ok || json.Unmarshal(b, &c) != nil || c.Key != key {
		return algorithm{}, false
	}
	return c.algorithm, true
}

// keepChoice writes a choice. Errors are ignored: the next run measures again.
func keepChoice(o driver.Options, key string, a algorithm) {
	if b, err := json.Marshal(choice{key, a}); err == nil {
		cache.Write(cache.Folder(o.KernelCache), choiceFile(key), append(b, '\n'))
	}
}
