package cpu

import (
	"fmt"

	"onlinerna/internal/parallel"
	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Options are what a user chooses about the device.
type Options struct {
	// Threads is the number of workers; 0 means GOMAXPROCS, and no more than the fast cores of an arm64 processor that
	// has two kinds. It has no influence on results.
	Threads int

	// Direct keeps Winograd's algorithm F(4×4, 3×3) away. Convolutions of 3×3 taps with stride 1, dilation 1 and one
	// group, and their gradients, otherwise run by it where that is faster: with enough channels and tiles of 4×4
	// pixels, at the levels of vectors.
	//
	// Winograd's algorithm needs between a quarter and a third of the multiplications. Its results are the same bit
	// for bit for any number of workers, and a little less exact than those of the direct one: the largest
	// error of an element, relative to the largest element, is 6e-7 to 1.5e-6, in place of 2e-7 to 9e-7. Where a value
	// is not finite, so are all of its tile.
	Direct bool

	// BFloat16 rounds the factors of products, those of convolutions, linear layers and all their gradients, to bfloat16, to the
	// nearest and ties to even, and stores activations of rank 4, and their gradients, so, in half of the memory. Sums are
	// float32, and so are all other numbers that are stored: weights, their gradients, statistics, the results of linear
	// layers, and what comes from outside. It is for processors with AVX512_BF16; others round too, and multiply in
	// float32. Winograd's algorithm is not used then.
	//
	// Those with AVX-512 give the bits of AVX512_BF16, and those with AVX2 or NEON do, gradients of weights apart, but for three
	// things: numbers below 2^-126, which AVX512_BF16 takes for 0, the sign of a 0, and values that are not finite, which
	// also turn others of their tile into NaN.
	BFloat16 bool

	// Level is the level of instructions: one of avx512bf16, avx512, avx2, neon and go. Empty means that of the environment
	// variable RNA_CPU, or the best that the processor has.
	Level string
}

// Device is a CPU with its memory. It implements device.Grouper.
type Device struct {
	pool  *parallel.Pool
	level simd.Level

	bfloat16       bool
	narrow         *kern.Set // in place of the processor's, for tests
	winograd       bool
	alwaysWinograd bool // where it can, for tests

	table lower.Table[work.Kernel]
}

var (
	_ device.Grouper  = (*Device)(nil)
	_ device.Composer = (*Device)(nil)
)

// New starts the workers. Close stops them. It fails if the processor does not have the level.
func New(o Options) (*Device, error) {
	if o.Threads < 0 || o.Threads > parallel.Most {
		return nil, fmt.Errorf("cpu: %d threads: want 0 (the default) to %d", o.Threads, parallel.Most)
	}
	level, err := simd.Choose(o.Level)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	n := o.Threads
	if n == 0 {
		n = parallel.Cores()
	}
	d := &Device{pool: parallel.NewPool(n), level: level, winograd: !o.Direct, bfloat16: o.BFloat16}
	d.table = d.patterns()
	return d, nil
}

// Name implements device.Device.
func (d *Device) Name() string { return "cpu" }

// DType implements device.Device.
func (d *Device) DType() op.DType { return op.Float32 }

// NewMemory implements device.Device. No page of it is touched yet, unless Go's heap had it before: on a machine with several nodes
// a page lies at the core that writes it first. For what kernels write, these are all workers in turn, since which takes a
// block is not fixed: pages are spread over the nodes. Inputs and weights lie where the caller runs.
func (d *Device) NewMemory(bytes int) (device.Memory, error) {
	m, err := device.NewHostMemory(bytes)
	if err != nil {
		return nil, err
	}
	b, err := device.HostSlice[uint8](device.Region{Memory: m, Bytes: bytes})
	if err != nil {
		return nil, err
	}
	adviseHugePages(b)
	return m, nil
}

// Sync implements device.Device. Kernels have finished when they return.
func (d *Device) Sync() error { return nil }

// Close stops the workers. The device must not be used afterwards; a second call does nothing.
func (d *Device) Close() error {
	d.pool.Close()
	return nil
}
