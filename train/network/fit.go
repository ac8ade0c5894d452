package network

import (
	"errors"
	"fmt"
	"math"

	"onlinerna/internal/hostmemory"
	"onlinerna/internal/text"
	"onlinerna/nn/device"
)

// AutoBatch as a batch size selects the result of [Network.Fit]: the largest batch that fits in the device's memory, 1,
// 2, 4 or a multiple of 8; at most 256 in the host's memory.
const AutoBatch = math.MinInt

const (
	// hostBatch is Fit's limit in the host's memory: a processor is no faster with larger batches.
	hostBatch = 256
	// inputCopies bounds the copies of a batch in memory: those of the lanes and those that loaders make ahead.
	inputCopies = 8
	// fitPlans bounds the plans made to find the largest batch: each takes the time of building a graph.
	fitPlans = 8
)

// room is a device's free memory in bytes and the part of it to spare; 0 if unknown.
func room(dev device.Device) (free, spare int64, own bool, err error) {
	if d, ok := device.As[device.OwnMemory](dev); ok {
		free, spare, err = d.Room()
		return free, spare, true, err
	}
	free = hostmemory.Free()
	return free, free / 10, false, nil
}

// A Fit is the largest batch that fits, with its memory.
type Fit struct {
	Batch       int
	Bytes       int64  // of the batch, beside the memory allocated before
	Free, Spare int64  // free memory, and the part of it left unused
	Bound       string // the limit that ended the search, if Batch is the largest size considered
}

func (f *Fit) String() string {
	s := fmt.Sprintf("batch %d: it takes %s, of %s that are free %s are spared", f.Batch, text.Bytes(f.Bytes),
		text.Bytes(f.Free), text.Bytes(f.Spare))
	if f.Bound != "" {
		s += "; " + f.Bound
	}
	return s
}

// A MemoryError means that training at a batch size takes more memory than is free; it names the batch that would fit.
type MemoryError struct {
	Model, Device string
	Batch         int // 0: the weights and their gradients take too much
	Bytes, Free   int64
	Fits          int // 0 if none fits
}

func (e *MemoryError) Error() string {
	what := fmt.Sprintf("%s at batch %d takes", e.Model, e.Batch)
	if e.Batch == 0 {
		what = fmt.Sprintf("%s, its weights and their gradients alone, takes", e.Model)
	}
	s := fmt.Sprintf("%s %s of the memory of device %s, and %s are free: ", what, text.Bytes(e.Bytes), e.Device,
		text.Bytes(e.Free))
	if e.Fits == 0 {
		return s + "no batch fits; choose a smaller model or smaller images, or free memory"
	}
	return s + fmt.Sprintf("batch %d fits", e.Fits)
}

// checkWeights returns a *MemoryError if that many weights and their gradients do not fit: allocating more than the
// host has would end the program.
func (n *Network) checkWeights(weights int) error {
	bytes := 2 * int64(weights) * int64(n.Device.DType().Size())
	free, _, _, err := room(n.Device)
	if err != nil || free == 0 || bytes <= free {
		return err
	}
	return &MemoryError{Model: n.arch, Device: n.Device.Name(), Bytes: bytes, Free: free}
}

// BatchBytes is the memory in bytes that training at a batch size takes, beside the network's vectors.
func (n *Network) BatchBytes(batch int) (int64, error) {
	s, err := n.Plan(batch)
	return int64(s.Arena) + inputCopies*int64(s.Inputs), err
}

// Fit finds the largest batch of at most most images that fits if other bytes remain to be allocated for any batch. It
// returns a *MemoryError if no batch fits.
func (n *Network) Fit(most int, other int64) (*Fit, error) {
	free, spare, own, err := room(n.Device)
	if err != nil {
		return nil, err
	}
	if free == 0 {
		return nil, errors.New("the system does not say how much memory is free: choose a batch")
	}
	bound := fmt.Sprintf("there are no more than %d images", most)
	if !own && most > hostBatch {
		most, bound = hostBatch, "a processor computes no faster with more"
	}
	f := &Fit{Free: free, Spare: spare}
	var tooLarge *device.BoundError
	tried := 1
	f.Batch, f.Bytes, err = largest(usual(most), free-spare-other, func(batch int) (int64, error) {
		tried = batch
		bytes, err := n.BatchBytes(batch)
		errors.As(err, &tooLarge)
		return bytes, err
	})
	if err != nil {
		return nil, err
	}
	f.Bytes += other
	switch {
	case f.Batch == usual(most):
		f.Bound = bound
	case tooLarge != nil:
		f.Bound = fmt.Sprintf("a device %s takes tensors of at most %d elements", n.Device.Name(), tooLarge.Most)
	}
	if f.Batch == 0 {
		return nil, &MemoryError{Model: n.arch, Device: n.Device.Name(), Batch: tried, Bytes: f.Bytes, Free: free - spare}
	}
	return f, nil
}

// CheckBatch returns a *MemoryError if training at a batch size takes more memory than is free and other bytes remain
// to be allocated for any batch.
func (n *Network) CheckBatch(batch int, other int64) error {
	free, _, _, err := room(n.Device)
	if err != nil || free == 0 {
		return err
	}
	bytes := int64(0)
	if batch > 4 { // extrapolates for far too large batches: planning takes memory, too
		two, err := n.BatchBytes(2)
		if err != nil {
			return err
		}
		four, err := n.BatchBytes(4)
		if err != nil {
			return err
		}
		bytes = int64(min(float64(two)+float64(four-two)/2*float64(batch-2), 1e18))
	}
	if bytes < 2*free {
		if bytes, err = n.BatchBytes(batch); err != nil {
			return err
		}
	}
	return n.checkBytes(batch, bytes, other)
}

// checkBytes is CheckBatch with the batch's bytes known.
func (n *Network) checkBytes(batch int, bytes, other int64) error {
	free, _, _, err := room(n.Device)
	if err != nil || free == 0 || bytes <= free-other {
		return err
	}
	e := &MemoryError{Model: n.arch, Device: n.Device.Name(), Batch: batch, Bytes: bytes + other, Free: free}
	if f, err := n.Fit(max(batch-1, 1), other); err == nil { // one image may be too few for another reason
		e.Fits = f.Batch
	}
	return e
}

// usual is the largest usual batch of at most n images: 1, 2, 4 or a multiple of 8.
func usual(n int) int {
	switch {
	case n >= 8:
		return n &^ 7
	case n >= 4:
		return 4
	}
	return max(1, min(n, 2))
}

// largest finds the largest usual batch of at most most images and limit bytes, and its bytes; if none fits, it returns
// 0 and the bytes of the first. That is one image, or two where one gives a batch normalisation too few values. Bytes
// grow about linearly, so few batches are planned. A large batch that cannot be planned counts as too large.
func largest(most int, limit int64, bytes func(batch int) (int64, error)) (batch int, takes int64, err error) {
	first := 1
	least, err := bytes(first)
	if err != nil && most > 1 {
		first = 2
		least, err = bytes(first)
	}
	if err != nil || least > limit {
		return 0, least, err
	}
	lo, hi := first, most+1 // lo fits, hi does not
	at := map[int]int64{first: least}
	slope := max(1, least/2)
	for next := usual(min(8, most)); ; {
		if next > lo && next < hi {
			n, err := bytes(next)
			switch {
			case err != nil && next <= 8:
				return 0, 0, err
			case err != nil || n > limit:
				hi = next
			default:
				lo = next
			}
			if err == nil {
				at[next] = n
				slope = max(1, (n-least)/int64(next-first))
			}
		}
		if len(at) >= fitPlans || usual(hi-1) <= lo {
			return lo, at[lo], nil
		}
		guess := int64(lo) + (limit-at[lo])/slope
		next = usual(int(min(guess, int64(hi-1))))
		if next <= lo { // the bytes do not grow linearly
			next = usual((lo + hi) / 2)
		}
		if next <= lo {
			return lo, at[lo], nil
		}
	}
}
