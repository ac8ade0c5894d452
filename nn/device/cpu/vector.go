package cpu

import (
	"fmt"
	"math"
	"sort"

	"onlinerna/nn/device"
)

// vectorBlock is how many elements of a vector are one block.
const vectorBlock = 32 << 10

// vector is float32 in host memory, with arithmetic by the device's workers.
type vector struct {
	*device.HostVector[float32]
	pool *pool
	body func(worker, block int) // the method block, bound once: calls allocate nothing
	sums []float64               // of blocks
	task vectorTask
}

// vectorTask is what the workers do: a kernel for elements lo to hi, and what it works on.
type vectorTask struct {
	kernel     func(v *vector, block, lo, hi int)
	x, grad, m []float32
	factor     float32
	sgd        device.SGD
}

var _ device.Vector = (*vector)(nil)

// NewVector implements device.Device.
func (d *Device) NewVector(n int) (device.Vector, error) {
	h, err := device.NewHostVector[float32](n)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	v := &vector{HostVector: h, pool: d.pool, sums: make([]float64, ceil(n, vectorBlock))}
	v.body = v.block
	return v, nil
}

func (v *vector) run(t vectorTask) {
	v.task = t
	v.pool.run(len(v.sums), v.body)
	v.task = vectorTask{}
}

func (v *vector) block(_, b int) {
	v.task.kernel(v, b, b*vectorBlock, min((b+1)*vectorBlock, v.Len()))
}

// Copy implements device.Vector.
func (v *vector) Copy(x device.Vector) error {
	src, err := device.HostElements[float32](x, v.Len())
	if err != nil {
		return fmt.Errorf("cpu: copy: %w", err)
	}
	v.run(vectorTask{kernel: copyBlock, x: src})
	return nil
}

func copyBlock(v *vector, _, lo, hi int) { copy(v.Elements()[lo:hi], v.task.x[lo:hi]) }

// Fill implements device.Vector.
func (v *vector) Fill(a float64) error {
	v.run(vectorTask{kernel: fillBlock, factor: float32(a)})
	return nil
}

func fillBlock(v *vector, _, lo, hi int) {
	dst, a := v.Elements()[lo:hi], v.task.factor
	for i := range dst {
		dst[i] = a
	}
}

// AddScaled implements device.Vector.
func (v *vector) AddScaled(a float64, x device.Vector) error {
	src, err := device.HostElements[float32](x, v.Len())
	if err != nil {
		return fmt.Errorf("cpu: add scaled: %w", err)
	}
	v.run(vectorTask{kernel: addScaledBlock, x: src, factor: float32(a)})
	return nil
}

func addScaledBlock(v *vector, _, lo, hi int) {
	dst, a := v.Elements()[lo:hi], v.task.factor
	for i, x := range v.task.x[lo:hi] {
		dst[i] += float32(a * x)
	}
}

// SGD implements device.Vector.
func (v *vector) SGD(grad, momentum device.Vector, s device.SGD) error {
	if err := s.Check(v.Len()); err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	g, err := device.HostElements[float32](grad, v.Len())
	if err != nil {
		return fmt.Errorf("cpu: sgd: gradient: %w", err)
	}
	m, err := device.HostElements[float32](momentum, v.Len())
	if err != nil {
		return fmt.Errorf("cpu: sgd: momentum: %w", err)
	}
	v.run(vectorTask{kernel: sgdBlock, grad: g, m: m, sgd: s})
	return nil
}

// sgdBlock makes the step. The spans without decay cut the block into pieces.
func sgdBlock(v *vector, _, lo, hi int) {
	w, g, m := v.Elements(), v.task.grad, v.task.m
	s, exempt := v.task.sgd, v.task.sgd
	exempt.Decay = 0
	next := sort.Search(len(s.NoDecay), func(i int) bool { return s.NoDecay[i].Off+s.NoDecay[i].Len > lo })
	for ; next < len(s.NoDecay) && lo < hi; next++ {
		span := s.NoDecay[next]
		from, to := min(max(span.Off, lo), hi), min(span.Off+span.Len, hi)
		sgd(w[lo:from], g[lo:from], m[lo:from], s)
		sgd(w[from:to], g[from:to], m[from:to], exempt)
		lo = to
	}
	sgd(w[lo:hi], g[lo:hi], m[lo:hi], s)
}

// sgd makes the step on some elements, all with decay.
func sgd(w, g, m []float32, s device.SGD) {
	scale, decay, momentum, rate := float32(s.Scale), float32(s.Decay), float32(s.Momentum), float32(s.Rate)
	g, m = g[:len(w)], m[:len(w)]
	if s.Nesterov {
		for i, x := range w {
			d := float32(scale*g[i]) + float32(decay*x)
			u := float32(momentum*m[i]) + d
			m[i] = u
			w[i] = x - float32(rate*(d+float32(momentum*u)))
		}
		return
	}
	for i, x := range w {
		u := float32(momentum*m[i]) + (float32(scale*g[i]) + float32(decay*x))
		m[i] = u
		w[i] = x - float32(rate*u)
	}
}

// Norm implements device.Vector.
func (v *vector) Norm() (float64, error) {
	v.run(vectorTask{kernel: squaresBlock})
	sum := 0.0
	for _, s := range v.sums {
		sum += s
	}
	return math.Sqrt(sum), nil
}

func squaresBlock(v *vector, b, lo, hi int) {
	sum := 0.0
	for _, a := range v.Elements()[lo:hi] {
		sum += float64(float64(a) * float64(a))
	}
	v.sums[b] = sum
}

// Finite implements device.Vector.
func (v *vector) Finite() (bool, error) {
	v.run(vectorTask{kernel: finiteBlock})
	for _, s := range v.sums {
		if s != 0 {
			return false, nil
		}
	}
	return true, nil
}

// finiteBlock sums 0 for each finite element and NaN for the others.
func finiteBlock(v *vector, b, lo, hi int) {
	sum := float32(0)
	for _, a := range v.Elements()[lo:hi] {
		sum += a - a
	}
	v.sums[b] = float64(sum)
}
