package serve

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"onlinerna/data"
)

// job is an image on its way through the net.
type job struct {
	ctx   context.Context
	image *data.Batch // of one
	at    time.Time
	done  chan result // takes one
}

type result struct {
	probabilities []float64
	err           error
}

// batches computes the batches of the queue until quit closes. After an error of the net, which it gives to failed, all
// jobs get that.
func (s *Server) batches(quit <-chan struct{}, failed func(error)) {
	b, logits := s.batch(s.o.Batch), make([]float32, s.o.Batch*s.classes())
	var err error
	for {
		select {
		case <-quit:
			return
		case first := <-s.queue:
			jobs := slices.DeleteFunc(s.gather(first, quit), func(j *job) bool {
				if j.ctx.Err() != nil { // nobody waits for it
					j.done <- result{err: j.ctx.Err()}
				}
				return j.ctx.Err() != nil
			})
			if len(jobs) == 0 {
				continue
			}
			if err == nil {
				if err = s.compute(b, logits, jobs); err != nil {
					failed(err)
				}
			}
			for i, j := range jobs {
				if err != nil {
					j.done <- result{err: err}
					continue
				}
				j.done <- result{probabilities: s.p.Net.Meaning.Values(logits[i*s.classes():][:s.classes()])}
			}
		}
	}
}

// gather adds images to a batch: those that are there, and those that come while the first may wait.
func (s *Server) gather(first *job, quit <-chan struct{}) []*job {
	jobs := []*job{first}
	late := time.NewTimer(s.o.Wait - time.Since(first.at))
	defer late.Stop()
	for len(jobs) < s.o.Batch {
		select {
		case j := <-s.queue:
			jobs = append(jobs, j)
			continue
		default:
		}
		if s.coming.Load() == 0 {
			return jobs
		}
		select {
		case j := <-s.queue:
			jobs = append(jobs, j)
		case <-late.C:
			return jobs
		case <-quit:
			return jobs
		}
	}
	return jobs
}

// compute writes the logits of jobs. It fills their batch up with black images.
func (s *Server) compute(b *data.Batch, logits []float32, jobs []*job) error {
	n := len(jobs)
	for i, j := range jobs {
		copyImage(b, i, j.image, 0)
	}
	size := s.sizes[slices.IndexFunc(s.sizes, func(k int) bool { return k >= n })]
	pixels := len(b.Images) / b.N
	clear(b.Images[n*pixels : size*pixels])
	clear(b.Crops[3*n : 3*size])
	from := time.Now()
	_, err := s.p.Net.Evaluate(first(b, size), logits[:size*s.classes()])
	s.metrics.batch(n, time.Since(from))
	return err
}

func (s *Server) classes() int { return s.p.Net.Model().Config.Classes }

// batch returns n black images.
func (s *Server) batch(n int) *data.Batch {
	size, channels := s.p.Meta.ImageSize, s.p.Channels
	return &data.Batch{N: n, Height: size, Width: size, Channels: channels, Images: make([]uint8, n*size*size*channels),
		Crops: make([]int32, 3*n), Labels: make([]int32, n), Index: make([]int, n)}
}

// first is the batch of the first n images of b.
func first(b *data.Batch, n int) *data.Batch {
	c := *b
	c.N = n
	c.Images, c.Crops = b.Images[:len(b.Images)/b.N*n], b.Crops[:3*n]
	c.Labels, c.Index = b.Labels[:n], b.Index[:n]
	return &c
}

// copyImage copies image j of src to image i of dst.
func copyImage(dst *data.Batch, i int, src *data.Batch, j int) {
	pixels := len(src.Images) / src.N
	copy(dst.Images[i*pixels:], src.Images[j*pixels:(j+1)*pixels])
	copy(dst.Crops[3*i:], src.Crops[3*j:3*j+3])
}

// probe runs the net on noise at each power of two up to the largest batch. It keeps the sizes at which images have the
// logits, bit for bit, that they have among others in the largest: devices choose other algorithms for small batches.
func (s *Server) probe() error {
	whole, part := s.batch(s.o.Batch), s.batch(s.o.Batch)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range whole.Images {
		whole.Images[i] = uint8(r.Uint32())
	}
	k := s.classes()
	want, got := make([]float32, s.o.Batch*k), make([]float32, s.o.Batch*k)
	if _, err := s.p.Net.Evaluate(whole, want); err != nil {
		return err
	}
	// same computes the last n images, in the opposite order and black ones behind them.
	same := func(n, size int) (bool, error) {
		clear(part.Images)
		for i := range n {
			copyImage(part, i, whole, whole.N-1-i)
		}
		if _, err := s.p.Net.Evaluate(first(part, size), got[:size*k]); err != nil {
			return false, err
		}
		for i := range n {
			if !slices.Equal(got[i*k:(i+1)*k], want[(whole.N-1-i)*k:][:k]) {
				return false, nil
			}
		}
		return true, nil
	}
	for size := 1; size < s.o.Batch; size *= 2 {
		ok, err := same(size, size)
		if err != nil {
			return err
		}
		if ok {
			s.sizes = append(s.sizes, size)
		}
	}
	s.sizes = append(s.sizes, s.o.Batch)
	var err error
	s.alone, err = same((s.o.Batch+1)/2, s.o.Batch)
	return err
}
