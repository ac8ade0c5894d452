package bench

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"onlinerna/data"
	"onlinerna/data/random"
	"onlinerna/nn"
)

// The inputs of steps.
const (
	Synthetic = "synthetic" // one batch of noise, the same in each step
	// a few batches of images, decoded and resampled before: the step without the cost of loading
	InMemory   = "memory"
	FromLoader = "loader" // images decoded and resampled during the previous steps, as in training
)

var inputs = []string{Synthetic, InMemory, FromLoader}

// heldBatches is the maximum number of batches held in memory.
const heldBatches = 8

// A feed provides the inputs of a measurement. Its zero value has only noise.
type feed struct {
	set     data.Dataset // nil without images
	profile data.Profile

	noise  *data.Batch
	loader *data.Loader
	batch  int
}

// openFeed opens the images.
func openFeed(o Options) (*feed, error) {
	f := &feed{}
	if o.Data == "" {
		return f, nil
	}
	set, val, err := data.Open(o.Data, data.Options{NoVal: true})
	if err != nil {
		return nil, err
	}
	if c, ok := val.(io.Closer); ok {
		c.Close()
	}
	f.set = set
	if f.profile, err = data.ProfileOf(set); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *feed) close() error {
	if c, ok := f.set.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// config returns the network's configuration, matching the images if there are some.
func (f *feed) config(o Options) nn.Config {
	c := o.config()
	if f.set != nil {
		c.Classes, c.Channels, c.Mean, c.Std = len(f.set.Classes()), f.set.Channels(), f.profile.Mean, f.profile.Std
	}
	return c
}

// images returns the maximum batch size.
func (f *feed) images() int {
	if f.set != nil {
		return f.set.Len()
	}
	return mostImages
}

// prepare creates the noise and the loader for a network.
func (f *feed) prepare(o Options, m *nn.Model) error {
	c := m.Config
	f.batch = o.Batch
	if slices.Contains(o.Inputs, Synthetic) || len(o.Inputs) == 0 {
		f.noise = synthetic(m, o.Batch, o.Seed)
	}
	if f.set == nil {
		return nil
	}
	if n := f.set.Len(); n < o.Batch {
		return fmt.Errorf("%s has %d images: they make no batch of %d", o.Data, n, o.Batch)
	}
	tr, err := f.profile.Train("auto", c.Size)
	if err == nil && o.Eval {
		tr = f.profile.Eval(c.Size)
	}
	if err != nil {
		return err
	}
	f.loader, err = data.NewLoader(f.set, tr, data.LoaderOptions{
		Batch: o.Batch, Workers: o.Workers, Shuffle: true, Seed: o.Seed, Substitute: true, MaxBad: data.UsualBad,
	})
	return err
}

// batches yields the batches of an input in sequence, until stop is called.
func (f *feed) batches(ctx context.Context, input string) (next func() (*data.Batch, error), stop func(), err error) {
	switch input {
	case InMemory:
		held, err := f.held(ctx)
		i := 0
		return func() (*data.Batch, error) { i++; return held[(i-1)%len(held)], nil }, func() {}, err
	case FromLoader:
		pull, stop := iter.Pull2(f.epochs(ctx))
		return func() (*data.Batch, error) { b, err, _ := pull(); return b, err }, stop, nil
	}
	return func() (*data.Batch, error) { return f.noise, nil }, func() {}, nil
}

// epochs yields the full batches of epoch after epoch. A smaller last batch is left out.
func (f *feed) epochs(ctx context.Context) iter.Seq2[*data.Batch, error] {
	return func(yield func(*data.Batch, error) bool) {
		for epoch := 1; ; epoch++ {
			for b, err := range f.loader.Epoch(ctx, epoch, 0) {
				if err == nil && b.N < f.batch {
					continue
				}
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

// held returns copies of the first batches.
func (f *feed) held(ctx context.Context) (list []*data.Batch, err error) {
	for b, err := range f.epochs(ctx) {
		if err != nil {
			return nil, err
		}
		c := *b
		c.Images, c.Crops, c.Labels, c.Index = slices.Clone(b.Images), slices.Clone(b.Crops), slices.Clone(b.Labels),
			slices.Clone(b.Index)
		c.Inputs = maps.Clone(b.Inputs)
		for name, v := range c.Inputs {
			c.Inputs[name] = slices.Clone(v)
		}
		if list = append(list, &c); len(list) == min(heldBatches, f.set.Len()/f.batch) {
			break
		}
	}
	return list, nil
}

// synthetic is a batch of noise.
func synthetic(m *nn.Model, n int, seed uint64) *data.Batch {
	c, r := m.Config, random.New(seed)
	b := &data.Batch{
		N: n, Height: c.Size, Width: c.Size, Channels: c.Channels,
		Images: make([]uint8, n*c.Size*c.Size*c.Channels),
		Crops:  make([]int32, 3*n),
		Labels: make([]int32, n),
		Inputs: map[string][]float32{},
	}
	for i := range b.Images {
		b.Images[i] = uint8(r.Uint64())
	}
	for i := range b.Labels {
		b.Labels[i] = int32(r.Uint64() % uint64(c.Classes))
	}
	for _, in := range m.Own { // whose batch is 1
		v := make([]float32, n*in.Shape().TotalSize())
		for i := range v {
			v[i] = float32(r.Float64())
		}
		b.Inputs[in.Name()] = v
	}
	return b
}
