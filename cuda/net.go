//go:build gpu && cgo

package cuda

import (
	"errors"
	"fmt"
	"os"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/rna"
)

// A Net is a GPU on which nets run: a device.Device whose vectors are float32. Convolutions are cuDNN's, products of matrices cuBLAS's, the
// rest are kernels of this package. All work goes to one stream, in the order of the calls, but for the input of lanes, which has its own.
type Net struct {
	c       *Context
	opts    NetOptions
	stream  *Stream
	input   *Stream // of lanes; nil until there is one
	scratch *Memory // of cuBLAS
	blas    *BLAS
	dnn     *DNN
	modules map[string]*Module
	kernels map[string]*Kernel
	tables  map[string]*Memory // constants of ops, by content
	convs   map[convKey]*Convolution
	sums    *Memory // of blocks of a vector, and their sum
	exempt  exempt
	loss    *Memory // its scale, a lossScale; nil without
	spaces  []*Space
	marks   marks // of the clock
	failed  error // of what cannot return one
}

var _ device.Grouper = (*Net)(nil)

// OpenNet opens GPU number ordinal for nets. Missing libraries are a [*lazy.NotFoundError].
func OpenNet(ordinal int, o NetOptions) (device.Device, error) {
	if o.Workspace < 0 {
		return nil, fmt.Errorf("cuda: workspaces of %d bytes: want 0 (%s) or more", o.Workspace, size(DefaultWorkspace))
	}
	if o.Workspace == 0 {
		o.Workspace = DefaultWorkspace
	}
	if os.Getenv("RNA_CUDA_SYNC") == "1" {
		o.DebugSync = true
	}
	if os.Getenv("RNA_CUDA_EAGER") == "1" {
		o.Eager = true
	}
	c, err := Open(ordinal, o.Context)
	if err != nil {
		return nil, err
	}
	if err := o.Precision.on(c.info); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	d := &Net{
		c: c, opts: o, stream: c.Stream(),
		modules: map[string]*Module{}, kernels: map[string]*Kernel{}, tables: map[string]*Memory{}, convs: map[convKey]*Convolution{},
	}
	if d.blas, err = c.NewBLAS(d.stream); err == nil {
		d.scratch, err = c.Alloc(blasWorkspace)
	}
	if err == nil {
		err = d.blas.SetWorkspace(d.scratch.All())
	}
	if err == nil {
		d.dnn, err = c.NewDNN(d.stream)
	}
	if err == nil {
		d.sums, err = c.Alloc(8 * int64(d.blocks()+1))
	}
	if err == nil && o.Precision == Float16 {
		err = d.startScale()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// blasWorkspace is the scratch of cuBLAS: what NVIDIA recommends but for large products, of which nets have few.
const blasWorkspace = 4 << 20

// Name implements device.Device.
func (d *Net) Name() string { return "cuda" }

// DType implements device.Device.
func (d *Net) DType() op.DType { return op.Float32 }

// Context is the GPU's, for what else runs there. It is closed with the device.
func (d *Net) Context() *Context { return d.c }

// Sync implements device.Device.
func (d *Net) Sync() error {
	err := errors.Join(d.failed, d.stream.Synchronize())
	d.failed = nil
	return d.explain(err)
}

// NewSpace returns a space of vectors of dim elements in the GPU's memory, closed with the device. Vectors of the device are
// stored in it, and combinations written to them, without the host.
func (d *Net) NewSpace(dim int) (rna.Space, error) {
	s, err := NewSpace(d.c, dim, SpaceOptions{})
	if err != nil {
		return nil, d.explain(err)
	}
	d.spaces = append(d.spaces, s)
	return s, nil
}

// explain adds what to do about a failure of the GPU that shows late.
func (d *Net) explain(err error) error {
	if err != nil && errors.Is(err, ErrLost) && !d.opts.DebugSync {
		return fmt.Errorf("%w; to learn which op failed, run again with --debug-sync, or RNA_CUDA_SYNC=1 in the environment", err)
	}
	return err
}

// Close implements device.Device. A second call does nothing.
func (d *Net) Close() error {
	errs := []error{d.failed, d.marks.close()}
	d.failed, d.marks = nil, nil
	for _, s := range d.spaces {
		errs = append(errs, s.Close())
	}
	for _, v := range d.convs {
		errs = append(errs, v.Close())
	}
	for _, m := range d.tables {
		errs = append(errs, m.Close())
	}
	for _, m := range []*Memory{d.sums, d.exempt.memory, d.loss} {
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
	return errors.Join(append(errs, d.c.Close())...)
}

// kernel is a kernel of one of the sources of this package, for elements of 16 bits or for float32.
func (d *Net) kernel(file, name string, narrow bool) (*Kernel, error) {
	store := 0
	if narrow {
		store = map[Precision]int{BFloat16: 1, Float16: 2}[d.opts.Precision]
	}
	module := fmt.Sprint(file, store)
	key := fmt.Sprint(name, store)
	if k, ok := d.kernels[key]; ok {
		return k, nil
	}
	m, ok := d.modules[module]
	if !ok {
		source, options, err := netSource(file, store)
		if err == nil {
			m, err = d.c.Compile(file, source, options...)
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

// table is GPU memory with the given content, which stays there.
func (d *Net) table(content []byte) (Span, error) {
	m, ok := d.tables[string(content)]
	if !ok {
		var err error
		if m, err = d.c.Alloc(int64(len(content))); err != nil {
			return Span{}, err
		}
		if err := d.stream.CopyIn(m.All(), content); err != nil {
			return Span{}, errors.Join(err, m.Close())
		}
		d.tables[string(content)] = m
	}
	return m.All(), nil
}

// blocks is how many blocks of a kernel are enough to fill the GPU.
func (d *Net) blocks() int { return 8 * max(d.c.info.Multiprocessors, 1) }

// flat is the grid of a kernel with a thread an element, as far as the GPU has them at a time.
func (d *Net) flat(n int) (grid, block Dim) {
	const threads = 256
	return Dim{X: max(1, min((n+threads-1)/threads, d.blocks()))}, Dim{X: threads}
}

// netMemory is memory of a Net. There is none for 0 bytes.
type netMemory struct {
	d     *Net
	m     *Memory
	bytes int

	vector *netVector // that it is, or nil
}

var _ device.Memory = (*netMemory)(nil)

// NewMemory implements device.Device.
func (d *Net) NewMemory(bytes int) (device.Memory, error) { return d.newMemory(bytes) }

func (d *Net) newMemory(bytes int) (*netMemory, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("cuda: memory of %d bytes", bytes)
	}
	r := &netMemory{d: d, bytes: bytes}
	if bytes == 0 {
		return r, nil
	}
	var err error
	if r.m, err = d.c.Alloc(int64(bytes)); err != nil {
		return nil, err
	}
	if err := d.stream.Fill(r.m.All(), 0); err != nil {
		return nil, d.explain(errors.Join(err, r.m.Close()))
	}
	return r, nil
}

// Bytes implements device.Memory.
func (m *netMemory) Bytes() int { return m.bytes }

// Free implements device.Memory. It waits for the GPU; a failure shows at the next Sync.
func (m *netMemory) Free() {
	if m.m != nil {
		m.d.failed = errors.Join(m.d.failed, m.m.Close())
	}
}

// span is a region of the device's memory.
func (d *Net) span(r device.Region) (Span, error) {
	if r.Bytes == 0 {
		return Span{}, nil
	}
	m, ok := r.Memory.(*netMemory)
	if !ok || m.d != d {
		return Span{}, fmt.Errorf("cuda: region of a %T that belongs to another device", r.Memory)
	}
	if r.Offset < 0 || r.Bytes < 0 || r.Offset > m.bytes-r.Bytes {
		return Span{}, fmt.Errorf("cuda: region of %d bytes at %d lies outside %d bytes of memory", r.Bytes, r.Offset, m.bytes)
	}
	return m.m.Span(int64(r.Offset), int64(r.Bytes)), nil
}
