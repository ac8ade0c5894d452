package extrapolate

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"onlinerna/internal/simd/convert"
	"onlinerna/rna/kernel"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// Stats is the treatment of BatchNorm's running statistics.
type Stats int

const (
	// KeepStats copies them from the last file.
	KeepStats Stats = iota
	// CombineStats combines them like weights, except that a negative variance becomes 0.
	CombineStats
)

// combines reports whether tensors of a role are combined.
func (s Stats) combines(r Role) bool {
	return r == Weight || s == CombineStats && (r == RunningMean || r == RunningVar)
}

// WriteOptions are the parameters of [Series.Write].
type WriteOptions struct {
	Stats Stats

	// Metadata is added to that of the last file.
	Metadata map[string]string

	// From, if not nil, provides tensors of the roles RunningMean and RunningVar that it contains, rounded to the files'
	// type: re-estimated statistics.
	From *Checkpoint

	// Meter, if not nil, measures how far the combination is from the files.
	Meter *Meter

	// Sync waits until the file is on the disk. Without it, a power failure soon after may leave a truncated file, which
	// readers of the format reject.
	Sync bool
}

// A Rule determines how the elements of one tensor are combined.
type Rule struct {
	// Weights are those of the files: Σ Weights[k] file_k. A single 1 among zeros copies a file bit by bit.
	Weights []float64

	// Divisor, if not 0, divides the sum, so that the mean of equal numbers is exactly that number.
	Divisor float64

	// Each, if set, replaces Weights: it sets out to the output's elements from index at on; in has the same elements of
	// each file. It is called concurrently.
	Each func(out []float64, in [][]float64, at int)
}

// copies returns the only file with a weight, if that is 1.
func (r *Rule) copies() (file int, ok bool) {
	file = -1
	for k, w := range r.Weights {
		if w == 0 {
			continue
		}
		if w != 1 || file >= 0 {
			return -1, false
		}
		file = k
	}
	return file, file >= 0 && r.Each == nil && (r.Divisor == 0 || r.Divisor == 1)
}

// Rules returns the rule of each combined tensor. It is called for one tensor at a time, in the order of names, and may
// [Series.Scan] it.
type Rules func(ctx context.Context, t Tensor) (Rule, error)

// Linear uses the same weights of files for every tensor.
func Linear(weights []float64) Rules {
	return func(context.Context, Tensor) (Rule, error) { return Rule{Weights: weights}, nil }
}

// Sink receives the bytes of tensors, little-endian, each from byte offset off on, in any order and from several
// goroutines.
type Sink interface {
	WriteAt(name string, b []byte, off int64) error
}

// Write writes Σ weights[k] file_k to a safetensors file, or for .pt and .pth to a file for torch.load, which appears
// whole or not at all. Tensors have the names, types and shapes of the last file. A single weight of 1 among zeros
// copies a file bit by bit. A sum that exceeds the largest finite value of its type is an error.
func (s *Series) Write(ctx context.Context, path string, weights []float64, opt WriteOptions) error {
	if len(weights) != len(s.files) {
		return fmt.Errorf("%d weights for %d files", len(weights), len(s.files))
	}
	return s.WriteRules(ctx, path, Linear(weights), opt)
}

// WriteRules is [Series.Write] with a rule for each tensor.
func (s *Series) WriteRules(ctx context.Context, path string, rules Rules, opt WriteOptions) error {
	w, err := s.Begin(path, "", opt.Metadata)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := s.Combine(ctx, w, nil, rules, opt); err != nil {
		return err
	}
	if err := s.Unchanged(); err != nil {
		return err
	}
	if opt.Sync {
		return w.Commit()
	}
	return w.CommitUnsynced()
}

// Begin begins a file for the tensors, or joins one that another process has begun: see [statedict.Join].
func (s *Series) Begin(path, unfinished string, more map[string]string) (statedict.Writer, error) {
	if err := s.CheckOutput(path); err != nil {
		return nil, err
	}
	var list []statedict.Tensor
	for _, c := range s.tensors {
		list = append(list, statedict.Tensor{Name: c.Name, DType: c.DType, Shape: c.Shape})
	}
	metadata := s.Metadata(more)
	if unfinished != "" {
		return statedict.Join(path, unfinished, list, metadata)
	}
	return statedict.Create(path, list, metadata)
}

// Metadata returns those of the last file for an output, and more.
func (s *Series) Metadata(more map[string]string) map[string]string {
	metadata := clone(s.files[len(s.files)-1].Metadata)
	delete(metadata, "ema_gamma") // of the file alone
	delete(metadata, "ema_step")
	maps.Copy(metadata, more)
	return metadata
}

// CheckOutput returns an error for an output that is a file of the series.
func (s *Series) CheckOutput(path string) error {
	for _, f := range s.files {
		if err := f.File.CheckOutput(path); err != nil {
			return err
		}
	}
	return nil
}

// Unchanged returns an error for files that were modified or replaced since they were opened.
func (s *Series) Unchanged() error {
	for _, f := range s.files {
		if err := f.File.Unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// batchLen is the minimum number of spans combined at a time, if rules are computed in between.
const batchLen = 128

// Combine passes the combination of the wanted tensors to a sink; nil means all. Scales go with their tensors.
func (s *Series) Combine(ctx context.Context, to Sink, want func(Tensor) bool, rules Rules, opt WriteOptions) error {
	workers := make([]*combiner, s.workers())
	var batch []span
	made := map[*column]Rule{}
	var sums [][]float64 // of the batch's spans, in their order
	flush := func() error {
		if opt.Meter != nil {
			sums = make([][]float64, len(batch))
		}
		err := forEach(ctx, len(batch), len(workers), func(worker, i int) error {
			w, sp := s.combiner(workers, worker), batch[i]
			b, err := w.bytes(sp, made[sp.column], opt)
			if err != nil {
				return err
			}
			if opt.Meter != nil && sp.column.Role == Weight {
				sums[i] = slices.Clone(w.measurer.sums)
			}
			return to.WriteAt(sp.column.Name, b, int64(sp.off)*int64(sp.column.DType.Size()))
		})
		for _, v := range sums {
			if v != nil && err == nil {
				opt.Meter.Add(len(s.files), v)
			}
		}
		batch = batch[:0]
		clear(made)
		return err
	}
	for i := range s.tensors {
		c := &s.tensors[i]
		if want != nil && !want(c.Tensor) || c.Role == Scale {
			continue
		}
		if opt.Stats.combines(c.Role) {
			rule, err := rules(ctx, c.Tensor)
			if err == nil && rule.Each == nil && len(rule.Weights) != len(s.files) {
				err = fmt.Errorf("%d weights for %d files", len(rule.Weights), len(s.files))
			}
			if err != nil {
				return err
			}
			if c.scale != nil {
				if err := flush(); err != nil {
					return err
				}
				if err := s.combineScaled(ctx, to, c, rule, opt, workers); err != nil {
					return err
				}
				continue
			}
			made[c] = rule
		}
		for _, sp := range s.cut(c) {
			if batch = append(batch, sp); len(batch) >= s.mostSpans(opt) {
				rule := made[c]
				if err := flush(); err != nil {
					return err
				}
				made[c] = rule
			}
		}
		if len(batch) >= batchLen {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// mostSpans is the largest number of spans combined at a time. Measured spans have sums of the products of all files.
func (s *Series) mostSpans(opt WriteOptions) int {
	most := 1 << 16
	if n := len(s.files); opt.Meter != nil {
		most = max(min(most, maxBuffers/(8*n*n)), 1)
	}
	return most
}

// combiner has the buffers of one worker.
type combiner struct {
	*reader
	weights []float64 // that the other fields are computed for
	files   []int     // with nonzero weight
	loaded  []int     // whose views are of the current span
	taken   [][]byte  // their views
	sums    map[convert.Format]*kernel.Combination
	row     [kernel.Run]float64
	out     []byte
	sum64   []float64

	measurer measurer
}

// combiner returns a worker's combiner.
func (s *Series) combiner(workers []*combiner, worker int) *combiner {
	if workers[worker] == nil {
		workers[worker] = &combiner{reader: s.reader()}
	}
	return workers[worker]
}

// set prepares for weights.
func (c *combiner) set(weights []float64) {
	if slices.Equal(c.weights, weights) {
		return
	}
	c.weights, c.files = weights, nil
	for i, w := range weights {
		if w != 0 {
			c.files = append(c.files, i)
		}
	}
	c.taken, c.sums = make([][]byte, len(c.files)), map[convert.Format]*kernel.Combination{}
}

// combination returns the kernel that sums files of a format.
func (c *combiner) combination(f convert.Format) *kernel.Combination {
	if c.sums[f] == nil {
		var coef []float64
		for _, i := range c.files {
			coef = append(coef, c.weights[i])
		}
		c.sums[f] = kernel.NewCombination(f, coef)
	}
	return c.sums[f]
}

// bytes returns the elements of a span of the output, valid until the next call.
func (c *combiner) bytes(sp span, rule Rule, opt WriteOptions) ([]byte, error) {
	last := len(c.views) - 1
	role := sp.column.Role
	if opt.From != nil && (role == RunningMean || role == RunningVar) {
		if t, ok := opt.From.Lookup(sp.column.Name); ok {
			return c.convert(sp, opt.From, t)
		}
	}
	if !opt.Stats.combines(role) {
		return c.raw(sp, last)
	}
	if from, ok := rule.copies(); ok && !(opt.Meter != nil && role == Weight) {
		return c.raw(sp, from)
	}
	size := sp.column.DType.Size()
	c.out = slices.Grow(c.out[:0], sp.n*size)[:sp.n*size]
	return c.out, c.runs(sp, rule, opt, func(at int, sum []float64) error {
		err := c.encode(sp, at, sum)
		if err != nil {
			err = cmp.Or(c.notFinite(sp, c.loaded, at, len(sum)), err)
		}
		return err
	})
}

// numbers returns the elements of a span of the combination, valid until the next call.
func (c *combiner) numbers(sp span, rule Rule, opt WriteOptions) ([]float64, error) {
	c.sum64 = slices.Grow(c.sum64[:0], sp.n)[:sp.n]
	return c.sum64, c.runs(sp, rule, opt, func(at int, sum []float64) error {
		copy(c.sum64[at:], sum)
		return nil
	})
}

// runs calls visit for each run of a span of the combination, from element at on.
func (c *combiner) runs(sp span, rule Rule, opt WriteOptions, visit func(at int, sum []float64) error) error {
	files := c.series.all()
	measured := opt.Meter != nil && sp.column.Role == Weight
	if rule.Each == nil {
		if c.set(rule.Weights); !measured {
			files = c.files
		}
	}
	if err := c.load(sp, files); err != nil {
		return err
	}
	c.loaded = files
	if measured {
		c.measurer.begin(sp.column.work(), c.views, sp.n)
	}
	f := sp.column.work().Format()
	for i := range c.taken {
		c.taken[i] = c.views[c.files[i]]
	}
	for at := 0; at < sp.n; at += kernel.Run {
		sum := c.row[:min(kernel.Run, sp.n-at)]
		if rule.Each != nil {
			rule.Each(sum, c.widened(f, at, len(sum)), sp.off+at)
		} else {
			c.combination(f).Sum(sum, c.taken, at)
			if rule.Divisor != 0 {
				for i := range sum {
					sum[i] /= rule.Divisor
				}
			}
		}
		if measured {
			c.measurer.add(sum, c.widened(f, at, len(sum)))
		}
		if sp.column.Role == RunningVar {
			for i, v := range sum {
				sum[i] = max(v, 0)
			}
		}
		if err := visit(at, sum); err != nil {
			return err
		}
	}
	return nil
}

// widened returns n elements of each view as float64, from index at on.
func (r *reader) widened(f convert.Format, at, n int) [][]float64 {
	if r.rows == nil {
		for range r.views {
			r.rows = append(r.rows, make([]float64, kernel.Run))
		}
		r.cut = make([][]float64, len(r.views))
	}
	for i, v := range r.views {
		r.cut[i] = r.rows[i][:n]
		convert.Widen(r.cut[i], v[at*f.Size():], f)
	}
	return r.cut
}

// Scan reads a tensor in all files. visit is called concurrently, but never twice at a time with the same worker
// number, which is below [Series.Workers]: in has each file's elements from index at on. The elements of a part, one of
// [Series.Parts], come in order and from one worker.
func (s *Series) Scan(ctx context.Context, t Tensor, visit func(worker, part, at int, in [][]float64)) error {
	i := slices.IndexFunc(s.tensors, func(c column) bool { return c.Name == t.Name })
	if i < 0 {
		return fmt.Errorf("there is no tensor %q", t.Name)
	}
	spans := s.cut(&s.tensors[i])
	readers := make([]*reader, s.workers())
	return forEach(ctx, len(spans), len(readers), func(worker, part int) error {
		if readers[worker] == nil {
			readers[worker] = s.reader()
		}
		sp, r := spans[part], readers[worker]
		if err := r.load(sp, s.all()); err != nil {
			return err
		}
		for at := 0; at < sp.n; at += kernel.Run {
			visit(worker, part, sp.off+at, r.widened(sp.column.work().Format(), at, min(kernel.Run, sp.n-at)))
		}
		return nil
	})
}

// Workers bounds the worker numbers.
func (s *Series) Workers() int { return s.workers() }

// Parts returns the number of parts in which a tensor is read.
func (s *Series) Parts(t Tensor) int { return (t.n + s.spanLen() - 1) / s.spanLen() }

// encode rounds values into out, from element at on.
func (c *combiner) encode(sp span, at int, values []float64) error {
	t := sp.column.DType
	size := t.Size()
	bad, err := safetensors.Encode(c.out[at*size:(at+len(values))*size], values, t)
	if err != nil {
		return err
	}
	if bad >= 0 {
		return fmt.Errorf("element %d of tensor %q would be %v, which %s cannot hold: the weights are too large (for rna, "+
			"raise lambda)", sp.off+at+bad, sp.column.Name, values[bad], t)
	}
	return nil
}

// convert reads a span of a tensor of another file and rounds it to the type of the series.
func (c *combiner) convert(sp span, from *Checkpoint, t Tensor) ([]byte, error) {
	if t.n != sp.column.n || !t.DType.Number() {
		return nil, fmt.Errorf("%s: tensor %q is %s%v, the checkpoints have %s%v", from.Path, t.Name, t.DType, t.Shape,
			sp.column.DType, sp.column.Shape)
	}
	size := sp.column.DType.Size()
	b, err := from.elements(make([]byte, sp.n*t.DType.Size()), t, sp.off, sp.n)
	if err != nil {
		return nil, err
	}
	if t.DType == sp.column.DType {
		return bytes.Clone(b), nil
	}
	values := make([]float64, sp.n)
	if err := safetensors.Decode(values, b, t.DType); err != nil {
		return nil, err
	}
	c.out = slices.Grow(c.out[:0], sp.n*size)[:sp.n*size]
	return c.out, c.encode(sp, 0, values)
}
