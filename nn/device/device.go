package device

import (
	"fmt"
	"strings"

	"onlinerna/nn/op"
)

// Device is a processor with its memory. Its methods may be called from one goroutine at a time.
type Device interface {
	// Name is the device's name for users, such as "cpu".
	Name() string
	// DType is the floating-point type of vectors, and so of parameters.
	DType() op.DType

	// Layout returns the memory layout of a value from outside the graph.
	Layout(t op.Type, role Role) Layout
	// Describe returns the device's plan for a group. The layouts and bytes of g's inputs are set. A group that the
	// device lacks, or whose types do not fit, is an *UnsupportedError.
	Describe(g *Group) (*Plan, error)
	// Bind returns the kernel that runs g on the storage of a. p is the result of Describe for g; it may be bound
	// several times.
	Bind(g *Group, p *Plan, a Args) (Kernel, error)

	// NewMemory allocates zeroed memory.
	NewMemory(bytes int) (Memory, error)
	// NewVector allocates n zeros.
	NewVector(n int) (Vector, error)

	// Upload stores a row-major host tensor in r in layout l, and Download is its inverse. r is exactly
	// the storage of the value. Between float32 and float64 they convert; other element types must agree.
	Upload(r Region, l Layout, src op.Tensor) error
	Download(dst op.Tensor, r Region, l Layout) error

	// Sync waits for all kernels and returns the first error of an asynchronous one.
	Sync() error
	// Close releases the device's resources; its memories and vectors become invalid.
	Close() error
}

// Grouper is a Device that runs some groups of ops faster than single ops.
type Grouper interface {
	Device
	// Group proposes groups of steps of p, by index, each in execution order. Steps that appear in none run alone. It
	// must be possible to run a whole group at the place of its last step.
	Group(p *Program) [][]int
}

// Rewriter is a Device that runs some programs faster in another form.
type Rewriter interface {
	Device
	// Rewrite changes p, before grouping, to a program with the same results that allows better groups. It may move
	// steps, replace their ops, and add steps that recompute a value from operands that are in memory anyway. Existing
	// values keep their indices, and their types if they are kept; new ones follow. A step makes each of them.
	Rewrite(p *Program)
}

// Narrower is a Device that stores some results in fewer bytes than their types have, if all that read them allow it.
type Narrower interface {
	Device
	// Narrow lists values of p, made by its steps. Describe finds them in a group by Value.Narrow.
	Narrow(p *Program) []int
}

// Divider is a Device that runs some steps for a few samples at a time, so that a step finds the results of the one
// before it in a cache. Samples are the first dimension of a value and lie one after the other in the device's layouts.
// The storage of a portion may start at any element.
type Divider interface {
	Device
	// Divide proposes stages of p, in execution order. Steps outside of stages before the last stage's end read no stage's
	// result: they run before all stages.
	Divide(p *Program) []Stage
}

// Stage is steps that treat each sample by itself.
type Stage struct {
	Steps   []int   // in execution order
	Ops     []op.Op // of the steps, for Samples samples
	In      []int   // operands from outside of the stage that have all samples; others are the same for all
	Samples int     // that run at a time, a divisor of all
}

// Sizer is a Device with layouts in which a value takes another number of bytes than its type says.
type Sizer interface {
	Device
	// Bytes is the storage of a value in a layout that Layout returns.
	Bytes(t op.Type, l Layout) int
}

// Bytes is the storage on d of a value from outside.
func Bytes(d Device, t op.Type, l Layout) int {
	if s, ok := As[Sizer](d); ok {
		return s.Bytes(t, l)
	}
	return t.Bytes()
}

// LossScaler is a Device that may multiply the loss by a power of 2, so that small gradients do not vanish in a short
// floating-point type. Gradients that leave the device are divided by it. Vector.Update makes no step where the
// gradient is not finite and halves the scale then; after some good steps it is doubled.
type LossScaler interface {
	Device
	// LossScale is the present state, with Scale 0 on a device that scales nothing.
	LossScale() (LossScale, error)
	// SetLossScale restores a state.
	SetLossScale(LossScale) error
}

// LossScale is the state of a LossScaler.
type LossScale struct {
	Scale   float64 `json:"scale"`
	Good    int     `json:"good"`    // steps in a row towards doubling it
	Skipped int     `json:"skipped"` // steps that were not made
}

// Role is the purpose of a value from outside the graph.
type Role uint8

// The roles.
const (
	Data   Role = iota // activations, images, labels: logical shapes NCHW
	Weight             // parameters, their gradients and the optimiser's state, statistics
)

// Layout names a memory layout of a value. Only the device that made it knows its meaning; the empty layout is
// row-major. Layouts from Device.Layout permute elements without padding: the value takes Type.Bytes of storage, or
// the Bytes of a Sizer; weights always take Type.Bytes. The gradient of a parameter comes out in the parameter's
// layout.
type Layout string

// Value is a tensor of a program.
type Value struct {
	Name   string // of the node that makes it: for messages
	Type   op.Type
	Layout Layout
	Bytes  int // of storage, once known

	// Fixed says that the value, which comes from outside, is the same in all runs of a kernel after it is bound: the
	// kernel may keep results that depend on it alone, such as packed weights, in memory of its own.
	Fixed bool

	// Narrow says that the device's Narrower named the value.
	Narrow bool
}

// Step is one op of a program, applied to values by index.
type Step struct {
	Name string // of the layer
	Op   op.Op
	In   []int
	Out  int
}

// Program is a list of steps in execution order. Each value is written by one step at most, and before it is
// read; the others come from outside. The first operand of an op.InPlace is written a second time.
type Program struct {
	Values []Value
	Steps  []Step
	Keep   []int // values that stay readable after the last step
}

// Group is a part of a program that a device runs as one kernel. Indices refer to its own Values.
type Group struct {
	Values  []Value
	Steps   []Step
	Inputs  []int // values made elsewhere
	Outputs []int // values that are used elsewhere
}

// String writes the group's ops and shapes, as "bn1: batch_norm{…} float32[8 3 4 4] … + relu".
func (g *Group) String() string {
	var b strings.Builder
	for i, s := range g.Steps {
		if i > 0 {
			b.WriteString(" + ")
		}
		fmt.Fprintf(&b, "%s: %v(", s.Name, s.Op)
		for j, v := range s.In {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteString(g.Values[v].Type.String())
		}
		fmt.Fprintf(&b, ") -> %v", g.Values[s.Out].Type)
	}
	return b.String()
}

// Title names the group in a few words: its first layer and the kinds of its ops, as "bn1 batch_norm + relu".
func (g *Group) Title() string {
	var kinds []string
	for _, s := range g.Steps {
		kinds = append(kinds, s.Op.Kind())
	}
	return g.Steps[0].Name + " " + strings.Join(kinds, " + ")
}

// Plan is a device's answer to Describe.
type Plan struct {
	Outputs   []Output // one for each of the group's Outputs
	Workspace int      // bytes of scratch, with undefined content, that no other running kernel uses
	Kept      int      // bytes that a bound kernel takes itself, for results of Fixed values: see Args.Kept

	// Lowering is the device's own: how it runs the group, for Bind.
	Lowering any
}

// Output describes the storage of a group's output.
type Output struct {
	Layout Layout
	Bytes  int
	// Over lists inputs, by position in Group.Inputs, whose storage the output may take over, provided that it has
	// the same size and no later step reads the input.
	Over []int
	// View, if not nil, says that the output needs no storage: it is a part of an input.
	View *View
}

// View is a part of an input's storage.
type View struct {
	Input  int // position in Group.Inputs
	Offset int // bytes
}

// Args is the storage of a group's values, in the order of its Inputs and Outputs. An output that is a view is not
// written by the kernel unless its region lies elsewhere than the view: then the kernel copies it. The output of an
// op.InPlace has the region of the op's first operand. Regions start at multiples of 64 bytes, but for those of
// Weight values and of views, which start at multiples of their element.
type Args struct {
	In, Out   []Region
	Workspace Region
	Kept      *Kept // shared with other bindings of the plan to the same Fixed values; nil for none
}

// Kept is memory in which kernels keep results of Fixed values, such as packed weights.
type Kept struct {
	Memory Memory // allocated by the first kernel that is bound
	Made   bool   // the first kernel that ran has filled it
}

// Kernel runs a bound group. On a device with queues it may return before the work is done.
type Kernel func() error

// UnsupportedError reports a group of ops that a device cannot run.
type UnsupportedError struct {
	Device string
	Group  *Group
	Reason string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("device %s cannot run %v: %s", e.Device, e.Group, e.Reason)
}
