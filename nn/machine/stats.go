package machine

import (
	"fmt"
	"io"
	"strings"
)

// Stats are the sizes of a planned program.
type Stats struct {
	Nodes  int // of the graph
	Live   int // nodes that a wanted result depends on
	Again  int // values that LowMemory has made a second time
	Steps  int // ops to run
	Groups int // different kernels
	Runs   int // of kernels in a run: more than Groups if some run portion by portion

	Arena      int // bytes of the planned arena
	LowerBound int // largest number of bytes live at once: in this order no arena can be smaller
	Unshared   int // bytes of the arena without any reuse
	Workspace  int // bytes of the largest scratch area, which is a part of the arena
	Inputs     int // bytes of constants and unbound inputs, which lie outside the arena
	Kept       int // bytes that kernels take outside the arena, for results of Fixed inputs
}

// Stats describes the machine's plan. Nothing needs to have run or to be allocated.
func (m *Machine) Stats() Stats {
	s := Stats{
		Nodes: len(m.prog.graph.AllNodes()), Live: len(m.prog.values), Again: m.prog.again, Steps: len(m.prog.Steps),
		Groups: len(m.plan.tasks), Runs: m.plan.runs(len(m.plan.tasks)),
		Arena: m.plan.bytes, LowerBound: m.plan.lowerBound(), Inputs: m.plan.inputs,
	}
	for _, b := range m.plan.buffers {
		if b.owner == arena {
			s.Unshared += align(b.bytes)
		}
	}
	for _, t := range m.plan.tasks {
		s.Workspace = max(s.Workspace, t.plan.Workspace)
		s.Kept += t.plan.Kept
	}
	s.Unshared += align(s.Workspace)
	return s
}

// WriteListing writes the program in the order in which it runs: each op with its operands, and where values lie. It
// helps to debug wrong results and memory use.
func (m *Machine) WriteListing(w io.Writer) error {
	_, err := io.WriteString(w, m.String())
	return err
}

// String returns the output of WriteListing.
func (m *Machine) String() string {
	var b strings.Builder
	s := m.Stats()
	fmt.Fprintf(&b, "%d ops in %d kernels on device %s, arena of %d bytes, at least %d are needed\n", s.Steps, s.Groups,
		m.dev.Name(), s.Arena, s.LowerBound)
	for v, x := range m.prog.Values {
		if m.prog.sources[v] != computed {
			fmt.Fprintf(&b, "      %%%d %s %s\n", v, x.Name, m.location(v))
		}
	}
	for i := range m.plan.tasks {
		k := &m.plan.tasks[i]
		if l := m.plan.loopOf(i); l.times > 1 && l.from == i {
			fmt.Fprintf(&b, "      kernels %d to %d run %d times, for a portion of the samples each\n", l.from, l.to-1, l.times)
		}
		for j, step := range k.steps {
			number := "    "
			if j == 0 {
				number = fmt.Sprintf("%4d", i)
			}
			st := m.prog.Steps[step]
			fmt.Fprintf(&b, "%s  %%%d = %s %v(", number, st.Out, st.Name, st.Op)
			for n, v := range st.In {
				if n > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, "%%%d", v)
			}
			fmt.Fprintf(&b, ") %s\n", m.location(st.Out))
		}
		if o := m.plan.work[i]; o >= 0 {
			fmt.Fprintf(&b, "      workspace of %d bytes at %d\n", k.plan.Workspace, m.plan.offsets[o])
		}
	}
	return b.String()
}

// location is the type of a value and its storage.
func (m *Machine) location(v int) string {
	x := &m.prog.Values[v]
	s := x.Type.String()
	if x.Layout != "" {
		s += " " + string(x.Layout)
	}
	at := m.plan.places[v]
	if at.buffer < 0 {
		return s + " within the kernel"
	}
	b := &m.plan.buffers[at.buffer]
	switch b.owner {
	case arena:
		s += fmt.Sprintf(" at %d", m.plan.offsets[b.item]+at.offset)
	case inputs:
		s += fmt.Sprintf(" at %d of the inputs", b.offset+at.offset)
	case caller:
		s += fmt.Sprintf(" at %d of bound memory", b.region.Offset+at.offset)
	}
	if b.kept {
		s += ", kept"
	}
	return s
}

var _ fmt.Stringer = (*Machine)(nil)
