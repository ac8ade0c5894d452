package product

import (
	"slices"

	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// merged says how groups of a few channels, which would leave most lanes of a vector empty, run as larger groups: each
// has the channels and the rows of count groups, and zeros for the weights between different ones. A number that is not
// finite therefore reaches the whole larger group.
type merged struct {
	count           int // groups of a larger group; more than 1
	taps            int
	inputs, outputs int // weights of a tap: inputs of a group × outputs of all groups
	rows            int // outputs of a group
}

// mergedGroups chooses the least number of groups for which vectors pay, and multiples of it that still fit into one
// vector; nil if no number divides groups, one group is enough, or no kernels are there. channels and rows are those of
// a group.
func (d Options) mergedGroups(groups, channels, rows int) *merged {
	if groups == 1 || d.BFloat16 || d.set() == nil || channels == 1 && rows == 1 {
		return nil
	}
	const most = 8
	n := 1
	for n <= min(most, groups) && (groups%n != 0 || !vectorised(groups/n, n*channels, n*rows)) {
		n++
	}
	if n > min(most, groups) {
		return nil
	}
	for groups%(2*n) == 0 && 2*n*max(channels, rows) <= d.set().Lanes {
		n *= 2
	}
	if n == 1 {
		return nil
	}
	return &merged{count: n}
}

// merge returns p with merged groups where that pays, for weights of the given shape, OIHW.
func (d Options) merge(p *product, weight op.Shape) *product {
	m := d.mergedGroups(p.groups, p.grids[0].channels, p.rows)
	if m == nil || d.groups(p) != nil {
		return p
	}
	m.taps, m.inputs, m.outputs, m.rows = weight[2]*weight[3], weight[1], weight[0], weight[0]/p.groups
	q := *p
	q.merged, q.groups, q.rows = m, p.groups/m.count, m.count*p.rows
	q.weightTap, q.weightGroup = m.count*p.weightTap, m.count*p.weightGroup
	q.grids = slices.Clone(p.grids)
	for i := range q.grids {
		q.grids[i].channels *= m.count
	}
	return &q
}

// mergeOuter returns o with merged groups where that pays.
func (d Options) mergeOuter(o *outer) *outer {
	m := d.mergedGroups(o.groups, o.channels, o.rows)
	if m == nil || d.groupsOuter(o) != nil {
		return o
	}
	m.taps, m.inputs, m.outputs, m.rows = len(o.taps), o.channels, o.columns, o.rows
	q := *o
	q.merged, q.groups, q.rows, q.channels = m, o.groups/m.count, m.count*o.rows, m.count*o.channels
	return &q
}

// each calls f for the weights of a tap: n outputs of an input from from on, and their place in a larger group's weights.
func (m *merged) each(tap int, f func(from, to, n int)) {
	for i := range m.inputs {
		for o := 0; o < m.outputs; o += m.rows {
			input := o/m.rows%m.count*m.inputs + i
			f((tap*m.inputs+i)*m.outputs+o, (tap*m.count*m.inputs+input)*m.outputs+o, m.rows)
		}
	}
}

// size is the number of weights of the larger groups.
func (m *merged) size() int { return m.taps * m.count * m.inputs * m.outputs }

// spread reserves room for the weights of larger groups and returns a function that binds them, with the phase that
// makes them; m may be nil.
func (m *merged) spread(r *work.Room, weights int) func(s *work.Storage) ([]float32, []work.Phase) {
	if m == nil {
		return func(s *work.Storage) ([]float32, []work.Phase) { return s.Floats(weights), nil }
	}
	room := r.Floats(m.size())
	return func(s *work.Storage) ([]float32, []work.Phase) {
		w, to := s.Floats(weights), s.Scratch(room)
		return to, []work.Phase{{Blocks: m.taps, Run: func(_, tap int) {
			n := m.size() / m.taps
			clear(to[tap*n:][:n])
			m.each(tap, func(from, at, n int) { copy(to[at:][:n], w[from:]) })
		}}}
	}
}

// gather is the phase that takes the weights of groups from those of larger groups.
func (m *merged) gather(dst, from []float32) work.Phase {
	return work.Phase{Blocks: m.taps, Run: func(_, tap int) {
		m.each(tap, func(at, in, n int) { copy(dst[at:][:n], from[in:]) })
	}}
}
