//go:build gpu && cgo

package kernels_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"onlinerna/cuda/check/cubin"
	"onlinerna/cuda/check/gputest"
)

// resources are the registers and the occupancy of the compiled kernels.
type resources struct {
	sync.Mutex
	rows map[string]map[int]cubin.Kernel // by source and kernel, and by architecture
}

// tuned are the architectures for which NVRTC 13 spills no register and half of a multiprocessor's threads run.
var tuned = []int{80, 89, 90, 100}

// check reads an image and checks each kernel's bounds: strict ones, or those for old compilers and cards that the
// kernels are not tuned for.
func (r *resources) check(t *testing.T, source string, arch int, image []byte, strict bool) {
	all, err := cubin.Read(image)
	if err != nil {
		t.Fatal(err)
	}
	m, err := cubin.ByArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	r.Lock()
	defer r.Unlock()
	if r.rows == nil {
		r.rows = map[string]map[int]cubin.Kernel{}
	}
	for _, k := range all {
		row := source + " " + k.Name
		if r.rows[row] == nil {
			r.rows[row] = map[int]cubin.Kernel{}
		}
		r.rows[row][arch] = k
		stack, least := 0, gputest.LeastOccupancy
		if !strict {
			stack, least = 64, .25 // a block of the statistics takes half of a T4's shared memory
		}
		if k.Frame > stack || k.Stack > stack {
			t.Errorf("%s: a thread has %d bytes of stack, %d with called functions: registers are spilled", k.Name,
				k.Frame, k.Stack)
		}
		if k.Threads == 0 {
			t.Errorf("%s has no __launch_bounds__", k.Name)
		} else if o := m.Occupancy(k, k.Threads, 0); o < least || k.Registers > gputest.MostRegisters {
			t.Errorf("%s: %d registers, %d bytes of shared memory and %d threads fill %.0f %% of a multiprocessor, "+
				"want %.0f %%, and at most %d registers",
				k.Name, k.Registers, k.Shared, k.Threads, 100*o, 100*least, gputest.MostRegisters)
		}
	}
}

// String is a table of each kernel's registers and occupancy by architecture.
func (r *resources) String() string {
	var names []string
	archs := map[int]bool{}
	for name, row := range r.rows {
		names = append(names, name)
		for a := range row {
			archs[a] = true
		}
	}
	slices.Sort(names)
	var order []int
	for a := range archs {
		order = append(order, a)
	}
	slices.Sort(order)
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-44s %8s %8s", "registers, and threads of a multiprocessor", "shared", "threads")
	for _, a := range order {
		fmt.Fprintf(&b, " %11s", fmt.Sprintf("sm_%d", a))
	}
	for _, name := range names {
		fmt.Fprintf(&b, "\n%-44s", name)
		one := r.rows[name][90]
		fmt.Fprintf(&b, " %8d %8d", one.Shared, one.Threads)
		for _, a := range order {
			k := r.rows[name][a]
			cell := "-"
			if m, err := cubin.ByArch(a); err == nil && k.Registers > 0 {
				cell = fmt.Sprintf("%d %3.0f %%", k.Registers, 100*m.Occupancy(k, k.Threads, 0))
			}
			if k.Stack > 0 {
				cell += "!"
			}
			fmt.Fprintf(&b, " %11s", cell)
		}
	}
	return b.String()
}
