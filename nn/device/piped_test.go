package device_test

import (
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/devicetest"
	"onlinerna/nn/op"
)

// apart is a device whose memory the host does not see.
type apart struct{ device.Device }

// own is a piece of apart's memory.
type own struct{ device.Memory }

func (d apart) NewMemory(bytes int) (device.Memory, error) {
	m, err := d.Device.NewMemory(bytes)
	return own{m}, err
}

// inside is a region as the device within knows it.
func inside(r device.Region) device.Region {
	if m, ok := r.Memory.(own); ok {
		r.Memory = m.Memory
	}
	return r
}

// vector is one of the device within, which reads the numbers of steps from its memory.
type vector struct {
	device.Vector
	elements
}

type elements interface{ Elements() []float32 }

func (d apart) NewVector(n int) (device.Vector, error) {
	v, err := d.Device.NewVector(n)
	if err != nil {
		return nil, err
	}
	return vector{v, v.(elements)}, nil
}

func (v vector) Update(u device.Update) error {
	if err := u.Check(v); err != nil {
		return err
	}
	u.Live = device.Live{Numbers: inside(u.Live.Numbers), Guard: inside(u.Live.Guard)}
	return v.Vector.Update(u)
}

func (d apart) Upload(r device.Region, l device.Layout, src op.Tensor) error {
	return d.Device.Upload(inside(r), l, src)
}

func (d apart) Download(dst op.Tensor, r device.Region, l device.Layout) error {
	return d.Device.Download(dst, inside(r), l)
}

func (d apart) Bind(g *device.Group, p *device.Plan, a device.Args) (device.Kernel, error) {
	args := device.Args{Workspace: inside(a.Workspace)}
	for _, r := range a.In {
		args.In = append(args.In, inside(r))
	}
	for _, r := range a.Out {
		args.Out = append(args.Out, inside(r))
	}
	return d.Device.Bind(g, p, args)
}

// A device that is neither a pipeline nor in the host's memory has lanes that copy.
func TestPipedApart(t *testing.T) {
	if testing.Short() {
		t.Skip("the whole suite of a device")
	}
	devicetest.Run(t, func() (device.Device, error) { return apart{device.NewReference(op.Float32)}, nil },
		devicetest.Options{})
}

// wrapped is a device round another one.
type wrapped struct{ device.Device }

func (w wrapped) Unwrap() device.Device { return w.Device }

// card is a device with a name.
type card struct {
	device.Device
	name string
}

func (c card) Card() string { return c.name }

func TestAs(t *testing.T) {
	inner := card{device.NewReference(op.Float32), "inner"}
	for name, c := range map[string]struct {
		dev  device.Device
		want string
	}{
		"itself":          {inner, "inner"},
		"within":          {wrapped{wrapped{inner}}, "inner"},
		"the first":       {wrapped{card{wrapped{inner}, "outer"}}, "outer"},
		"hidden":          {struct{ device.Device }{inner}, ""},
		"none":            {wrapped{device.NewReference(op.Float32)}, ""},
		"of a pipeline":   {device.Piped(inner), "inner"},
		"of no device":    {nil, ""},
		"of an empty one": {wrapped{}, ""},
	} {
		got := ""
		if d, ok := device.As[device.Card](c.dev); ok {
			got = d.Card()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	lazy := devicetest.Lazy(device.NewReference(op.Float32))
	if device.Piped(lazy) != lazy || device.Piped(wrapped{lazy}) != lazy {
		t.Error("a pipeline is not its own")
	}
}
