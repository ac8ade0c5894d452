package devicetest

import (
	"errors"
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// Lazy makes a device.Pipeline of a device in host memory, to test asynchronous code without a GPU. Work runs only
// when the host waits for it, which reveals a missing wait.
func Lazy(d device.Device) device.Pipeline { return &lazy{Device: d} }

// lazy queues the work of a device.
type lazy struct {
	device.Device
	queue  []func() error
	record *[]func() error // receives issued work, while not nil
	bad    error           // the first forbidden call during recording
	freed  int             // vectors
}

var (
	_ device.Pipeline = (*lazy)(nil)
	_ device.Wrapper  = (*lazy)(nil)
)

var errRecording = errors.New("not while work is recorded")

// put issues work.
func (d *lazy) put(f func() error) error {
	if d.record != nil {
		*d.record = append(*d.record, f)
	} else {
		d.queue = append(d.queue, f)
	}
	return nil
}

// drain runs the queued work.
func (d *lazy) drain() error {
	if d.record != nil {
		d.bad = errRecording
		return errRecording
	}
	for len(d.queue) > 0 {
		f := d.queue[0]
		d.queue = d.queue[1:]
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// Unwrap implements device.Wrapper.
func (d *lazy) Unwrap() device.Device { return d.Device }

// Lanes implements device.Pipeline.
func (d *lazy) Lanes() int { return 2 }

// Bind implements device.Device.
func (d *lazy) Bind(g *device.Group, p *device.Plan, a device.Args) (device.Kernel, error) {
	k, err := d.Device.Bind(g, p, a)
	if err != nil {
		return nil, err
	}
	return func() error { return d.put(k) }, nil
}

// NewMemory implements device.Device.
func (d *lazy) NewMemory(bytes int) (device.Memory, error) {
	if d.record != nil {
		d.bad = errRecording
		return nil, errRecording
	}
	return d.Device.NewMemory(bytes)
}

// Upload implements device.Device.
func (d *lazy) Upload(r device.Region, l device.Layout, src op.Tensor) error {
	if err := d.drain(); err != nil {
		return err
	}
	return d.Device.Upload(r, l, src)
}

// Download implements device.Device.
func (d *lazy) Download(dst op.Tensor, r device.Region, l device.Layout) error {
	if err := d.drain(); err != nil {
		return err
	}
	return d.Device.Download(dst, r, l)
}

// Sync implements device.Device.
func (d *lazy) Sync() error {
	if err := d.drain(); err != nil {
		return err
	}
	return d.Device.Sync()
}

// NewVector implements device.Device.
func (d *lazy) NewVector(n int) (device.Vector, error) {
	v, err := d.Device.NewVector(n)
	if err != nil {
		return nil, err
	}
	return &lazyVector{v, d}, nil
}

// Record implements device.Pipeline.
func (d *lazy) Record(f func() error) (device.Recording, error) {
	r := &lazyRecording{d: d, freed: d.freed}
	d.record, d.bad = &r.work, nil
	defer func() { d.record = nil }()
	if err := errors.Join(f(), d.bad); err != nil {
		return nil, err
	}
	return r, nil
}

type lazyRecording struct {
	d     *lazy
	work  []func() error
	freed int
}

func (r *lazyRecording) Run() error {
	if !r.Valid() {
		return errors.New("memory of the recording is gone")
	}
	for _, f := range r.work {
		if err := r.d.put(f); err != nil {
			return err
		}
	}
	return nil
}

func (r *lazyRecording) Valid() bool { return r.freed == r.d.freed }
func (r *lazyRecording) Free()       { r.work = nil }

// lazyVector is a vector whose arithmetic is queued.
type lazyVector struct {
	device.Vector
	d *lazy
}

// other is the vector inside x, which belongs to the same device and is as long.
func (v *lazyVector) other(x device.Vector) (device.Vector, error) {
	o, ok := x.(*lazyVector)
	if !ok || o.d != v.d || o.Len() != v.Len() {
		return nil, fmt.Errorf("vector %T belongs to another device or has another length", x)
	}
	return o.Vector, nil
}

func (v *lazyVector) ReadAt(dst []float32, off int) error {
	if err := v.d.drain(); err != nil {
		return err
	}
	return v.Vector.ReadAt(dst, off)
}

func (v *lazyVector) ReadAt64(dst []float64, off int) error {
	if err := v.d.drain(); err != nil {
		return err
	}
	return v.Vector.ReadAt64(dst, off)
}

func (v *lazyVector) WriteAt(src []float32, off int) error {
	if err := v.d.drain(); err != nil {
		return err
	}
	return v.Vector.WriteAt(src, off)
}

func (v *lazyVector) WriteAt64(src []float64, off int) error {
	if err := v.d.drain(); err != nil {
		return err
	}
	return v.Vector.WriteAt64(src, off)
}

func (v *lazyVector) Copy(x device.Vector) error {
	o, err := v.other(x)
	if err != nil {
		return err
	}
	return v.d.put(func() error { return v.Vector.Copy(o) })
}

func (v *lazyVector) Fill(a float64) error {
	return v.d.put(func() error { return v.Vector.Fill(a) })
}

func (v *lazyVector) AddScaled(a float64, x device.Vector) error {
	o, err := v.other(x)
	if err != nil {
		return err
	}
	return v.d.put(func() error { return v.Vector.AddScaled(a, o) })
}

func (v *lazyVector) Lerp(a float64, x device.Vector) error {
	o, err := v.other(x)
	if err != nil {
		return err
	}
	return v.d.put(func() error { return v.Vector.Lerp(a, o) })
}

func (v *lazyVector) Update(u device.Update) error {
	if err := u.Check(v); err != nil {
		return err
	}
	size := v.d.DType().Size()
	if r := u.Live.Numbers; r.Memory != nil && r.Bytes != device.NumbersLen*size {
		return fmt.Errorf("region of %d bytes for the numbers of a step", r.Bytes)
	}
	if r := u.Live.Guard; r.Memory != nil && r.Bytes != size {
		return fmt.Errorf("region of %d bytes for the guard of a step", r.Bytes)
	}
	var err error
	if u.Grad, err = v.other(u.Grad); err != nil {
		return err
	}
	u.State = slices.Clone(u.State)
	for i, x := range u.State {
		if u.State[i], err = v.other(x); err != nil {
			return err
		}
	}
	return v.d.put(func() error { return v.Vector.Update(u) })
}

func (v *lazyVector) Norm() (float64, error) {
	if err := v.d.drain(); err != nil {
		return 0, err
	}
	return v.Vector.Norm()
}

func (v *lazyVector) Finite() (bool, error) {
	if err := v.d.drain(); err != nil {
		return false, err
	}
	return v.Vector.Finite()
}

func (v *lazyVector) Free() {
	_ = v.d.drain() // the next wait reports the error again
	v.d.freed++
	v.Vector.Free()
}

// lazyLane copies where the queue is, as late as may be.
type lazyLane struct {
	d            *lazy
	in, out      device.Memory
	hostIn, host *device.HostMemory // for input and output
	sent, done   mark
}

// NewLane implements device.Pipeline.
func (d *lazy) NewLane(input, output int) (device.Lane, error) {
	l := &lazyLane{d: d}
	var err error
	if l.in, err = d.NewMemory(input); err == nil {
		l.out, err = d.NewMemory(output)
	}
	if err == nil {
		l.hostIn, err = device.NewHostMemory(input)
	}
	if err == nil {
		l.host, err = device.NewHostMemory(output)
	}
	return l, err
}

func (l *lazyLane) Input() device.Memory  { return l.in }
func (l *lazyLane) Output() device.Memory { return l.out }

// mark counts the issued and the finished work of a kind.
type mark struct{ issued, done int }

// pass issues work that records the progress of its kind.
func (l *lazyLane) pass(m *mark, f func() error) error {
	m.issued++
	n := m.issued
	return l.d.put(func() error {
		m.done = n
		return f()
	})
}

// until runs the queue up to the last issued work of a kind.
func (l *lazyLane) until(m *mark) error {
	for m.done < m.issued && len(l.d.queue) > 0 {
		f := l.d.queue[0]
		l.d.queue = l.d.queue[1:]
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (l *lazyLane) Host() (*device.HostMemory, error) { return l.hostIn, l.until(&l.sent) }

func (l *lazyLane) Send(parts ...device.Span) error {
	return l.pass(&l.sent, func() error {
		for _, p := range parts {
			if err := copyBytes(l.in, l.hostIn, p); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *lazyLane) Fetch() error {
	return l.d.put(func() error { return copyBytes(l.host, l.out, device.Span{Len: l.out.Bytes()}) })
}

func (l *lazyLane) End() error { return l.pass(&l.done, func() error { return nil }) }

func (l *lazyLane) Results() (*device.HostMemory, error) { return l.host, l.until(&l.done) }

func (l *lazyLane) Free() {
	_ = l.d.drain()
	l.in.Free()
	l.out.Free()
}

// copyBytes copies a part of a memory of the host to the same place of another.
func copyBytes(dst, src device.Memory, p device.Span) error {
	to, err := device.HostSlice[uint8](device.Region{Memory: dst, Offset: p.Off, Bytes: p.Len})
	if err != nil {
		return err
	}
	from, err := device.HostSlice[uint8](device.Region{Memory: src, Offset: p.Off, Bytes: p.Len})
	copy(to, from)
	return err
}
