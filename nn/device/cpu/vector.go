package cpu

import (
	"fmt"
	"math"
	"unsafe"

	"onlinerna/internal/parallel"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
)

// vectorBlock is the number of elements of a vector in a block.
const vectorBlock = 32 << 10

// vector is float32 in host memory, with arithmetic by the device's workers.
type vector struct {
	*device.HostVector[float32]
	d       *Device
	pool    *parallel.Pool
	kernels *vec.Set
	body    func(worker, block int) // the method block, bound once: calls allocate nothing
	sums    [][8]float64            // of blocks
	task    vectorTask
	stepper *stepper // nil before the first step of an optimiser
}

// vectorTask is the workers' task: a kernel for elements lo to hi, and its operands.
type vectorTask struct {
	kernel func(v *vector, block, lo, hi int)
	x      []float32
	factor float32
}

var _ device.Vector = (*vector)(nil)

// NewVector implements device.Device.
func (d *Device) NewVector(n int) (device.Vector, error) {
	h, err := device.NewHostVector[float32](n)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	if x := h.Elements(); len(x) > 0 {
		adviseHugePages(unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x)))
	}
	v := &vector{HostVector: h, d: d, pool: d.pool, kernels: vec.For(d.level),
		sums: make([][8]float64, work.Ceil(n, vectorBlock))}
	v.body = v.block
	return v, nil
}

func (v *vector) run(t vectorTask) {
	v.task = t
	v.pool.Run(len(v.sums), v.body)
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
	v.kernels.Fill(v.Elements()[lo:hi], v.task.factor)
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
	v.kernels.AddScaled(v.Elements()[lo:hi], v.task.x[lo:hi], v.task.factor)
}

// Lerp implements device.Vector.
func (v *vector) Lerp(a float64, x device.Vector) error {
	src, err := device.HostElements[float32](x, v.Len())
	if err != nil {
		return fmt.Errorf("cpu: lerp: %w", err)
	}
	v.run(vectorTask{kernel: lerpBlock, x: src, factor: float32(a)})
	return nil
}

func lerpBlock(v *vector, _, lo, hi int) {
	v.kernels.Lerp(v.Elements()[lo:hi], v.task.x[lo:hi], v.task.factor)
}

// Norm implements device.Vector.
func (v *vector) Norm() (float64, error) {
	v.run(vectorTask{kernel: squaresBlock})
	sum := 0.0
	for _, lanes := range v.sums {
		for _, s := range lanes {
			sum += s
		}
	}
	return math.Sqrt(sum), nil
}

func squaresBlock(v *vector, b, lo, hi int) {
	v.kernels.Squares(v.Elements()[lo:hi], &v.sums[b])
}

// Finite implements device.Vector.
func (v *vector) Finite() (bool, error) {
	v.run(vectorTask{kernel: finiteBlock})
	for _, s := range v.sums {
		if s[0] != 0 {
			return false, nil
		}
	}
	return true, nil
}

// finiteBlock returns 0 if all elements are finite.
func finiteBlock(v *vector, b, lo, hi int) {
	v.sums[b][0] = float64(v.kernels.Strange(v.Elements()[lo:hi]))
}
