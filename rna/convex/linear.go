package convex

import (
	"gonum.org/v1/gonum/floats"

	"onlinerna/rna/convex/internal/kern"
)

// A linear evaluates a risk in passes over the rows, each of which reads the data once: products of rows with
// points, losses at predictions that these give, and gradients, which need the rows again while they are in the cache.
type linear struct {
	*Risk
	team  *team
	kern  *kern.Set
	codes *codes  // of the rows, or nil
	strip *strips // of the rows, or nil
	chunk int     // rows that stay in the cache

	width  int       // of a point or gradient, padded
	points []float64 // side by side, or element by element where quad
	parts  [][]float64
	slopes [][]float64 // and scratch
	quads  [][]float64 // products or slopes of four vectors, by row, with strips
	sums   [][]float64
}

const (
	chunkBytes = 32 << 10
	maxSums    = 8
)

// A lossAt is evaluated at predictions a·z + b·old, for all rows.
type lossAt struct {
	z, old []float64
	a, b   float64
}

// A pass is the work of one reading of the rows.
type pass struct {
	// The predictions at points are written to out: one point after the other, for n rows each.
	points [][]float64
	out    []float64

	// Each mixed is set to predictions, after those at points.
	mixed [][]float64
	mixes []lossAt

	// Losses are summed. Of the first ones, as many as gradients says, there are gradients, too.
	losses    []lossAt
	gradients int
}

func newLinear(r *Risk) *linear {
	m := r.X
	l := &linear{Risk: r, team: newTeam(m), kern: kern.Default(), codes: m.coded(), width: kern.Padded(m.d)}
	l.strip = m.stripped(l.team)
	bytes := 8
	if l.codes != nil {
		bytes, l.width = 2, l.codes.stride
	}
	l.chunk = max(8, min(256, chunkBytes/(bytes*max(1, m.NonZeros()/m.n)))) &^ 7
	if l.strip != nil {
		l.chunk = l.strip.tile
	}
	blocks := l.team.blocks()
	l.parts, l.slopes, l.sums = make([][]float64, blocks), make([][]float64, blocks), make([][]float64, blocks)
	l.quads = make([][]float64, blocks)
	for b := range blocks {
		l.quads[b] = make([]float64, kern.Quad*l.chunk)
		l.slopes[b] = make([]float64, kern.Quad*l.chunk)
		l.sums[b] = make([]float64, maxSums)
	}
	return l
}

// quad reports whether the vectors of a pass are interleaved: four of them with sparse rows.
func (l *linear) quad(vectors int) bool { return l.X.index != nil && vectors > 1 }

// several reports whether one reading of the rows computes the gradients at all points that may be chosen. Otherwise
// a second reading computes only the gradient at the chosen point: when codes take longer to add than to read, or
// when the gradients would take as much memory as the rows.
func (l *linear) several() bool {
	if l.X.index == nil {
		return l.codes == nil
	}
	return kern.Quad*l.X.d*l.team.blocks() <= l.X.NonZeros()
}

// pack puts points where the kernels want them.
func (l *linear) pack(points [][]float64) {
	d := l.X.d
	if l.strip != nil {
		l.points = grown(l.points, l.strip.size())
		l.strip.pack(l.points, points)
		return
	}
	if !l.quad(len(points)) {
		l.points = grown(l.points, len(points)*l.width)
		for k, w := range points {
			to := l.points[k*l.width : k*l.width+d]
			copy(to, w)
			if l.codes != nil {
				floats.Mul(to, l.codes.steps)
			}
		}
		return
	}
	l.points = grown(l.points, kern.Quad*max(d, l.width))
	for k := range kern.Quad {
		if k >= len(points) {
			for j := range d {
				l.points[kern.Quad*j+k] = 0
			}
			continue
		}
		for j, v := range points[k][:d] {
			l.points[kern.Quad*j+k] = v
		}
	}
}

// grown is s if it has n elements, otherwise n zeros.
func grown(s []float64, n int) []float64 {
	if len(s) >= n {
		return s
	}
	return make([]float64, n)
}

// run does a pass and sets dst, if given, to the sums of losses.
func (l *linear) run(p *pass, dst []float64) {
	if len(p.points) > 0 {
		l.pack(p.points)
	}
	l.team.each(func(b, lo, hi int) { l.block(p, b, lo, hi) })
	for k := range dst {
		dst[k] = 0
		for _, s := range l.sums {
			dst[k] += s[k]
		}
	}
}

func (l *linear) block(p *pass, b, lo, hi int) {
	sums := l.sums[b]
	clear(sums)
	var part []float64
	if p.gradients > 0 {
		size := p.gradients * l.width
		if l.strip != nil {
			size = l.strip.size()
		} else if l.quad(p.gradients) {
			size = kern.Quad * l.X.d
		}
		l.parts[b] = grown(l.parts[b], max(size, l.width))
		part = l.parts[b]
		clear(part[:size])
	}
	values, slopes := l.kern.Logistic, l.kern.LogisticSlopes
	if l.Loss == Squares {
		values, slopes = l.kern.Squares, l.kern.SquaresSlopes
	}
	n := l.X.n
	slope := l.slopes[b]
	for ; lo < hi; lo += l.chunk {
		rows := min(l.chunk, hi-lo)
		if k := len(p.points); k > 0 {
			l.products(p.out[lo:], slope, l.quads[b], n, k, lo, rows)
		}
		for k, m := range p.mixes {
			l.kern.Mix(&p.mixed[k][lo], &m.z[lo], &m.old[lo], &m.old[lo], m.a, m.b, 0, rows)
		}
		for k, e := range p.losses {
			if k < p.gradients {
				sums[k] += slopes(&slope[k*l.chunk], &e.z[lo], &e.old[lo], &l.Y[lo], e.a, e.b, rows)
			} else {
				sums[k] += values(&e.z[lo], &e.old[lo], &l.Y[lo], e.a, e.b, rows)
			}
		}
		if p.gradients > 0 {
			l.addRows(part, slope, l.quads[b], p.gradients, lo, rows)
		}
	}
}

// products sets out[k*pitch+i] to the product of row lo+i and point k of those packed.
func (l *linear) products(out, scratch, quads []float64, pitch, points, lo, rows int) {
	m := l.X
	switch {
	case l.codes != nil:
		c := l.codes
		l.kern.CodedDots[points-1](&out[0], &c.values[lo*c.stride], &l.points[0], l.width, c.stride, rows,
			l.width, pitch)
	case m.index == nil:
		l.kern.Dots[points-1](&out[0], &m.values[lo*m.stride], &l.points[0], m.d, m.stride, rows, l.width, pitch)
	case l.strip != nil:
		l.strip.dots(l.kern, quads, l.points, lo, rows)
		for k := range points {
			to := out[k*pitch : k*pitch+rows]
			for i := range to {
				to[i] = quads[kern.Quad*i+k]
			}
		}
	case l.quad(points):
		// The kernel has four results; out has no room for the unused ones.
		l.kern.SparseDots(&scratch[0], first(m.values), first(m.index), &m.start[lo], &l.points[0], rows, l.chunk)
		for k := range points {
			copy(out[k*pitch:k*pitch+rows], scratch[k*l.chunk:])
		}
	default:
		for i := range rows {
			out[i] = m.dot(lo+i, l.points)
		}
	}
}

// addRows adds rows, scaled by slopes, to gradients.
func (l *linear) addRows(part, slopes, quads []float64, gradients, lo, rows int) {
	m := l.X
	switch {
	case l.codes != nil:
		c := l.codes
		l.kern.CodedAddRows[gradients-1](&part[0], &c.values[lo*c.stride], &slopes[0], l.width, c.stride, rows,
			l.width, l.chunk)
	case m.index == nil:
		const ahead = 4 // rows prefetched while others are added
		l.kern.AddRows[gradients-1](&part[0], &m.values[lo*m.stride], &slopes[0], m.d, m.stride, rows, l.width, l.chunk,
			ahead*m.stride)
	case l.strip != nil:
		clear(quads)
		for k := range gradients {
			for i, v := range slopes[k*l.chunk : k*l.chunk+rows] {
				quads[kern.Quad*i+k] = v
			}
		}
		l.strip.addRows(l.kern, part, quads, lo, rows)
	case l.quad(gradients):
		l.kern.SparseAddRows(&part[0], first(m.values), first(m.index), &m.start[lo], &slopes[0], rows, l.chunk)
	default:
		for i := range rows {
			m.add(part, slopes[i], lo+i)
		}
	}
}

// first is a pointer to the first element, nil when there is none.
func first[T any](s []T) *T {
	if len(s) == 0 {
		return nil
	}
	return &s[0]
}

// gradient sets grad to gradient k of the last pass, which had count gradients, at w.
func (l *linear) gradient(grad, w []float64, k, gradients int) {
	d := l.X.d
	if l.strip != nil {
		clear(grad)
		for _, part := range l.parts {
			l.strip.unpack(grad, part, k)
		}
	} else if l.quad(gradients) {
		clear(grad)
		for _, part := range l.parts {
			for j := range grad {
				grad[j] += part[kern.Quad*j+k]
			}
		}
	} else {
		copy(grad, l.parts[0][k*l.width:k*l.width+d])
		for _, part := range l.parts[1:] {
			l.kern.Combine2(&grad[0], &part[k*l.width], 1, 1, d)
		}
	}
	if l.codes != nil {
		floats.Mul(grad, l.codes.steps)
	}
	l.kern.Combine2(&grad[0], &w[0], 1/float64(l.X.n), l.Reg, d)
}

// value is f(w), from the sum of losses.
func (l *linear) value(sum float64, w []float64) float64 {
	return sum/float64(l.X.n) + l.Reg/2*l.kern.Dot(&w[0], &w[0], l.X.d)
}
