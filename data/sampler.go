package data

import (
	"image"

	"onlinerna/data/augment"
	"onlinerna/internal/parallel"
)

// A Sampler reads single images as a [Loader] without augmentation does, bit for bit. It serves one goroutine at a
// time.
type Sampler struct{ w worker }

// NewSampler returns one of several samplers that share a budget for decoding. fast is LoaderOptions.FastDecode.
func NewSampler(b *Budget, samplers int, fast bool) *Sampler {
	s := &Sampler{worker{scratch: *NewScratch(b, min(samplers, parallel.Most))}}
	s.w.scratch.augment.Resizer.Fast = fast
	return s
}

// Dropped returns how many bytes of large images the sampler left to the garbage collector since the last call.
func (s *Sampler) Dropped() int64 {
	n := s.w.scratch.gone
	s.w.scratch.gone = 0
	return n
}

// Sample reads image i of a set as a batch of one. The transform must be one for evaluation.
func (s *Sampler) Sample(ds Dataset, i int, tr augment.Transform) (*Batch, error) {
	b := &newSlot(1, tr.Size(), ds.Channels(), 0, InputsOf(ds)).batch
	b.N = 1
	w := &s.w
	w.tr, w.scratch.open = tr, augment.OpensImages(tr)
	w.region = func(width, height int) image.Rectangle { return tr.Region(width, height, &w.random) }
	if err := w.read(ds, i, b, 0); err != nil {
		return nil, err
	}
	return b, nil
}
