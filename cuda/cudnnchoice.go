//go:build gpu && cgo

package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// algorithm is one that cuDNN has for a convolution, by its number, with its kind of products and the bytes of its scratch.
type algorithm struct {
	Number int   `json:"algorithm"`
	Math   int   `json:"math"`
	Bytes  int64 `json:"workspace"`
}

// choose takes an algorithm of those within the options. Where none of them does with the scratch it is the one with the least.
func (v *Convolution) choose(o ConvolutionOptions) error {
	all, err := v.algorithms(o)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("cuda: %w for %v of %v in %v", errNoAlgorithm, v.kindOf(), v.shape, v.precision)
	}
	within := slices.DeleteFunc(slices.Clone(all), func(a algorithm) bool { return a.Bytes > o.Workspace })
	if len(within) == 0 {
		within = []algorithm{slices.MinFunc(all, func(a, b algorithm) int { return int(min(max(a.Bytes-b.Bytes, -1), 1)) })}
	}
	best := within[0]
	if o.Measure && !o.Deterministic && len(within) > 1 {
		key := v.key(o)
		kept, ok := keptChoice(v.d.c.opts, key)
		if ok && slices.Contains(within, kept) {
			best = kept
		} else if best, err = v.measure(within); err != nil {
			return err
		} else {
			keepChoice(v.d.c.opts, key, best)
		}
	}
	return v.use(best)
}

// mostMeasured algorithms are timed, and each so many times.
const mostMeasured, rounds = 8, 3

// measure gives the fastest of several algorithms, on buffers of their own, or the first where there is no room for those.
func (v *Convolution) measure(all []algorithm) (algorithm, error) {
	all = all[:min(len(all), mostMeasured)]
	c := v.d.c
	var spans [4]Span
	defer func() {
		for _, s := range spans {
			if s.m != nil {
				_ = s.m.Close() // a failure of the GPU shows at the next call
			}
		}
		_ = c.Trim()
	}()
	sizes := v.operands()
	scratch := slices.MaxFunc(all, func(a, b algorithm) int { return int(min(max(a.Bytes-b.Bytes, -1), 1)) }).Bytes
	for i, n := range append(sizes[:], scratch) {
		if n == 0 {
			continue
		}
		m, err := c.Alloc(n)
		if errors.Is(err, ErrOutOfMemory) {
			return all[0], nil
		}
		if err != nil {
			return algorithm{}, err
		}
		spans[i] = m.All()
		if err := v.d.s.Fill(spans[i], 0); err != nil {
			return algorithm{}, err
		}
	}
	best, least := all[0], time.Duration(0)
	for _, a := range all {
		took, err := v.time(a, spans)
		if errors.Is(err, ErrLost) {
			return algorithm{}, err
		}
		if err == nil && (least == 0 || took < least) { // one that fails is passed over
			best, least = a, took
		}
	}
	return best, nil
}

// time is the shortest of a few runs of an algorithm, behind one that does not count.
func (v *Convolution) time(a algorithm, spans [4]Span) (least time.Duration, err error) {
	if err := v.use(a); err != nil {
		return 0, err
	}
	var events [rounds + 1]*Event
	defer func() {
		for _, e := range events {
			if e != nil {
				err = errors.Join(err, e.Close())
			}
		}
	}()
	for i := range events {
		if events[i], err = v.d.c.NewEvent(true); err != nil {
			return 0, err
		}
		if err := v.launch(spans[0], spans[1], spans[2], spans[3]); err != nil {
			return 0, err
		}
		if err := events[i].Record(v.d.s); err != nil {
			return 0, err
		}
	}
	if err := events[rounds].Synchronize(); err != nil {
		return 0, err
	}
	for i := range rounds {
		took, err := events[i+1].Since(events[i])
		if err != nil {
			return 0, err
		}
		if least == 0 || took < least {
			least = max(took, 1)
		}
	}
	return least, nil
}

// choice is a file of the cache: which algorithm was the fastest for what.
type choice struct {
	Key string `json:"key"`
	algorithm
}

// key is all that the fastest algorithm may depend on.
func (v *Convolution) key(o ConvolutionOptions) string {
	i := v.d.c.info
	return fmt.Sprintf("%v %v, %v, at most %d bytes of scratch, %s %s with %d multiprocessors, cuDNN %s", v.kindOf(), v.shape, v.precision, o.Workspace,
		i.Name, i.Arch(), i.Multiprocessors, dnnVersion())
}

func choiceFile(key string) string { return "convolution-" + digest(key) + ".json" }

// keptChoice reads a choice. A file that is damaged, or of something else, is as good as none.
func keptChoice(o Options, key string) (algorithm, bool) {
	folder := kernelFolder(o.KernelCache)
	if folder == "" {
		return algorithm{}, false
	}
	b, err := os.ReadFile(filepath.Join(folder, choiceFile(key)))
	var c choice
	if err != nil || json.Unmarshal(b, &c) != nil || c.Key != key {
		return algorithm{}, false
	}
	return c.algorithm, true
}

// keepChoice writes a choice. Where that fails the next run measures again.
func keepChoice(o Options, key string, a algorithm) {
	if b, err := json.Marshal(choice{key, a}); err == nil {
		writeCache(kernelFolder(o.KernelCache), choiceFile(key), append(b, '\n'))
	}
}
