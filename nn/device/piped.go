package device

import (
	"errors"
	"fmt"

	"onlinerna/nn/op"
)

// Piped returns d as a Pipeline: the one that [As] finds, or else d with synchronous lanes and steps. If d uses the
// host's memory, a lane is that memory and nothing is copied.
func Piped(d Device) Pipeline {
	if p, ok := As[Pipeline](d); ok {
		return p
	}
	return &piped{d}
}

// piped is a device that is waited for.
type piped struct{ Device }

var (
	_ Pipeline = (*piped)(nil)
	_ Wrapper  = (*piped)(nil)
)

// Unwrap implements Wrapper.
func (p *piped) Unwrap() Device { return p.Device }

// Lanes implements Pipeline.
func (p *piped) Lanes() int { return 1 }

// Record implements Pipeline.
func (p *piped) Record(func() error) (Recording, error) { return nil, nil }

// pipedLane copies at once, and not at all where the device's memory is the host's.
type pipedLane struct {
	d               Device
	in, out         Memory
	hostIn, hostOut *HostMemory
}

// NewLane implements Pipeline.
func (p *piped) NewLane(input, output int) (Lane, error) {
	l := &pipedLane{d: p.Device}
	var err error
	if l.in, l.hostIn, err = p.memory(input); err == nil {
		l.out, l.hostOut, err = p.memory(output)
	}
	if err != nil {
		l.Free()
		return nil, fmt.Errorf("lane for %d and %d bytes: %w", input, output, err)
	}
	return l, nil
}

// memory is the device's and the host's of one direction.
func (p *piped) memory(bytes int) (Memory, *HostMemory, error) {
	m, err := p.NewMemory(bytes)
	if err != nil {
		return nil, nil, err
	}
	if h, ok := m.(*HostMemory); ok {
		return m, h, nil
	}
	h, err := NewHostMemory(bytes)
	return m, h, err
}

// Input implements Lane.
func (l *pipedLane) Input() Memory { return l.in }

// Output implements Lane.
func (l *pipedLane) Output() Memory { return l.out }

// Host implements Lane.
func (l *pipedLane) Host() (*HostMemory, error) { return l.hostIn, nil }

// Send implements Lane.
func (l *pipedLane) Send(parts ...Span) error {
	for _, p := range parts {
		if p.Off < 0 || p.Len < 0 || p.Off > l.in.Bytes()-p.Len {
			return fmt.Errorf("bytes %d to %d of a lane of %d", p.Off, p.Off+p.Len, l.in.Bytes())
		}
		if l.in == Memory(l.hostIn) {
			continue
		}
		src, err := HostSlice[uint8](Region{l.hostIn, p.Off, p.Len})
		if err == nil {
			err = l.d.Upload(Region{l.in, p.Off, p.Len}, "", op.Tensor{Shape: op.Shape{p.Len}, Data: src})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Fetch implements Lane.
func (l *pipedLane) Fetch() error {
	if l.out == Memory(l.hostOut) {
		return nil
	}
	n := l.out.Bytes()
	dst, err := HostSlice[uint8](Region{l.hostOut, 0, n})
	if err != nil {
		return err
	}
	return l.d.Download(op.Tensor{Shape: op.Shape{n}, Data: dst}, Region{l.out, 0, n}, "")
}

// End implements Lane.
func (l *pipedLane) End() error { return nil }

// Results implements Lane.
func (l *pipedLane) Results() (*HostMemory, error) {
	if l.hostOut == nil {
		return nil, errors.New("the lane is free")
	}
	return l.hostOut, nil
}

// Free implements Lane.
func (l *pipedLane) Free() {
	for _, m := range []Memory{l.in, l.out} {
		if m != nil {
			m.Free()
		}
	}
}
