package extrapolate

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"onlinerna/internal/simd/convert"
	"onlinerna/rna/kernel"
	"onlinerna/train/safetensors"
)

// Stats says what becomes of the running statistics of BatchNorm.
type Stats int

const (
	// KeepStats copies them from the last file.
	KeepStats Stats = iota
	// CombineStats combines them like weights, except that a negative variance becomes 0.
	CombineStats
)

// combines says whether tensors of a role are combined.
func (s Stats) combines(r Role) bool {
	return r == Weight || s == CombineStats && (r == RunningMean || r == RunningVar)
}

// WriteOptions are the parameters of [Series.Write].
type WriteOptions struct {
	Stats Stats

	// Metadata is added to that of the last file.
	Metadata map[string]string

	// From, if not nil, gives the tensors of the roles RunningMean and RunningVar that it has, rounded to the type in
	// the files: statistics that were estimated anew.
	From *Checkpoint

	// Sync waits until the file is on the disk. Without it a system that loses power soon after may leave
	// a file that is cut short, which readers of the format refuse.
	Sync bool
}

// Write writes Σ weights[k] file_k to a safetensors file, which appears whole or not at all. Tensors have the
// names, types and shapes of the last file. A weight of 1 among zeros copies a file bit by bit. A sum that exceeds the
// largest finite value of its type is an error.
func (s *Series) Write(ctx context.Context, path string, weights []float64, opt WriteOptions) error {
	if len(weights) != len(s.files) {
		return fmt.Errorf("%d weights for %d files", len(weights), len(s.files))
	}
	var list []safetensors.Tensor
	for _, c := range s.tensors {
		list = append(list, safetensors.Tensor{Name: c.Name, DType: c.DType, Shape: c.Shape})
	}
	metadata := clone(s.files[len(s.files)-1].Metadata)
	for k, v := range opt.Metadata {
		metadata[k] = v
	}
	w, err := safetensors.Create(path, list, metadata)
	if err != nil {
		return err
	}
	defer w.Abort()
	spans := s.spans(func(Role) bool { return true })
	workers := make([]*combiner, s.workers())
	err = forEach(ctx, len(spans), len(workers), func(worker, i int) error {
		if workers[worker] == nil {
			workers[worker] = s.combiner(weights)
		}
		b, err := workers[worker].bytes(spans[i], opt)
		if err != nil {
			return err
		}
		return w.WriteAt(spans[i].column.Name, b, int64(spans[i].off)*int64(spans[i].column.DType.Size()))
	})
	if err != nil {
		return err
	}
	if opt.Sync {
		return w.Commit()
	}
	return w.CommitUnsynced()
}

// combiner has the buffers of one worker.
type combiner struct {
	*reader
	weights []float64
	files   []int // of nonzero weight
	coef    []float64
	taken   [][]byte // their views
	sums    map[convert.Format]*kernel.Combination
	row     [kernel.Run]float64
	out     []byte
}

func (s *Series) combiner(weights []float64) *combiner {
	c := &combiner{reader: s.reader(), weights: weights, sums: map[convert.Format]*kernel.Combination{}}
	for i, w := range weights {
		if w != 0 {
			c.files, c.coef = append(c.files, i), append(c.coef, w)
		}
	}
	c.taken = make([][]byte, len(c.files))
	return c
}

// bytes returns the elements of a span of the output, valid until the next call.
func (c *combiner) bytes(sp span, opt WriteOptions) ([]byte, error) {
	last := len(c.weights) - 1
	role := sp.column.Role
	if opt.From != nil && (role == RunningMean || role == RunningVar) {
		if t, ok := opt.From.Lookup(sp.column.Name); ok {
			return c.convert(sp, opt.From, t)
		}
	}
	copied := -1 // the file to copy
	switch {
	case !opt.Stats.combines(role):
		copied = last
	case len(c.files) == 1 && c.weights[c.files[0]] == 1:
		copied = c.files[0]
	}
	if copied >= 0 {
		err := c.load(sp, []int{copied})
		if err == nil && safetensors.Swapped {
			safetensors.Swap(c.views[copied], sp.column.DType)
		}
		return c.views[copied], err
	}
	if err := c.load(sp, c.files); err != nil {
		return nil, err
	}
	t := sp.column.DType
	if c.sums[t.Format()] == nil {
		c.sums[t.Format()] = kernel.NewCombination(t.Format(), c.coef)
	}
	for i, f := range c.files {
		c.taken[i] = c.views[f]
	}
	c.out = slices.Grow(c.out[:0], sp.n*t.Size())[:sp.n*t.Size()]
	for at := 0; at < sp.n; at += kernel.Run {
		sum := c.row[:min(kernel.Run, sp.n-at)]
		c.sums[t.Format()].Sum(sum, c.taken, at)
		if role == RunningVar {
			for i, v := range sum {
				sum[i] = max(v, 0)
			}
		}
		if err := c.encode(sp, at, sum); err != nil {
			return nil, err
		}
	}
	return c.out, nil
}

// encode rounds values to the elements of out from at on.
func (c *combiner) encode(sp span, at int, values []float64) error {
	t := sp.column.DType
	size := t.Size()
	bad, err := safetensors.Encode(c.out[at*size:(at+len(values))*size], values, t)
	if err != nil {
		return err
	}
	if bad >= 0 {
		return fmt.Errorf("element %d of tensor %q would be %v, which %s cannot hold: raise lambda", sp.off+at+bad, sp.column.Name, values[bad], t)
	}
	return nil
}

// convert reads a span of a tensor of another file and rounds it to the type of the series.
func (c *combiner) convert(sp span, from *Checkpoint, t Tensor) ([]byte, error) {
	if t.n != sp.column.n || !t.DType.Float() {
		return nil, fmt.Errorf("%s: tensor %q is %s%v, the checkpoints have %s%v", from.Path, t.Name, t.DType, t.Shape, sp.column.DType, sp.column.Shape)
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
