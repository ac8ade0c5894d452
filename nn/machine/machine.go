package machine

import (
	"errors"
	"io"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// Config says what to run and where. Only Device and Keep are required.
type Config struct {
	Device device.Device

	// Keep lists the results that stay readable after a run. Nodes on which neither they nor bound results
	// depend are not run: the update of a state has to be among them.
	Keep G.Nodes

	// Bind gives nodes storage that the caller owns: inputs, as parameters and statistics, and results, as
	// gradients that belong into a part of a flat vector. A bound result is computed even if it is not in Keep.
	Bind map[*G.Node]Binding

	// Ungrouped runs every op alone, also on a device that would rather group them.
	Ungrouped bool

	// Arena is shared with machines that never run at the same time. Nil means an arena of one's own.
	Arena *Arena
}

// Binding is storage that the caller owns, and how the value lies in it.
type Binding struct {
	Region device.Region
	Layout device.Layout
}

// Machine runs a graph on a device. It may be used by one goroutine at a time.
type Machine struct{}

var _ G.VM = (*Machine)(nil)

// New plans the run of g. It allocates no device memory: that is left to the first Write or Run.
func New(g *G.ExprGraph, c Config) (*Machine, error) { return nil, errors.ErrUnsupported }

// Run computes all results from the bound storage and from what Write stored. It allocates nothing after the
// first call. On a device with queues it may return before the work is done: Read and the device's Sync wait.
func (m *Machine) Run() error { return errors.ErrUnsupported }

// Write stores a host tensor in an input that is not bound, where it stays until it is written again. The
// shape must be the node's; between float32 and float64 the elements are converted.
func (m *Machine) Write(n *G.Node, src op.Tensor) error { return errors.ErrUnsupported }

// Read copies a kept or bound value, or an input, to the host. Results are those of the last Run, and are
// gone once another machine ran on the same arena.
func (m *Machine) Read(dst op.Tensor, n *G.Node) error { return errors.ErrUnsupported }

// RunAll implements gorgonia.VM: it writes the Values of all unbound inputs, runs, and makes the kept results
// the Values of their nodes. Run is the fast way.
func (m *Machine) RunAll() error { return errors.ErrUnsupported }

// Reset implements gorgonia.VM. There is nothing to reset: every run starts from its inputs.
func (m *Machine) Reset() {}

// Close gives back the memory that the machine owns. A shared arena is left to its owner.
func (m *Machine) Close() error { return nil }

// Stats describes the machine's plan.
func (m *Machine) Stats() Stats { return Stats{} }

// Stats are the sizes of a planned program.
type Stats struct {
	Nodes  int // of the graph
	Live   int // of those, nodes on which a wanted result depends
	Steps  int // ops to run
	Groups int // kernels to run

	Arena      int // bytes of the planned arena
	LowerBound int // bytes that are live at once, at the worst place of the program: no arena is smaller
	Unshared   int // bytes that an arena without reuse would have
	Workspace  int // bytes of the largest scratch area, which is a part of the arena
	Inputs     int // bytes of constants and unbound inputs, which lie outside the arena
}

// WriteListing writes the program, a line for each group: ops, types, layouts and places in memory.
func (m *Machine) WriteListing(w io.Writer) error { return errors.ErrUnsupported }

// Arena is memory for the intermediate results of machines that never run at the same time. It grows to the
// largest of them, and then the others bind their kernels anew at their next run.
type Arena struct{ dev device.Device }

// NewArena makes an empty arena on a device.
func NewArena(dev device.Device) *Arena { return &Arena{dev: dev} }

// Close gives the memory back. The machines of the arena must not run afterwards.
func (a *Arena) Close() error { return nil }
