//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
)

// partBlock is the largest number of elements of a part: a block of threads takes a part at a time.
const partBlock = 8 << 10

// partition is the parts of the parameters for the steps of an optimiser, in GPU memory, with what is found of them.
type partition struct {
	n        int
	adaptive bool
	noDecay  []device.Span
	factors  []device.Factor
	tensors  []device.Span

	count  int            // of parts
	memory *driver.Memory // all of the following
	parts  driver.Span    // Part of vector.cu
	starts driver.Span    // the first part of each tensor, and count: int32
	sums   driver.Span    // two of each part, float64
	ratios driver.Span    // of each tensor, float32
}

// partition is that of u for n parameters. It stays for steps to come.
func (d *Device) partition(u *device.Update, n int) (*partition, error) {
	p := &d.parts
	_, adaptive := u.Optimizer.(device.Adaptive)
	if p.memory != nil && p.n == n && p.adaptive == adaptive && slices.Equal(p.noDecay, u.NoDecay) && slices.Equal(p.factors, u.Factors) &&
		(!adaptive || slices.Equal(p.tensors, u.Tensors)) {
		return p, nil
	}
	if m := p.memory; m != nil {
		*p = partition{}
		if err := m.Close(); err != nil {
			return nil, err
		}
	}
	list := u.Parts(nil, n, partBlock)
	tensors := 0
	if adaptive {
		tensors = len(u.Tensors)
	}
	table := make([]int64, 0, 4*len(list))
	starts := make([]int32, tensors+1)
	for i := range starts {
		starts[i] = int32(len(list))
	}
	for i, x := range slices.Backward(list) {
		if adaptive {
			for t := x.Tensor; t >= 0 && int(starts[t]) > i; t-- { // tensors without elements begin where the next one does
				starts[t] = int32(i)
			}
		}
	}
	for _, x := range list {
		last := int64(math.Float32bits(float32(x.Rate))) << 32 // behind decays, an int
		if x.Decays {
			last |= 1
		}
		table = append(table, int64(x.Off), int64(x.Len), int64(x.Tensor), last)
	}
	bytes := [4]int64{8 * int64(len(table)), 4 * int64(len(starts)), 16 * int64(len(list)), 4 * int64(tensors)}
	var at [5]int64
	for i, b := range bytes {
		at[i+1] = at[i] + (b+255)/256*256
	}
	m, err := d.c.Alloc(max(at[4], 256)) // all may be left alone
	if err != nil {
		return nil, err
	}
	q := partition{n: n, adaptive: adaptive, noDecay: slices.Clone(u.NoDecay), factors: slices.Clone(u.Factors), tensors: slices.Clone(u.Tensors), count: len(list), memory: m,
		parts: m.Span(at[0], bytes[0]), starts: m.Span(at[1], bytes[1]), sums: m.Span(at[2], bytes[2]), ratios: m.Span(at[3], bytes[3])}
	if err := errors.Join(d.stream.CopyIn(q.parts, driver.Bytes(table)), d.stream.CopyIn(q.starts, driver.Bytes(starts))); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	*p = q
	return p, nil
}

// Update implements device.Vector. Where the loss is scaled, a step with a gradient that is not finite is skipped, and the scale adjusted.
func (v *vector) Update(u device.Update) error {
	if err := u.Check(v); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	name := u.Optimizer.Name()
	grad, err := v.other(name+": gradient", u.Grad)
	if err != nil {
		return err
	}
	var state [device.MaxState]driver.Span
	for i, s := range u.Optimizer.State() {
		if state[i], err = v.other(name+": "+s, u.State[i]); err != nil {
			return err
		}
	}
	numbers, err := v.d.live(u.Live.Numbers, device.NumbersLen)
	if err != nil {
		return fmt.Errorf("cuda: %s: numbers: %w", name, err)
	}
	guard, err := v.d.live(u.Live.Guard, 1)
	if err != nil {
		return fmt.Errorf("cuda: %s: guard: %w", name, err)
	}
	if v.n == 0 {
		return nil
	}
	parts, err := v.d.partition(&u, v.n)
	if err != nil {
		return v.d.Explain(fmt.Errorf("cuda: %s: %w", name, err))
	}
	loss := v.d.scale()
	if loss.Bytes() > 0 {
		if err := v.launch("vec_check", grad, int64(v.n), loss.Part(0, 0)); err != nil {
			return err
		}
	}
	now := u.Numbers.Values()
	args := []any{v.all().Updated(), v.narrowed().Written(), grad, state[0].Updated(), state[1].Updated(), parts.parts, int32(parts.count)}
	for _, h := range u.Optimizer.Hyper() {
		args = append(args, h)
	}
	args = append(args, float32(now[0]), float32(now[1]), float32(now[2]), numbers, guard, loss, u.MaxNorm)
	if err := v.step(&u, parts, grad, args); err != nil {
		return err
	}
	if loss.Bytes() > 0 {
		return v.d.nextScale()
	}
	return nil
}

// live is n elements that a step reads when it runs, or nothing.
func (d *Device) live(r device.Region, n int) (driver.Span, error) {
	if r.Memory == nil {
		return driver.Span{}, nil
	}
	s, err := d.span(r)
	if err == nil && s.Bytes() != 4*int64(n) {
		err = fmt.Errorf("region of %d bytes: want %d", s.Bytes(), 4*n)
	}
	return s, err
}

// step launches the kernels of u's optimiser, which have args in common.
func (v *vector) step(u *device.Update, p *partition, grad driver.Span, args []any) error {
	if p.count == 0 {
		return nil
	}
	o := u.Optimizer
	_, ok := o.(device.Adaptive)
	names := o.Passes()
	blocks := min(p.count, v.d.blocks())
	var ratios driver.Span
	var norm driver.Span
	if u.Clips() {
		var err error
		if norm, err = v.total("vec_squares", grad); err != nil {
			return err
		}
	}
	if ok {
		ratios = p.ratios
		with := append(slices.Clone(args), norm)
		for i, a := range with { // nothing of it is written yet
			if x, ok := a.(driver.Access); ok {
				with[i] = x.Span
			}
		}
		with[1] = v.narrowed().Part(0, 0)
		if err := v.launchOn("measure_"+names.Measure, blocks, append(slices.Clone(with), p.sums.Written())...); err != nil {
			return err
		}
		for i, a := range with {
			if x, ok := a.(driver.Span); ok && i < 5 { // it has the sums
				with[i] = x.Part(0, 0)
			}
		}
		if err := v.launchOn("ratios_"+names.Measure, len(p.tensors), append(with, p.sums, p.starts, ratios.Written())...); err != nil {
			return err
		}
	}
	return v.launchOn("update_"+names.Apply, blocks, append(args, norm, ratios)...)
}
