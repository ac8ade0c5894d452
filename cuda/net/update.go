//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/kernels"
	"onlinerna/cuda/number"
	"onlinerna/nn/device"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// partBlock is the maximal number of elements of a part: a block of threads takes one part at a time.
const partBlock = 8 << 10

// partition splits the parameters for an optimiser's steps into parts, in GPU memory, with the steps' results for each.
type partition struct {
	n        int
	apart    bool // split by tensor
	noDecay  []device.Span
	factors  []device.Factor
	tensors  []device.Span
	matrices []device.Matrix

	count  int            // number of parts
	memory *driver.Memory // contains the spans below
	parts  driver.Span    // Part of step.h
	starts driver.Span    // the first part of each tensor, and count: int32
	sums   driver.Span    // two sums for each part, float64
	ratios driver.Span    // one for each tensor, float64
}

// partition returns the partition of n parameters for u. It is kept for later steps.
func (d *Device) partition(u *device.Update, n int) (*partition, error) {
	p := &d.parts
	apart := u.Apart()
	if p.memory != nil && p.n == n && p.apart == apart && slices.Equal(p.noDecay, u.NoDecay) &&
		slices.Equal(p.factors, u.Factors) &&
		(!apart || slices.Equal(p.tensors, u.Tensors) && slices.Equal(p.matrices, u.Matrices)) {
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
	if apart {
		tensors = len(u.Tensors)
	}
	table := make([]int64, 0, 6*len(list))
	starts := make([]int32, tensors+1)
	for i := range starts {
		starts[i] = int32(len(list))
	}
	for i, x := range slices.Backward(list) {
		if apart {
			for t := x.Tensor; t >= 0 && int(starts[t]) > i; t-- { // empty tensors start where the next one does
				starts[t] = int32(i)
			}
		}
	}
	for _, x := range list {
		last := int64(math.Float32bits(float32(x.Rate))) << 32 // after decays, an int
		if x.Decays {
			last |= 1
		}
		var m device.Matrix
		if x.Matrix >= 0 {
			m = u.Matrices[x.Matrix]
		}
		table = append(table, int64(x.Off), int64(x.Len), int64(x.Tensor), last, int64(m.Rows), int64(m.Columns))
	}
	bytes := [4]int64{8 * int64(len(table)), 4 * int64(len(starts)), 16 * int64(len(list)), 8 * int64(tensors)}
	var at [5]int64
	for i, b := range bytes {
		at[i+1] = at[i] + (b+255)/256*256
	}
	m, err := d.c.Alloc(max(at[4], 256)) // without parts the size would be 0
	if err != nil {
		return nil, err
	}
	q := partition{n: n, apart: apart, noDecay: slices.Clone(u.NoDecay), factors: slices.Clone(u.Factors),
		tensors:  slices.Clone(u.Tensors),
		matrices: slices.Clone(u.Matrices), count: len(list), memory: m,
		parts: m.Span(at[0], bytes[0]), starts: m.Span(at[1], bytes[1]), sums: m.Span(at[2], bytes[2]),
		ratios: m.Span(at[3], bytes[3])}
	if err := errors.Join(d.stream.CopyIn(q.parts, driver.Bytes(table)),
		d.stream.CopyIn(q.starts, driver.Bytes(starts))); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	*p = q
	return p, nil
}

// Update implements device.Vector. With a scaled loss, a step with a gradient that is not finite is skipped and the
// scale adjusted.
func (v *vector) Update(u device.Update) error {
	if err := u.Check(v); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	name := u.Optimizer.Name()
	grad, err := v.other(name+": gradient", u.Grad)
	if err != nil {
		return err
	}
	var state [update.MaxState]driver.Span
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
	now, limits := u.Numbers.Values(), u.Limits()
	args := []any{parts.parts, int32(parts.count), float32(now[0]), float32(now[1]), float32(now[2]), float32(now[3]),
		numbers, guard, loss, limits[0].Norm, limits[1].Norm}
	if err := v.step(&u, parts, grad, state, args); err != nil {
		return err
	}
	if loss.Bytes() > 0 {
		return v.d.nextScale()
	}
	return nil
}

// live returns n elements that a step reads when it runs, or an empty span.
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

// step launches the kernels of u's passes, which share args.
func (v *vector) step(u *device.Update, p *partition, grad driver.Span, state [update.MaxState]driver.Span,
	args []any) error {
	if p.count == 0 {
		return nil
	}
	passes, err := v.d.passes(u)
	if err != nil {
		return err
	}
	var norm, ratios driver.Span
	if u.Clips() {
		if norm, err = v.total("vec_squares", grad); err != nil {
			return err
		}
	}
	blocks := min(p.count, v.d.blocks())
	vectors := [update.Vectors]driver.Span{v.all(), grad, state[0], state[1]}
	for _, x := range passes {
		var with []any
		for i, s := range vectors {
			a := s.Part(0, 0)
			switch {
			case x.reads[i] && x.writes[i]:
				a = s.Updated()
			case x.reads[i]:
				a = s.Part(s.Bytes(), 0)
			case x.writes[i]:
				a = s.Written()
			}
			with = append(with, a)
			if i == 0 { // the 16-bit copy follows the parameters
				a := v.narrowed().Part(0, 0)
				if x.writes[0] {
					a = v.narrowed().Written()
				}
				with = append(with, a)
			}
		}
		with = append(append(with, args...), norm)
		var sums driver.Span
		if x.ratios != nil {
			sums = p.sums
		}
		if err := v.launchKernel(x.step, "step", driver.Dim{X: blocks}, append(with[:len(with):len(with)], ratios,
			sums.Written())...); err != nil {
			return err
		}
		if x.orthogonal.Steps > 0 {
			z, err := v.d.orthogonalizer(x.orthogonal, u, v.n)
			if err == nil {
				err = z.Run()
			}
			if err != nil {
				return err
			}
		}
		if x.ratios != nil {
			for i := range vectors { // the kernel returns their sums
				with[i+min(i, 1)] = vectors[i].Part(0, 0)
			}
			with[1] = v.narrowed().Part(0, 0)
			ratios = p.ratios
			with = append(with, p.sums, p.starts, ratios.Written())
			if err := v.launchKernel(x.ratios, "ratios", driver.Dim{X: len(p.tensors)}, with...); err != nil {
				return err
			}
		}
	}
	return nil
}

// stepPass holds the kernels of an optimiser's pass.
type stepPass struct {
	step, ratios  *driver.Kernel       // ratios is nil for a pass that measures nothing
	reads, writes [update.Vectors]bool // of parameters, gradient and state

	orthogonal update.NewtonSchulz // runs after the pass
}

// stepKey identifies a step's kernels.
type stepKey struct {
	optimizer device.Optimizer
	clip      device.Clip
}

// passes returns u's passes, compiled once.
func (d *Device) passes(u *device.Update) ([]stepPass, error) {
	key := stepKey{u.Optimizer, u.Clip}
	if list, ok := d.steps[key]; ok {
		return list, nil
	}
	var list []stepPass
	for _, p := range u.Passes() {
		source, options, err := kernels.Step(p, d.element(d.narrow()))
		if err != nil {
			return nil, err
		}
		x := stepPass{orthogonal: p.Orthogonal}
		if x.step, err = d.compiled("step.cu", "nn_step", source, options); err == nil && p.Measures() {
			x.ratios, err = d.compiled("step.cu", "nn_ratios", source, options)
		}
		if err != nil {
			return nil, err
		}
		nodes, _, to := p.Nodes()
		for _, n := range nodes {
			if n.Kind == expr.KindArg && n.Index < update.Vectors {
				x.reads[n.Index] = true
			}
		}
		for _, at := range to {
			if at < update.Vectors {
				x.writes[at] = true
			}
		}
		list = append(list, x)
	}
	d.steps[key] = list
	return list, nil
}

// orthogonals is the program of the last optimiser with orthogonal steps.
type orthogonals struct {
	of    update.NewtonSchulz
	parts *driver.Memory // of the partition that it uses
	state device.Vector
	*device.Orthogonalizer
}

// orthogonalizer returns the program for the matrices of u, for n parameters. It is kept for later steps.
func (d *Device) orthogonalizer(o update.NewtonSchulz, u *device.Update, n int) (*device.Orthogonalizer, error) {
	if p := d.opts.Precision; p == number.Float16 || p == number.BFloat16 {
		return nil, fmt.Errorf("cuda: orthogonal steps, as Muon's, in %s: use precision float32 or tf32", p)
	}
	z, state := &d.orthogonal, u.State[len(u.State)-1]
	if z.Orthogonalizer != nil && z.of == o && z.parts == d.parts.memory && z.state == state {
		return z.Orthogonalizer, nil
	}
	if z.Orthogonalizer != nil {
		z.Free()
	}
	made, err := device.NewOrthogonalizer(d, o, u, u.Parts(nil, n, partBlock))
	if err != nil {
		return nil, err
	}
	*z = orthogonals{o, d.parts.memory, state, made}
	return made, nil
}
