// Package work partitions the work of the CPU device's kernels and manages its memory: phases of blocks, the storage of
// a group's values, and scratch.
package work

import (
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
)

// Phase is a part of a kernel: blocks that may run at the same time. A phase starts when the ones before it have
// finished.
type Phase struct {
	Blocks int
	Run    func(worker, block int)
	Once   bool // its results are kept: it runs in the kernel's first run alone
}

// One is the list of phases of a kernel that is too small to be divided.
func One(f func()) []Phase { return []Phase{{Blocks: 1, Run: func(int, int) { f() }}} }

// Bind makes the phases of a group for given storage.
type Bind func(s *Storage) []Phase

// Kernel is a lowered group.
type Kernel struct {
	Bind Bind

	pieces map[int]int   // the largest number of elements of a piece, by value that is taken in pieces
	stages map[int]stage // by value that is stored as bfloat16
}

// Take makes k take values, except negative ones, in pieces of at most the given number of elements: see
// Storage.Pieces.
func (k *Kernel) Take(elements int, values ...int) {
	if k.pieces == nil {
		k.pieces = map[int]int{}
	}
	for _, v := range values {
		if v >= 0 {
			k.pieces[v] = max(k.pieces[v], elements)
		}
	}
}

// The types of package lower, for this device.
type (
	Lowering = lower.Lowering[Kernel]
	Pattern  = lower.Pattern[Kernel]
	Match    = lower.Match[Kernel]
	Step     = lower.Step
)

// ElementBlock is the number of elements of a block of an elementwise op: 64 KiB an operand, so that BenchmarkTraffic's
// ops reach the rate of a copy and small activations still have several blocks.
const ElementBlock = 16 << 10

// Piece is about the number of elements that kernels of activations in bfloat16 take at a time: their inputs and
// results stay in the first level cache.
const Piece = 2 << 10

// Result is the lowering of a step with one result in layout l, without scratch.
func Result(s Step, l device.Layout, bind Bind) *Lowering {
	return &Lowering{
		Results: []lower.Result{{Value: s.Out, Layout: l, Bytes: s.OutType().Bytes()}},
		Kernel:  Kernel{Bind: bind},
	}
}

// Data is Result in the layout of activations.
func Data(s Step, bind Bind) *Lowering {
	return Result(s, Layout(s.OutType(), device.Data), bind)
}

// Expect returns an error for an operand whose layout is not the device's own for its role.
func Expect(s Step, roles ...device.Role) error {
	for i, r := range roles {
		v := s.InValue(i)
		if want := Layout(v.Type, r); Order(v) != want {
			return lower.Reason(fmt.Sprintf("operand %d has layout %q, want %q", i, v.Layout, want))
		}
	}
	return nil
}

// Fixed reports whether values are the same in all runs; it ignores negative ones.
func Fixed(s Step, values ...int) bool {
	for _, v := range values {
		if v >= 0 && !s.Values[v].Fixed {
			return false
		}
	}
	return true
}

// DataIn is Expect for operands that are all activations.
func DataIn(s Step) error { return Expect(s, make([]device.Role, len(s.In))...) }

// IsData is Expect for values that are activations; it ignores negative ones.
func IsData(s Step, values ...int) error {
	for _, v := range values {
		if v >= 0 && Order(s.Values[v]) != Layout(s.Values[v].Type, device.Data) {
			return lower.Reason("operands have different layouts")
		}
	}
	return nil
}

// Ceil is a/b rounded up, for a ≥ 0.
func Ceil(a, b int) int { return (a + b - 1) / b }

// Floor is a/b rounded down, for positive b.
func Floor(a, b int) int {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

// Even is the size of equal parts of n, multiples of unit, that are at most about most.
func Even(n, most, unit int) int {
	parts := Ceil(n, max(most, unit))
	return Ceil(Ceil(n, parts), unit) * unit
}

// Eights rounds n up to a multiple of 8, the channels that kern.Tiles turns at a time.
func Eights(n int) int { return Ceil(n, 8) * 8 }
