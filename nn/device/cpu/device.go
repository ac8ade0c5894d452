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

// Options are the user's settings of the device.
type Options struct {
	// Threads is the number of workers. 0 means GOMAXPROCS, limited to the number of fast cores on arm64 processors with
	// two kinds of cores. It does not influence results.
	Threads int

	// Direct disables Winograd's algorithm F(4×4, 3×3). By default it runs convolutions of 3×3 taps with stride 1,
	// dilation 1 and one group, and their gradients, if it is faster: at the vector levels, with enough channels and
	// enough tiles of 4×4 pixels.
	//
	// Winograd's algorithm needs between a quarter and a third of the multiplications. Its results are the same bit for
	// bit for any number of workers, and slightly less exact than those of direct convolution: the largest error of an
	// element, relative to the largest element, is 6e-7 to 1.5e-6 instead of 2e-7 to 9e-7. A value that is not finite
	// makes its whole tile not finite.
	Direct bool

	// BFloat16 rounds the factors of products to bfloat16, to nearest, ties to even: those of convolutions, linear layers
	// and all their gradients. It also stores activations of rank 4 and their gradients as bfloat16, in half the memory,
	// and on AMX so are rows of tokens between linear layers, attention and elementwise ops: see Narrow. Sums stay
	// float32, and so do all other stored numbers: weights, their gradients, statistics, sums along a net, and inputs.
	// Attention stores no matrix of scores; AMX rounds its factors, and others multiply float32, as without the option.
	// The option is made for processors with AMX or fast AVX512_BF16; others round too, and multiply in float32.
	// Winograd's algorithm is off in this mode.
	//
	// Processors with AVX-512 give the bits of AVX512_BF16, and those with AVX2 or NEON do so except in gradients of
	// weights. There are three exceptions: numbers below 2^-126, which AVX512_BF16 takes for 0; the sign of a 0; and
	// values that are not finite, which also turn others of their tile into NaN.
	//
	// AMX sums in another order, and has results of its own. It runs products with at least 16 channels in and out of
	// each group, and those of first convolutions; the others run as with AVX-512.
	BFloat16 bool

	// Float32 is how products of float32 run on AMX: those of convolutions, linear layers and matrices, and all their
	// gradients. direct, the default, uses vectors alone. bf16x6 splits each number into three of bfloat16 and sums six
	// products of them in tiles, where that would be faster than vectors and Winograd's algorithm by the rates at which a
	// Granite Rapids-class Xeon ran each by itself. bf16x3 sums three products of two parts, likewise. At other levels
	// bf16x6 is direct, and bf16x3 an error. With BFloat16 there is no choice.
	//
	// The largest error of an element of a product by bf16x6, relative to the largest element, is at most that of direct
	// sums, or 2.4e-7; that by bf16x3 is 3e-6 to 2e-5, and larger where terms cancel. Numbers from 2^-103 on keep all
	// bits. Of smaller ones less than 2^-126 is lost: the third part of those below 2^-109. An element that is not finite
	// is computed again directly, so values that are not finite have the results of direct sums. Results are the same bit
	// for bit for any number of workers.
	Float32 string

	// Level is the level of instructions: amx, avx512bf16, avx512, avx2, neon or go. If empty, the environment variable
	// RNA_CPU chooses, or else the best level of the processor.
	Level string
}

// Device is a CPU with its memory. It implements device.Grouper.
type Device struct {
	pool  *parallel.Pool
	level simd.Level

	bfloat16       bool
	narrow         *kern.Set   // replaces the processor's, for tests
	tiles          *kern.Tiles // nil for none
	winograd       bool
	alwaysWinograd bool // Winograd's algorithm wherever possible, for tests
	portion        int  // elements of a portion of samples: about a cache
	alwaysParts    bool // products of float32 in parts wherever possible, for tests

	table lower.Table[work.Kernel]
}

var (
	_ device.Grouper  = (*Device)(nil)
	_ device.Composer = (*Device)(nil)
	_ device.Divider  = (*Device)(nil)
	_ device.Narrower = (*Device)(nil)
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
	if err := o.checkFloat32(level); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	d := &Device{pool: parallel.NewPool(n), level: level, winograd: !o.Direct, bfloat16: o.BFloat16,
		portion: max(4<<20, n<<19)}
	if d.bfloat16 {
		d.tiles = kern.TilesFor(level)
	} else if t := kern.TilesFor(level); t != nil && partsOf[o.Float32] > 0 {
		d.tiles = t.InParts(partsOf[o.Float32])
	}
	d.table = d.patterns()
	return d, nil
}

// Name implements device.Device.
func (d *Device) Name() string { return "cpu" }

// DType implements device.Device.
func (d *Device) DType() op.DType { return op.Float32 }

// NewMemory implements device.Device. It touches no page, unless Go's heap already had the page: on a NUMA machine the
// core that first writes a page decides its node. Blocks go to workers in no fixed order, so the kernels' results
// spread over the nodes. Inputs and weights lie on the caller's node.
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
