package cpu

import (
	"math"

	"onlinerna/nn/device/cpu/internal/vec"
)

// epilogue is what a product does with its results while they are in registers or in a cache.
type epilogue struct {
	norm  *foldedNorm // nil for none
	other int         // a value that is added to the result, or -1
	relu  bool        // negative results become 0
	sums  *blockSums  // nil for none
}

// foldedNorm is a batch normalisation by constants, which the weights and the bias of a product take up.
type foldedNorm struct {
	eps                float64
	stats, scale, bias int // values
	gain, shift        part
}

// blockSums are sums over the pixels of each channel, of two quantities, taken of a block as soon as it is there.
type blockSums struct {
	// bind gives what fills the parameters of a row of channels, nil where there are none, what adds the sums of a
	// matrix, and what receives the totals of a channel.
	bind func(s *storage) (prepare func(row []float32, r rows), add func(m summed), finish func(channel int, first, second float64))

	rows                rows
	blocks              int
	partial, parameters part
}

// stride is the partial sums of a block.
func (b *blockSums) stride() int { return 2 * vec.Padded(b.rows.width()) }

// summable says whether the blocks of p are whole lines of all channels.
func (p *product) summable() bool {
	return p.groups == 1 && len(p.grids) == 1 && p.grids[0].whole(p) && len(p.grids[0].taps) > 0
}

// lower adds the scratch of e to r, for a product with columns packed in all, whose result has the given rows and is
// made in so many blocks of them.
func (e *epilogue) lower(r *room, columns int, rows rows, blocks int) {
	if n := e.norm; n != nil {
		n.gain, n.shift = r.floats(columns), r.floats(columns)
	}
	if s := e.sums; s != nil {
		s.rows, s.blocks = rows, blocks
		s.partial, s.parameters = r.doubles(s.blocks*s.stride()), r.floats(s.rows.width())
	}
}

// boundEpilogue is what a bound product knows of its epilogue.
type boundEpilogue struct {
	gain, shift []float32 // of the columns of all groups as they are packed, nil for none
	added       []float32 // nil for none

	add        func(m summed) // nil for none
	partial    []float64
	stride     int // of partial, from a block to the next
	parameters []float32
}

// bind fills k and returns the phases before the weights are packed and those after all blocks. The columns of a group
// of p are packed with some that are not used.
func (e *epilogue) bind(s *storage, k *boundEpilogue, p *product, padded int) (before, after []phase) {
	if e.other >= 0 {
		k.added = s.floats(e.other)
	}
	if n := e.norm; n != nil {
		k.gain, k.shift = s.scratch(n.gain), s.scratch(n.shift)
		stats, scale, bias := s.floats(n.stats), s.floats(n.scale), s.floats(n.bias)
		before = append(before, phase{1, func(int, int) {
			channels := len(scale)
			for g := range p.groups {
				gain, shift := k.gain[g*padded:][:padded], k.shift[g*padded:][:padded]
				clear(gain[p.rows:])
				clear(shift[p.rows:])
				for j := range p.rows {
					c := (g*p.rows + j) % channels // pixels may be folded
					a := float64(scale[c]) / math.Sqrt(float64(stats[channels+c])+n.eps)
					gain[j], shift[j] = float32(a), float32(float64(bias[c])-float64(stats[c])*a)
				}
			}
		}})
	}
	if b := e.sums; b != nil {
		prepare, add, finish := b.bind(s)
		k.add, k.partial, k.stride, k.parameters = add, s.scratch64(b.partial), b.stride(), s.scratch(b.parameters)
		if prepare != nil {
			before = append(before, phase{1, func(int, int) { prepare(k.parameters, b.rows) }})
		}
		after = append(after, totals(k.partial, b.stride(), b.rows, finish))
	}
	return before, after
}

// scale takes up the normalisation in a packed panel, a row of biases and then those of the weights.
func (k *tiledKernel) scale(panel []float32, width, group, first int) {
	if k.gain == nil {
		return
	}
	gain, shift := k.gain[group*k.padded+first:][:width], k.shift[group*k.padded+first:][:width]
	set := kernels()
	set.Scale(panel, panel, gain)
	set.Add(panel[:width], panel[:width], shift)
}

// sum takes the sums of a block.
func (k *tiledKernel) sum(b *tiledBlock) {
	f := &k.families[b.family]
	lo := b.panel * k.set.Columns()
	hi := min(lo+b.panels*k.set.Columns(), k.rows)
	k.sumColumns(b.number, lo, hi, (b.image*k.dstH+b.line)*k.dstW*k.dstC, k.dstC, b.images*b.lines*f.width)
}

// sumColumns takes the sums of columns lo to hi of a block: rows of the result from an element on, stride apart.
func (k *boundEpilogue) sumColumns(block, lo, hi, from, stride, rows int) {
	partial := k.partial[block*k.stride:][:k.stride]
	m := summed{
		first: partial[lo:vec.Padded(hi)], second: partial[k.stride/2+lo : k.stride/2+vec.Padded(hi)],
		from:       from + lo,
		parameters: k.parameters[lo:hi],
		width:      hi - lo, stride: stride, rows: rows,
	}
	clear(m.first)
	clear(m.second)
	k.add(m)
}
