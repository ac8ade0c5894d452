//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"slices"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// wider describes a convolution, which cuDNN lacks or cannot run in a precision, in the next more exact precision that
// it has on this card, and warns. If there is none, it returns err, the reason for the first precision, joined with the
// reasons for the others.
func (d *Device) wider(key convKey, than number.Precision, err error) (*dnn.Plans, error) {
	o := d.planning()
	tried := []error{err}
	for _, p := range []number.Precision{number.TF32, number.Float32} {
		if than == number.Float32 || than == p || supports(d.info, p) != nil {
			continue
		}
		o.Precision = p
		v, failed := d.dnn.NewPlans(key.shape.Graph(key.kind, p), o)
		if errors.Is(failed, dnn.ErrNoPlan) {
			tried = append(tried, failed)
			continue
		}
		if failed == nil && d.opts.Warn != nil {
			d.opts.Warn(fmt.Sprintf("%v of %v runs in %v, which is slower, because %v", key.kind, key.shape, p, err))
		}
		return v, failed
	}
	return nil, errors.Join(tried...)
}

// convolve adds the convolution of a and c, stored in v's precision, with the result to. If cuDNN can run none of its
// plans, a more exact convolution replaces it and works on copies in memory of its own.
func (b *binding) convolve(v *dnn.Plans, a, c, to, work driver.Span) {
	if b.err != nil {
		return
	}
	d := b.d
	from := []driver.Span{a, c}
	narrow := v.Options().Precision.Bytes() == 2
	given, made := slices.Clone(from), to
	var tried []error
	for {
		next, ok := d.instead[v]
		if !ok {
			err := v.Settle([]driver.Span{given[0], given[1], made}, work)
			if !errors.Is(err, dnn.ErrNoPlan) {
				b.fail(err)
				break
			}
			wider, failed := d.wider(convKey{v.Graph().Kind(), v.Shape()}, v.Options().Precision, err)
			if failed != nil {
				b.fail(errors.Join(append(tried, failed)...))
				return
			}
			tried, next, d.instead[v] = append(tried, err), wider, wider
		}
		v = next
		var room int64
		sizes := v.Graph().Places()
		for _, n := range append(sizes, v.Workspace()) {
			room += int64(align(int(n)))
		}
		own, err := d.ownRoom(room)
		if err != nil {
			b.fail(err)
			return
		}
		take := func(n int64) (s driver.Span) {
			s = own.Span(0, n)
			if rest := int64(align(int(n))); rest < own.Bytes() {
				own = own.Span(rest, own.Bytes()-rest)
			}
			return s
		}
		if narrow {
			given[0], given[1], made = take(sizes[0]), take(sizes[1]), take(sizes[2])
		}
		work = take(v.Workspace())
	}
	if made == to {
		b.calls = append(b.calls, func() error { return v.Run([]driver.Span{a, c, to}, work) })
		return
	}
	for i, s := range from {
		b.recast(given[i], form{}, s, form{narrow: true})
	}
	b.calls = append(b.calls, func() error { return v.Run([]driver.Span{given[0], given[1], made}, work) })
	b.recast(to, form{narrow: true}, made, form{})
}

// ownRoom returns memory for one op at a time, separate from the planned arena.
func (d *Device) ownRoom(bytes int64) (driver.Span, error) {
	for _, m := range d.rooms {
		if m.Bytes() >= bytes {
			return m.Span(0, bytes), nil
		}
	}
	m, err := d.c.Alloc(bytes)
	if err != nil {
		return driver.Span{}, err
	}
	d.rooms = append(d.rooms, m)
	return m.Span(0, bytes), nil
}
