package cpu

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/vec"
)

// stepper makes steps of optimisers on a vector. It keeps what steps have in common, so that they allocate nothing.
type stepper struct {
	v       *vector
	measure func(worker, block int) // methods of the same names, bound once
	apply   func(worker, block int)

	optimizer device.Optimizer // of the last step
	adaptive  device.Adaptive  // the same, or nil
	kernels   device.Kernels[float32]
	noDecay   []device.Span
	factors   []device.Factor
	tensors   []device.Span
	parts     []device.Part
	first     []int               // for each block its first part, and their number
	sums      [][2][8]float64     // for each part
	ratios    []float64           // for each tensor
	scratch   []paddedCoefficient // for each worker

	numbers device.Numbers // of the step in progress
	piece   device.Piece[float32]
}

// paddedCoefficient is alone in its line of cache.
type paddedCoefficient struct {
	c [8]float32
	_ [32]byte
}

// Update implements device.Vector.
func (v *vector) Update(u device.Update) error {
	p, n, off, err := device.HostUpdate[float32](v, &u)
	if err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	if off {
		return nil
	}
	if v.stepper == nil {
		s := &stepper{v: v, scratch: make([]paddedCoefficient, v.pool.Workers())}
		s.measure, s.apply = s.measureBlock, s.applyBlock
		v.stepper = s
	}
	s := v.stepper
	if err := s.prepare(&u); err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	s.numbers, s.piece = n, p
	if u.Clips() {
		norm, err := u.Grad.Norm()
		if err != nil {
			return err
		}
		s.numbers = u.ClippedFor(n, norm)
	}
	if s.adaptive != nil {
		s.adapt()
	}
	v.pool.Run(len(v.sums), s.apply)
	s.piece = device.Piece[float32]{}
	return nil
}

// prepare keeps what u has in common with steps to come.
func (s *stepper) prepare(u *device.Update) (err error) {
	if s.optimizer == u.Optimizer && slices.Equal(s.noDecay, u.NoDecay) && slices.Equal(s.factors, u.Factors) &&
		slices.Equal(s.tensors, u.Tensors) {
		return nil
	}
	s.optimizer = nil
	if s.kernels, err = kernelsOf(u.Optimizer, s.v.updates); err != nil {
		return err
	}
	s.parts = u.Parts(s.parts[:0], s.v.Len(), vectorBlock)
	s.first = s.first[:0]
	for i, p := range s.parts {
		for p.Off/vectorBlock >= len(s.first) {
			s.first = append(s.first, i)
		}
	}
	for len(s.first) <= len(s.v.sums) { // blocks without parts, and the end
		s.first = append(s.first, len(s.parts))
	}
	s.adaptive, _ = u.Optimizer.(device.Adaptive)
	s.ratios, s.sums = []float64{1}, nil
	if s.adaptive != nil {
		s.ratios, s.sums = make([]float64, len(u.Tensors)), make([][2][8]float64, len(s.parts))
	}
	s.optimizer, s.noDecay, s.factors, s.tensors = u.Optimizer, slices.Clone(u.NoDecay), slices.Clone(u.Factors), slices.Clone(u.Tensors)
	return nil
}

// kernelsOf is the definition of o, with those of a level in place of what it has.
func kernelsOf(o device.Optimizer, level vec.Updates) (device.Kernels[float32], error) {
	k, err := device.KernelsOf[float32](o)
	if err != nil {
		return k, err
	}
	names := o.Passes()
	if f := level.Apply[names.Apply]; f != nil {
		k.Apply = func(p device.Piece[float32], c *[8]float32) { f(p.W, p.G, p.State[0], p.State[1], c) }
	}
	if f := level.Measure[names.Measure]; f != nil {
		k.Measure = func(p device.Piece[float32], c *[8]float32, sums *[2][8]float64) {
			f(p.W, p.G, p.State[0], p.State[1], c, sums)
		}
	}
	return k, nil
}

// adapt finds the ratios of tensors. Sums are those of parts, in order, whoever made them.
func (s *stepper) adapt() {
	for i := range s.ratios {
		s.ratios[i] = 1
	}
	s.v.pool.Run(len(s.v.sums), s.measure)
	for i := 0; i < len(s.parts); {
		var x, y float64
		first := s.parts[i]
		for ; i < len(s.parts) && s.parts[i].Tensor == first.Tensor; i++ {
			x += device.Sum(s.sums[i][0])
			y += device.Sum(s.sums[i][1])
		}
		if first.Decays {
			s.ratios[first.Tensor] = s.adaptive.Ratio(s.numbers, x, y)
		}
	}
}

func (s *stepper) measureBlock(worker, block int) {
	c := &s.scratch[worker].c
	for i := s.first[block]; i < s.first[block+1]; i++ {
		p := s.parts[i]
		*c = device.In[float32](s.optimizer.Coefficients(p.Numbers(s.numbers), p.Decays, 1))
		s.sums[i] = [2][8]float64{}
		s.kernels.Measure(s.piece.Of(p.Span), c, &s.sums[i])
	}
}

func (s *stepper) applyBlock(worker, block int) {
	c := &s.scratch[worker].c
	for i := s.first[block]; i < s.first[block+1]; i++ {
		p := s.parts[i]
		*c = device.In[float32](s.optimizer.Coefficients(p.Numbers(s.numbers), p.Decays, s.ratios[p.Tensor]))
		s.kernels.Apply(s.piece.Of(p.Span), c)
	}
}
