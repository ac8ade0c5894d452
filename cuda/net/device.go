//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"onlinerna/cuda/blas"
	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/kernels"
	"onlinerna/cuda/number"
	"onlinerna/cuda/nvrtc"
	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// A Device is a GPU on which nets run: a device.Device with float32 vectors. cuDNN computes convolutions, cuBLAS
// products of matrices, and this package's kernels the rest. All work runs on one stream in the order of the calls,
// except the input of lanes, which has its own stream.
type Device struct {
	c          *driver.Context
	info       driver.Info
	opts       Options
	stream     *driver.Stream
	input      *driver.Stream // of lanes; nil until the first one
	scratch    *driver.Memory // of cuBLAS
	blas       *blas.Handle
	dnn        *dnn.Handle
	rules      lower.Table[kernel]
	modules    map[string]*driver.Module
	kernels    map[string]*driver.Kernel
	tables     map[string]*driver.Memory // constants of ops, by content
	convs      map[convKey]*dnn.Plans
	instead    map[*dnn.Plans]*dnn.Plans // more exact replacements of convolutions that do not run
	rooms      []*driver.Memory          // memory of these replacements
	fusions    int                       // number of fusions, the first of the rules
	graphs     map[string]*dnn.Plans     // plans of fusions, nil for those that cuDNN lacks
	better     map[string]bool           // whether a fusion is faster than separate kernels, by key
	sums       *driver.Memory            // sums of a vector's blocks, and their total
	parts      partition                 // of the last step of an optimiser
	steps      map[stepKey][]stepPass    // compiled steps of optimisers
	orthogonal orthogonals               // of the last optimiser with orthogonal steps
	loss       *driver.Memory            // the loss scale, a lossScale; nil without one
	zeros      *driver.Memory            // zero counters and sums, which kernels reset after use
	outgrown   []*driver.Memory          // former zeros that kernels may still use
	marks      marks                     // of the clock
	ranks      *ranks                    // the group to which the device belongs; nil without one
	failed     error                     // from methods that cannot return an error
	tried      *os.File                  // the table of tried plans, or nil
	ahead      []string                  // folders with plans of cuDNN that were made ahead
	compiles   []*dnn.Plans              // plans that cuDNN compiles, before any is made
	running    *device.Group             // the group whose work is being put on the stream
}

var _ device.Grouper = (*Device)(nil)

// Open opens GPU number ordinal for nets. Missing libraries are a [*lazy.NotFoundError].
func Open(ordinal int, o Options) (*Device, error) {
	if o.Workspace < 0 {
		return nil, fmt.Errorf("cuda: workspaces of %d bytes: want 0 (%s) or more", o.Workspace,
			driver.Size(DefaultWorkspace))
	}
	if os.Getenv("RNA_CUDA_SYNC") == "1" {
		o.DebugSync = true
	}
	if os.Getenv("RNA_CUDA_EAGER") == "1" {
		o.Eager = true
	}
	switch a := os.Getenv("RNA_CUDA_ATTENTION"); a {
	case "":
	case "never":
		o.Formulas = true
	default:
		return nil, fmt.Errorf("cuda: RNA_CUDA_ATTENTION=%s in the environment: want never", a)
	}
	switch f := os.Getenv("RNA_CUDA_FUSE"); f {
	case "":
	case "timed":
		o.Fuse = FuseTimed
	case "always":
		o.Fuse = FuseAlways
	case "never":
		o.Fuse = FuseNever
	default:
		return nil, fmt.Errorf("cuda: RNA_CUDA_FUSE=%s in the environment: want timed, always or never", f)
	}
	c, err := driver.Open(ordinal, o.Context)
	if err != nil {
		return nil, err
	}
	if err := supports(c.Info(), o.Precision); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	var tried *os.File
	if path := os.Getenv("RNA_CUDA_PLANS"); path != "" {
		if tried, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
			return nil, errors.Join(fmt.Errorf("RNA_CUDA_PLANS in the environment: %w", err), c.Close())
		}
	}
	c.Stream().Name("nets")
	d := newDevice(c.Info(), o)
	d.c, d.stream, d.tried, d.ahead = c, c.Stream(), tried, aheadFolders(o)
	if d.blas, err = blas.New(d.stream); err == nil {
		d.scratch, err = c.Alloc(blasWorkspace(c.Info()))
	}
	if err == nil {
		err = d.blas.SetWorkspace(d.scratch.All())
	}
	if err == nil {
		d.dnn, err = dnn.New(d.stream)
	}
	if err == nil {
		d.sums, err = c.Alloc(8 * int64(d.blocks()+1))
	}
	if err == nil && o.Precision == number.Float16 {
		err = d.startScale()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func newDevice(i driver.Info, o Options) *Device {
	o.Workspace = o.workspace(i)
	d := &Device{
		info: i, opts: o,
		modules: map[string]*driver.Module{}, kernels: map[string]*driver.Kernel{}, tables: map[string]*driver.Memory{},
		convs:   map[convKey]*dnn.Plans{},
		instead: map[*dnn.Plans]*dnn.Plans{},
		graphs:  map[string]*dnn.Plans{}, steps: map[stepKey][]stepPass{}, better: map[string]bool{},
	}
	d.rules = d.patterns()
	fusions := []lower.Pattern[kernel]{d.convolvedStats, d.convolvedNorm, d.convolvedGradient, d.maskedConvolution}
	d.fusions = len(fusions)
	d.rules.Patterns = append(fusions, d.rules.Patterns...)
	return d
}

// blasWorkspace is the workspace that NVIDIA recommends for cuBLAS: 32 MiB from compute capability 9 on; less on a
// small GPU.
func blasWorkspace(gpu driver.Info) int64 {
	if gpu.Major >= 9 && gpu.Memory >= 1<<30 {
		return 32 << 20
	}
	return 4 << 20
}

// Name implements device.Device.
func (d *Device) Name() string { return "cuda" }

// Precision implements device.Precise.
func (d *Device) Precision() string { return d.opts.Precision.String() }

// Deterministic implements device.Repeatable.
func (d *Device) Deterministic() bool { return d.opts.Deterministic }

// LargestTensor implements device.Bounded: libraries number elements with 32 bits.
func (d *Device) LargestTensor() int { return math.MaxInt32 }

// DType implements device.Device.
func (d *Device) DType() op.DType { return op.Float32 }

// Context is the GPU's context, for other work on that GPU. The device closes it.
func (d *Device) Context() *driver.Context { return d.c }

// Sync implements device.Device.
func (d *Device) Sync() error {
	err := errors.Join(d.failed, d.stream.Synchronize())
	d.failed = nil
	return d.Explain(err)
}

// Explain adds a remedy to a GPU failure that shows late.
func (d *Device) Explain(err error) error {
	if err != nil && errors.Is(err, driver.ErrLost) && !d.opts.DebugSync {
		return fmt.Errorf("%w; to learn which op failed, run again with --debug-sync, or RNA_CUDA_SYNC=1 in the "+
			"environment", err)
	}
	return err
}

// Close implements device.Device. A second call does nothing.
func (d *Device) Close() error {
	if z := d.orthogonal.Orthogonalizer; z != nil {
		z.Free()
		d.orthogonal = orthogonals{}
	}
	errs := []error{d.failed, d.marks.close(), d.ranks.close()}
	d.failed, d.marks, d.ranks = nil, nil, nil
	for _, v := range d.convs {
		errs = append(errs, v.Close())
	}
	for _, v := range d.instead {
		errs = append(errs, v.Close())
	}
	for _, p := range d.graphs {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	for _, m := range d.tables {
		errs = append(errs, m.Close())
	}
	for _, m := range append(slices.Concat(d.outgrown, d.rooms), d.sums, d.parts.memory, d.loss, d.zeros) {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	for _, m := range d.modules {
		errs = append(errs, m.Close())
	}
	if d.input != nil {
		errs = append(errs, d.input.Close())
	}
	if d.blas != nil {
		errs = append(errs, d.blas.Close())
	}
	if d.scratch != nil {
		errs = append(errs, d.scratch.Close())
	}
	if d.dnn != nil {
		errs = append(errs, d.dnn.Close())
	}
	if d.tried != nil {
		errs = append(errs, d.tried.Close())
		d.tried = nil
	}
	return errors.Join(append(errs, d.c.Close())...)
}

// kernel returns a kernel of this package's sources, for elements of 16 bits or float32.
func (d *Device) kernel(file, name string, narrow bool) (*driver.Kernel, error) {
	return d.kernelOf(file, name, d.element(narrow))
}

// kernelOf returns a kernel for a source's element type.
func (d *Device) kernelOf(file, name string, store int) (*driver.Kernel, error) {
	module := fmt.Sprint(file, store)
	key := fmt.Sprint(name, store)
	if k, ok := d.kernels[key]; ok {
		return k, nil
	}
	m, ok := d.modules[module]
	if !ok {
		source, options, err := kernels.Net(file, store)
		if err == nil {
			m, err = nvrtc.Compile(d.c, file, source, options...)
		}
		if err != nil {
			return nil, err
		}
		d.modules[module] = m
	}
	k, err := m.Kernel(name)
	if err != nil {
		return nil, err
	}
	d.kernels[key] = k
	return k, nil
}

// element is a source's number for an element type: float32, or the precision's 16 bits.
func (d *Device) element(narrow bool) int {
	if !narrow {
		return 0
	}
	return map[number.Precision]int{number.BFloat16: 1, number.Float16: 2}[d.opts.Precision]
}

// table returns GPU memory with this constant content.
func (d *Device) table(content []byte) (driver.Span, error) {
	m, ok := d.tables[string(content)]
	if !ok {
		var err error
		if m, err = d.c.Alloc(int64(len(content))); err != nil {
			return driver.Span{}, err
		}
		if err := d.stream.CopyIn(m.All(), content); err != nil {
			return driver.Span{}, errors.Join(err, m.Close())
		}
		d.tables[string(content)] = m
	}
	return m.All(), nil
}

// counters returns n zero counters. Kernels that use them reset them to zero and do not overlap.
func (d *Device) counters(n int) (driver.Span, error) {
	bytes := 4 * int64(n)
	if d.zeros == nil || d.zeros.Bytes() < bytes {
		m, err := d.c.Alloc(max(bytes, 4<<10))
		if err == nil {
			err = d.stream.Fill(m.All(), 0)
		}
		if err != nil {
			return driver.Span{}, err
		}
		if d.zeros != nil {
			d.outgrown = append(d.outgrown, d.zeros)
		}
		d.zeros = m
	}
	return d.zeros.Span(0, bytes), nil
}

// clearZeros makes all counters zero.
func (d *Device) clearZeros() error {
	var errs []error
	for _, m := range append(slices.Clone(d.outgrown), d.zeros) {
		if m != nil {
			errs = append(errs, d.stream.Fill(m.All(), 0))
		}
	}
	return errors.Join(errs...)
}

// blocks is a number of blocks that fills the GPU.
func (d *Device) blocks() int { return 8 * max(d.info.Multiprocessors, 1) }

// flat is the grid of a kernel with one thread for each element, limited to the threads that the GPU runs at a time.
func (d *Device) flat(n int) (grid, block driver.Dim) {
	const threads = 256
	return driver.Dim{X: max(1, min((n+threads-1)/threads, d.blocks()))}, driver.Dim{X: threads}
}

// memory is memory of a Net, none for 0 bytes.
type memory struct {
	d     *Device
	m     *driver.Memory
	bytes int

	vector *vector // the vector in this memory, or nil
}

var _ device.Memory = (*memory)(nil)

// NewMemory implements device.Device.
func (d *Device) NewMemory(bytes int) (device.Memory, error) { return d.newMemory(bytes) }

func (d *Device) newMemory(bytes int) (*memory, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("cuda: memory of %d bytes", bytes)
	}
	r := &memory{d: d, bytes: bytes}
	if bytes == 0 {
		return r, nil
	}
	var err error
	if r.m, err = d.c.Alloc(int64(bytes)); err != nil {
		return nil, err
	}
	if err := d.stream.Fill(r.m.All(), 0); err != nil {
		return nil, d.Explain(errors.Join(err, r.m.Close()))
	}
	return r, nil
}

// Bytes implements device.Memory.
func (m *memory) Bytes() int { return m.bytes }

// Free implements device.Memory. It waits for the GPU; a failure shows at the next Sync.
func (m *memory) Free() {
	if m.m != nil {
		m.d.failed = errors.Join(m.d.failed, m.m.Close())
	}
}

// span returns a region of the device's memory.
func (d *Device) span(r device.Region) (driver.Span, error) {
	if r.Bytes == 0 {
		return driver.Span{}, nil
	}
	m, ok := r.Memory.(*memory)
	if !ok || m.d != d {
		return driver.Span{}, fmt.Errorf("cuda: region of a %T that belongs to another device", r.Memory)
	}
	if r.Offset < 0 || r.Bytes < 0 || r.Offset > m.bytes-r.Bytes {
		return driver.Span{}, fmt.Errorf("cuda: region of %d bytes at %d lies outside %d bytes of memory", r.Bytes,
			r.Offset, m.bytes)
	}
	return m.m.Span(int64(r.Offset), int64(r.Bytes)), nil
}

// Room implements device.OwnMemory. The spare memory is for cuDNN and cuBLAS, which load kernels and allocate
// workspaces at their first use.
func (d *Device) Room() (free, spare int64, err error) {
	free, total, err := d.c.MemInfo()
	if err != nil {
		return 0, 0, d.Explain(err)
	}
	s, err := d.c.Stats()
	return free + s.Cached, min(total/16, mostSpared), err
}

// mostSpared is 1 GiB: the libraries take no more, even on a large card.
const mostSpared = 1 << 30

// PeakMemory implements device.OwnMemory.
func (d *Device) PeakMemory() (int64, error) {
	s, err := d.c.Stats()
	return s.Peak, err
}

// Card implements device.Card: the GPU's name.
func (d *Device) Card() string { return d.info.Name }

var (
	_ device.OwnMemory = (*Device)(nil)
	_ device.Card      = (*Device)(nil)
)
