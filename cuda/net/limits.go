//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
	"onlinerna/nn/device"
)

var _ device.Gauge = (*Device)(nil)

// Measurement of the limits: sizes double until a round takes limitTime, so that the stand-in's sizes stay small.
const (
	limitRounds  = 5
	limitRepeats = 10
	limitTime    = 4 * time.Millisecond // of a round
	leastMatrix  = 128
	mostMatrix   = 8192
	leastCopy    = 1 << 20
	mostCopy     = 512 << 20
)

// Limits implements device.Gauge: products of square matrices by cuBLAS in each precision, the device's own first, and
// copies within the GPU's memory. It leaves out precisions that the card or its cuBLAS lacks.
func (d *Device) Limits() (device.Limits, error) {
	var l device.Limits
	own := d.opts.Precision
	for _, p := range append([]number.Precision{own}, number.Float32, number.TF32, number.BFloat16, number.Float16) {
		if p == own && len(l.Products) > 0 {
			continue
		}
		limit, err := d.productLimit(p)
		if e := (*driver.Error)(nil); p != own && errors.As(err, &e) && e.Name == "CUBLAS_STATUS_NOT_SUPPORTED" {
			continue
		}
		if err != nil {
			return l, fmt.Errorf("measuring products in %v: %w", p, d.Explain(err))
		}
		l.Products = append(l.Products, limit)
	}
	var err error
	if l.Bandwidth, err = d.copyLimit(); err != nil {
		return l, fmt.Errorf("measuring the bandwidth: %w", d.Explain(err))
	}
	// The measurement's memory does not count for nets.
	return l, d.Explain(errors.Join(d.c.ResetPeak(), d.c.Trim()))
}

// productLimit measures matrix products.
func (d *Device) productLimit(p number.Precision) (device.Limit, error) {
	limit := device.Limit{Name: p.String()}
	for n := leastMatrix; ; n *= 2 {
		bytes := int64(p.Bytes()) * int64(n) * int64(n)
		took, err := d.best(3*bytes, noise(p), func(m driver.Span) error {
			return d.blas.Gemm(p, false, false, n, n, n, 1, m.Span(0, bytes), n, m.Span(bytes, bytes), n, 0,
				m.Span(2*bytes, bytes), n, p.Bytes() == 2)
		})
		if errors.Is(err, driver.ErrOutOfMemory) && n > leastMatrix {
			return limit, nil
		}
		if err != nil {
			return limit, err
		}
		if speed := 2 * float64(n) * float64(n) * float64(n) / took.Seconds(); speed > limit.Speed {
			limit.Speed, limit.How = speed, fmt.Sprintf("product of %d×%d matrices by cuBLAS", n, n)
		}
		if limitRepeats*took > limitTime || n == mostMatrix {
			return limit, nil
		}
	}
}

// copyLimit measures copies: each byte counts as read and written.
func (d *Device) copyLimit() (device.Limit, error) {
	limit := device.Limit{Name: "copy"}
	for n := int64(leastCopy); ; n *= 2 {
		took, err := d.best(2*n, noise(number.Float32), func(m driver.Span) error {
			return d.stream.Copy(m.Span(0, n),
				m.Span(n, n))
		})
		if errors.Is(err, driver.ErrOutOfMemory) && n > leastCopy {
			return limit, nil
		}
		if err != nil {
			return limit, err
		}
		// Sizes within the caches do not measure the memory: the last, largest size counts.
		limit.Speed, limit.How = float64(2*n)/took.Seconds(), "copy of "+driver.Size(n)
		if limitRepeats*took > limitTime || n == mostCopy {
			return limit, nil
		}
	}
}

// noise is a block of random elements between -1 and 1: a card multiplies zeros faster than other numbers.
func noise(p number.Precision) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, leastCopy/4)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	if p.Bytes() == 2 {
		return driver.Bytes(number.Narrow(p, x))
	}
	return driver.Bytes(x)
}

// best is the shortest time of a call on n bytes filled with block, by the GPU's clock, over several rounds of calls.
func (d *Device) best(n int64, block []byte, call func(m driver.Span) error) (best time.Duration, err error) {
	m, err := d.c.Alloc(n)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	for at := int64(0); at < n; at += int64(len(block)) {
		part := min(n-at, int64(len(block)))
		if err := d.stream.CopyIn(m.Span(at, part), block[:part]); err != nil {
			return 0, err
		}
	}
	for round := range limitRounds + 1 {
		if err := d.Mark(0); err != nil {
			return 0, err
		}
		for range limitRepeats {
			if err := call(m.All()); err != nil {
				return 0, err
			}
		}
		if err := d.Mark(1); err != nil {
			return 0, err
		}
		took, err := d.Between(0, 1)
		if err != nil {
			return 0, err
		}
		took = max(took/limitRepeats, time.Nanosecond)
		if round == 1 || round > 1 && took < best { // round 0 loads the kernel
			best = took
		}
		if round > 0 && limitRepeats*took > 10*limitTime {
			break
		}
	}
	return best, nil
}
