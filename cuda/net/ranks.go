//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/nccl"
	"onlinerna/nn/device"
)

// RanksOptions configure how a device works with those of other processes.
type RanksOptions struct {
	ID         nccl.ID // made by one rank
	Rank, Size int
	// Narrow sends gradients as bfloat16 and sums them in float32.
	Narrow bool
}

// ranks are the devices of several processes. NCCL adds up their gradients on its own stream during the backward pass.
type ranks struct {
	d      *Device
	m      *nccl.Comm
	stream *driver.Stream
	point  *driver.Event  // of one stream, awaited by the other
	flag   *driver.Memory // one float32: 0, or NaN if the guard is not finite
	narrow bool
	out    *driver.Memory // sent elements of 16 bits
	in     *driver.Memory // received elements of 16 bits
}

var (
	_ device.Collective = (*Device)(nil)
	_ device.Ranks      = (*ranks)(nil)
)

// Ranks implements device.Collective.
func (d *Device) Ranks() device.Ranks {
	if d.ranks == nil {
		return nil
	}
	return d.ranks
}

// Join makes the device one of several ranks. It returns when all have called it. A missing NCCL is a
// [*lazy.NotFoundError].
func (d *Device) Join(o RanksOptions) (*nccl.Comm, error) {
	r := &ranks{d: d, narrow: o.Narrow}
	var err error
	if r.m, err = nccl.Join(d.c, o.ID, o.Rank, o.Size); err != nil {
		return nil, d.Explain(err)
	}
	d.ranks = r
	if r.stream, err = d.c.NewStream(); err == nil {
		r.point, err = d.c.NewEvent(false)
	}
	if err == nil {
		r.flag, err = d.c.Alloc(4)
	}
	return r.m, d.Explain(err)
}

func (r *ranks) close() error {
	if r == nil {
		return nil
	}
	errs := []error{r.m.Close()}
	for _, m := range []*driver.Memory{r.flag, r.out, r.in} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	if r.point != nil {
		errs = append(errs, r.point.Close())
	}
	if r.stream != nil {
		errs = append(errs, r.stream.Close())
	}
	return errors.Join(errs...)
}

// follow makes one stream wait for the work that is on another.
func (r *ranks) follow(later, before *driver.Stream) error {
	if err := r.point.Record(before); err != nil {
		return err
	}
	return later.Wait(r.point)
}

// launch runs a kernel with one thread for each element, concurrently with the device's work.
func (r *ranks) launch(file, name string, store, n int, args ...any) error {
	k, err := r.d.kernelOf(file, name, store)
	if err != nil {
		return err
	}
	grid, block := r.d.flat(n)
	return r.stream.Launch(k, grid, block, 0, args...)
}

// Guard implements device.Reducer: NaN or infinity times 0 is NaN, and so is any sum with it.
func (r *ranks) Guard(number device.Region) error {
	s, err := r.d.live(number, 1)
	if err != nil {
		return fmt.Errorf("cuda: guard: %w", err)
	}
	if err := r.follow(r.stream, r.d.stream); err != nil {
		return r.d.Explain(err)
	}
	const one = int64(1)
	if err = r.launch("vector.cu", "vec_fill", 0, 1, r.flag.All(), driver.Span{}, float32(0), one); err == nil {
		err = r.launch("vector.cu", "vec_add_scaled", 0, 1, r.flag.All(), driver.Span{}, float32(0), s, one)
	}
	if err == nil {
		err = r.m.AllReduce(r.stream, r.flag.All(), nccl.Float32, nccl.Sum)
	}
	if err == nil { // the loss stays this rank's own, with NaN added if any rank's was not finite
		err = r.launch("vector.cu", "vec_add_scaled", 0, 1, s, driver.Span{}, float32(1), r.flag.All(), one)
	}
	return r.d.Explain(err)
}

// Sum implements device.Reducer.
func (r *ranks) Sum(grad device.Vector, part device.Span) error {
	v, ok := grad.(*vector)
	if !ok || v.d != r.d {
		return fmt.Errorf("cuda: sum over ranks: vector %T belongs to another device", grad)
	}
	s, err := v.part(part.Off, part.Len)
	if err == nil {
		err = r.follow(r.stream, r.d.stream)
	}
	switch {
	case err != nil || part.Len == 0:
	case r.narrow:
		err = r.sumNarrow(s, part.Len)
	default:
		err = r.m.AllReduce(r.stream, s, nccl.Float32, nccl.Sum)
	}
	return r.d.Explain(err)
}

// bfloat16 is the number of that element type in the kernels' sources.
const bfloat16 = 1

// sumNarrow sums n elements sent as bfloat16: each rank receives one part from all ranks, sums it in float32 and sends
// the sums, rounded once more, to all.
func (r *ranks) sumNarrow(s driver.Span, n int) error {
	size, rank := r.m.Size(), r.m.Rank()
	const line = 8 // elements in 16 bytes
	each := ((n+size-1)/size + line - 1) / line * line
	if err := r.room(2 * int64(each*size)); err != nil {
		return err
	}
	part := func(m *driver.Memory, k int) driver.Span { return m.Span(2*int64(k*each), 2*int64(each)) }
	if err := r.launch("vector.cu", "vec_narrow", bfloat16, n, s, r.out.All(), int64(n)); err != nil {
		return err
	}
	err := r.m.Group(func() error {
		for k := range size {
			if err := errors.Join(r.m.Send(r.stream, part(r.out, k), nccl.BFloat16, k),
				r.m.Recv(r.stream, part(r.in, k), nccl.BFloat16, k)); err != nil {
				return err
			}
		}
		return nil
	})
	own := part(r.out, rank)
	if err == nil {
		err = r.launch("ranks.cu", "ranks_sum", bfloat16, each, r.in.All(), int32(size), own, int64(each))
	}
	if err == nil {
		err = r.m.AllGather(r.stream, r.out.Span(0, 2*int64(each*size)), own, nccl.BFloat16)
	}
	if err == nil {
		err = r.launch("ranks.cu", "ranks_widen", bfloat16, n, r.out.All(), s, int64(n))
	}
	return err
}

// room returns memory for sent and for received elements.
func (r *ranks) room(bytes int64) error {
	for _, m := range []**driver.Memory{&r.out, &r.in} {
		if *m != nil && (*m).Bytes() >= bytes {
			continue
		}
		x, err := r.d.c.Alloc(bytes)
		if err == nil {
			err = r.stream.Fill(x.All(), 0)
		}
		if err != nil {
			return err
		}
		if *m != nil { // running work may still use it
			r.d.outgrown = append(r.d.outgrown, *m)
		}
		*m = x
	}
	return nil
}

// Wait implements device.Reducer.
func (r *ranks) Wait() error { return r.d.Explain(r.follow(r.d.stream, r.stream)) }

// Gather implements device.Ranks.
func (r *ranks) Gather(v device.Vector, part int) error {
	x, ok := v.(*vector)
	if !ok || x.d != r.d {
		return fmt.Errorf("cuda: gather over ranks: vector %T belongs to another device", v)
	}
	err := r.follow(r.stream, r.d.stream)
	if err == nil {
		err = r.m.Group(func() error {
			for k := range r.m.Size() {
				off := min(k*part, x.n)
				n := min(part, x.n-off)
				if n == 0 {
					continue
				}
				s, err := x.part(off, n)
				if err == nil {
					err = r.m.Broadcast(r.stream, s, nccl.Float32, k)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil {
		err = r.follow(r.d.stream, r.stream)
	}
	if err == nil {
		err = x.refresh()
	}
	return r.d.Explain(err)
}
