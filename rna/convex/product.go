package convex

import (
	"gonum.org/v1/gonum/floats"

	"onlinerna/rna/convex/internal/kern"
)

// A product multiplies vectors by XᵀDX in one pass over the rows of X. It is for one goroutine at a time.
type product struct {
	m      *Matrix
	team   *team
	strips *strips     // of the rows, or nil
	parts  [][]float64 // sums, one a block of the team
	quads  [][]float64 // with strips: scratch of blocks, and the vector
	packed []float64
}

func newProduct(m *Matrix, t *team) *product {
	p := &product{m: m, team: t, strips: m.stripped(t), parts: make([][]float64, t.blocks())}
	size := m.d
	if p.strips != nil {
		size = p.strips.size()
		p.quads, p.packed = make([][]float64, t.blocks()), make([]float64, size)
	}
	for b := range p.parts {
		p.parts[b] = make([]float64, size)
		if p.strips != nil {
			p.quads[b] = make([]float64, kern.Quad*p.strips.tile)
		}
	}
	return p
}

// apply sets out to XᵀDX v, with D = I where weights is nil.
func (p *product) apply(out, v, weights []float64) {
	if p.strips != nil {
		p.strips.pack(p.packed, [][]float64{v})
	}
	p.team.each(func(b, lo, hi int) {
		clear(p.parts[b])
		if p.strips != nil {
			p.tiles(b, lo, hi, weights)
			return
		}
		for i := lo; i < hi; i++ {
			a := p.m.dot(i, v)
			if weights != nil {
				a *= weights[i]
			}
			p.m.add(p.parts[b], a, i)
		}
	})
	if p.strips != nil {
		clear(out)
		for _, part := range p.parts {
			p.strips.unpack(out, part, 0)
		}
		return
	}
	copy(out, p.parts[0])
	for _, part := range p.parts[1:] {
		floats.Add(out, part)
	}
}

// tiles is apply's work on a block of rows.
func (p *product) tiles(b, lo, hi int, weights []float64) {
	k, z := kern.Default(), p.quads[b]
	for ; lo < hi; lo += p.strips.tile {
		rows := min(p.strips.tile, hi-lo)
		p.strips.dots(k, z, p.packed, lo, rows)
		if weights != nil {
			for i, a := range weights[lo : lo+rows] {
				z[kern.Quad*i] *= a
			}
		}
		p.strips.addRows(k, p.parts[b], z, lo, rows)
	}
}
