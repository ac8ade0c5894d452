package cpu

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/mapping"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/op/update"
)

// stepper makes steps of optimisers on a vector. It caches the data that consecutive steps share, so that
// they allocate nothing.
type stepper struct {
	v     *vector
	block func(worker, block int) // the method run, bound once

	// Of the last step:
	optimizer device.Optimizer
	clip      device.Clip
	noDecay   []device.Span
	factors   []device.Factor
	tensors   []device.Span
	matrices  []device.Matrix
	state     device.Vector // the last one

	passes  []pass
	parts   []device.Part
	first   []int         // for each block its first part, and their number
	sums    []update.Sums // for each part
	ratios  []float64     // for each tensor
	next    []float64     // the same, after the pass in progress
	workers []updateWorker

	// Of the step in progress:
	update  device.Update
	numbers device.Numbers
	piece   update.Piece[float32]
	pass    *pass
}

// pass is a pass of an optimiser on this processor.
type pass struct {
	update.Pass
	program *update.Program
	run     func(w *updateWorker, sums *update.Sums)

	orthogonal *device.Orthogonalizer // runs after the pass; nil for none
}

// updateWorker is the state of one worker, on cache lines of its own.
type updateWorker struct {
	piece        update.Piece[float32]
	coefficients [update.MaxCoefficients + 1]float32
	buffer       []float32
	_            [64]byte
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
		s := &stepper{v: v, workers: make([]updateWorker, v.pool.Workers())}
		s.block = s.run
		v.stepper = s
	}
	s := v.stepper
	if err := s.prepare(&u); err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	s.numbers, s.piece, s.update = n, p, u
	defer func() { s.piece, s.update = update.Piece[float32]{}, device.Update{} }()
	if u.Clips() {
		norm, err := u.Grad.Norm()
		if err != nil {
			return err
		}
		s.numbers = u.ClippedFor(n, norm)
	}
	for i := range s.ratios {
		s.ratios[i] = 1
	}
	for i := range s.passes {
		s.pass = &s.passes[i]
		v.pool.Run(len(s.first)-1, s.block)
		if s.pass.Measures() {
			s.adapt()
		}
		if z := s.pass.orthogonal; z != nil {
			if err := z.Run(); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare caches the parts of u that coming steps share.
func (s *stepper) prepare(u *device.Update) (err error) {
	var state device.Vector
	if k := len(u.State); k > 0 {
		state = u.State[k-1]
	}
	if s.optimizer == u.Optimizer && s.clip == u.Clip && slices.Equal(s.noDecay, u.NoDecay) &&
		slices.Equal(s.factors, u.Factors) &&
		slices.Equal(s.tensors, u.Tensors) && slices.Equal(s.matrices, u.Matrices) && s.state == state {
		return nil
	}
	s.optimizer = nil
	s.parts = u.Parts(s.parts[:0], s.v.Len(), vectorBlock)
	s.passes = nil
	for _, p := range u.Passes() {
		x := pass{Pass: p, program: update.Compile(&p), run: s.runner(p.Body)}
		if p.Orthogonal.Steps > 0 {
			if x.orthogonal, err = device.NewOrthogonalizer(s.v.d, p.Orthogonal, u, s.parts); err != nil {
				return err
			}
		}
		s.passes = append(s.passes, x)
	}
	s.first = s.first[:0]
	for i, p := range s.parts {
		for p.Off/vectorBlock >= len(s.first) {
			s.first = append(s.first, i)
		}
	}
	for len(s.first) <= len(s.v.sums) { // blocks without parts, and the end
		s.first = append(s.first, len(s.parts))
	}
	s.sums = make([]update.Sums, len(s.parts))
	s.ratios, s.next = make([]float64, max(1, len(u.Tensors))), make([]float64, max(1, len(u.Tensors)))
	s.clip, s.noDecay, s.factors, s.state = u.Clip, slices.Clone(u.NoDecay), slices.Clone(u.Factors), state
	s.tensors, s.matrices, s.optimizer = slices.Clone(u.Tensors), slices.Clone(u.Matrices), u.Optimizer
	return nil
}

// runner returns the function that runs a body: its own kernel, or the kernels of its operations.
func (s *stepper) runner(b update.Body) func(w *updateWorker, sums *update.Sums) {
	if f := vec.Update(s.v.d.level, b); f != nil {
		return func(w *updateWorker, sums *update.Sums) {
			f(&w.piece, (*[update.MaxCoefficients]float32)(w.coefficients[:]), sums)
		}
	}
	e := mapping.NewElements(&b)
	for i := range s.workers {
		if w := &s.workers[i]; len(w.buffer) < e.Scratch() {
			w.buffer = make([]float32, e.Scratch())
		}
	}
	return func(w *updateWorker, sums *update.Sums) {
		e.Run(s.v.kernels, w.buffer, &w.piece, &w.coefficients, sums)
	}
}

// numbersOf returns the hyperparameters from which the coefficients of a part are computed.
func (s *stepper) numbersOf(p device.Part) update.Numbers {
	return s.update.PartNumbers(s.numbers, p, s.ratios[p.Tensor])
}

// adapt finds the ratios of tensors. It adds sums of parts in order, whichever worker made them.
func (s *stepper) adapt() {
	copy(s.next, s.ratios)
	for i := 0; i < len(s.parts); {
		var x, y float64
		first := s.parts[i]
		for ; i < len(s.parts) && s.parts[i].Tensor == first.Tensor; i++ {
			x += s.sums[i].Total(0)
			y += s.sums[i].Total(1)
		}
		if first.Decays && first.Takes(s.pass.On) {
			n := s.numbersOf(first)
			n.Norms = [2]float64{math.Sqrt(x), math.Sqrt(y)}
			s.next[first.Tensor] = s.pass.program.Ratio(&n)
		}
	}
	s.ratios, s.next = s.next, s.ratios
}

// run makes the pass on the parts of a block.
func (s *stepper) run(worker, block int) {
	for i := s.first[block]; i < s.first[block+1]; i++ {
		part := s.parts[i]
		if !part.Takes(s.pass.On) {
			continue
		}
		n := s.numbersOf(part)
		w := &s.workers[worker]
		for k, x := range s.pass.program.Coefficients(&n) {
			w.coefficients[k] = float32(x)
		}
		w.piece = s.piece.Of(part.Off, part.Len)
		s.sums[i] = update.Sums{}
		s.pass.run(w, &s.sums[i])
	}
}
