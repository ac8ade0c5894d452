package machine

import (
	"fmt"

	"onlinerna/nn/device"
)

// Arena is memory for the intermediate results of machines that never run at the same time. It grows to the
// largest of them, and then the others bind their kernels anew at their next run.
type Arena struct {
	dev    device.Device
	want   int // bytes of the largest machine so far
	mem    device.Memory
	moved  int      // number of allocations of mem
	holder *Machine // the last that ran: its results are in mem
}

// NewArena makes an empty arena on a device.
func NewArena(dev device.Device) *Arena { return &Arena{dev: dev} }

// Bytes is the size of the largest machine that was planned on the arena.
func (a *Arena) Bytes() int { return a.want }

// reserve makes sure that the memory will have n bytes once it is needed.
func (a *Arena) reserve(n int) { a.want = max(a.want, n) }

// memory allocates the reserved bytes, which invalidates kernels bound to an earlier memory.
func (a *Arena) memory() (device.Memory, error) {
	if a.mem != nil && a.mem.Bytes() >= a.want {
		return a.mem, nil
	}
	if err := a.Close(); err != nil {
		return nil, err
	}
	mem, err := a.dev.NewMemory(max(a.want, alignment)) // some devices have no memory of 0 bytes
	if err != nil {
		return nil, fmt.Errorf("machine: arena of %d bytes on device %s: %w", a.want, a.dev.Name(), err)
	}
	a.mem = mem
	a.moved++
	return mem, nil
}

// Close gives the memory back. A machine that runs later allocates it again.
func (a *Arena) Close() error {
	if a.mem == nil {
		return nil
	}
	err := a.dev.Sync() // kernels may still be under way
	a.mem.Free()
	a.mem, a.holder = nil, nil
	return err
}
