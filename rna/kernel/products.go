package kernel

import (
	"math"
	"unsafe"

	"onlinerna/internal/simd/convert"
)

// A Pair is the residual 2^-Exp (x − y) of two vectors, by their numbers. Y is −1 if there is no y.
type Pair struct{ X, Y, Exp int }

func (p Pair) plain() bool { return p.Y >= 0 && p.Exp == 0 }

// Products computes inner products of residuals over vectors of one format, block by block, and reads each vector once
// for each block. It may be used by one goroutine at a time.
type Products struct {
	set   *set
	ops   *ops
	widen convert.Setter
	size  int
	pairs []Pair
	full  bool // whether all pairs are multiplied, rather than the last one with each

	steps []step
	tiles []tile
	sub   int // elements that are taken at a time

	rows   []float64 // residuals, pitch apart; of a row of the matrix its residual alone
	extra  []float64 // a residual that is scaled
	lanes  []float64 // sums
	copies [][]byte  // of parts of vectors that are not aligned or not whole groups
	bases  []*byte   // of the vectors, or of their copies
}

// A step takes one residual, or four of a chain.
type step struct {
	pair, count int
	reads       []int // vectors
	fetch       fetches

	v    [5]*byte
	next [4]uintptr
}

// A tile is the products of two groups of residuals.
type tile struct {
	i, j  int // the groups
	fetch fetches

	next [4]uintptr
}

// fetches are the vectors to prefetch, at the current run or the next one.
type fetches []struct {
	vector int
	later  bool
}

// NewProducts makes the products of the last of pairs with each of them, or, if full is true, of each with each.
// vectors is their number.
func NewProducts(f convert.Format, vectors int, pairs []Pair, full bool) *Products {
	k := &sets[active]
	p := &Products{set: k, widen: convert.Rows(active, f), ops: &k.format[f],
		size: f.Size(), pairs: pairs, full: full, sub: Run}
	p.copies, p.bases = make([][]byte, vectors), make([]*byte, vectors)
	rows := 1
	if full {
		groups := (len(pairs) + k.tile - 1) / k.tile
		if rows = groups * k.tile; rows <= 16 {
			p.sub = 256
		} else {
			p.sub = 64
		}
		for i := range groups {
			for j := range i + 1 {
				p.tiles = append(p.tiles, tile{i: i, j: j})
			}
		}
		p.rows = make([]float64, rows*pitch)
		p.lanes = make([]float64, len(p.tiles)*k.tile*k.tile*Lanes)
	} else {
		p.rows = make([]float64, Run)
		p.extra = make([]float64, Run)
		p.lanes = make([]float64, (len(pairs)+3)*Lanes) // four are computed at a time
	}
	p.plan()
	return p
}

// Len is the number of sums that [Products.Block] gives.
func (p *Products) Len() int {
	if n := len(p.pairs); p.full {
		return n * (n + 1) / 2
	}
	return len(p.pairs)
}

// plan makes the steps and their prefetches.
func (p *Products) plan() {
	if !p.full {
		p.steps = append(p.steps, step{pair: len(p.pairs) - 1, count: 1})
	}
	for i := 0; i < len(p.pairs); {
		s := step{pair: i, count: 1}
		if chain(p.pairs[i:]) >= 4 && (p.full || p.ops.dotFour != nil) {
			s.count = 4
		}
		p.steps = append(p.steps, s)
		i += s.count
	}
	var order []int // vectors, as they are first read
	seen := make([]bool, len(p.bases))
	for i := range p.steps {
		s := &p.steps[i]
		if q := p.pairs[s.pair]; q.Y >= 0 {
			s.reads = append(s.reads, q.Y)
		}
		for _, q := range p.pairs[s.pair : s.pair+s.count] {
			s.reads = append(s.reads, q.X)
		}
	}
	for i := range p.steps {
		for _, v := range p.steps[i].reads {
			if !seen[v] {
				seen[v] = true
				if order = append(order, v); !p.full {
					p.fetchBefore(i, v)
				}
			}
		}
	}
	if !p.full {
		return
	}
	// Products take longer than residuals: so they prefetch most.
	spread := max(len(order)/4, len(order)-4*len(p.tiles))
	for _, v := range order[:spread] {
		p.fetchBefore(0, v)
	}
	for k, v := range order[spread:] {
		f := &p.tiles[k%len(p.tiles)].fetch
		*f = append(*f, fetches{{v, true}}...)
	}
}

// fetchBefore lets the last step before step i that has room prefetch a vector.
func (p *Products) fetchBefore(i, vector int) {
	for k := range p.steps {
		at := i - 1 - k
		later := at < 0
		if later {
			at += len(p.steps)
		}
		if s := &p.steps[at]; len(s.fetch) < min(len(s.reads), 4) {
			s.fetch = append(s.fetch, fetches{{vector, later}}...)
			return
		}
	}
}

// chain counts the pairs at the start of ps in which each y is the x of the pair before.
func chain(ps []Pair) int {
	for i, q := range ps {
		if !q.plain() || i > 0 && q.Y != ps[i-1].X {
			return i
		}
	}
	return len(ps)
}

// Block sets sums to the products over elements [at, at+n) of the vectors vs, n being up to [Block]: one sum for each
// pair, or the lower triangle of the matrix by rows.
func (p *Products) Block(sums []float64, vs [][]byte, at, n int) {
	clear(p.lanes)
	whole := n / group * group
	for _, v := range vs {
		if uintptr(unsafe.Pointer(unsafe.SliceData(v)))%uintptr(p.size) != 0 {
			whole = 0
		}
	}
	if whole > 0 {
		p.aim(vs, at, func(i int) *byte { return address(vs[i], at, p.size) })
		for done := 0; done < whole; done += p.sub {
			p.take(done*p.size, min(p.sub, whole-done))
		}
	}
	for done := whole; done < n; {
		there := min(p.sub, n-done)
		count := (there + group - 1) / group * group
		p.aim(vs, at+done, func(i int) *byte {
			if p.copies[i] == nil {
				p.copies[i] = bytesOf(make([]float64, p.sub))
			}
			b := p.copies[i][:count*p.size]
			clear(b[copy(b, vs[i][(at+done)*p.size:(at+done+there)*p.size]):])
			return unsafe.SliceData(b)
		})
		p.take(0, count)
		done += there
	}
	p.fold(sums)
}

// aim sets the addresses of vectors and prefetches in steps and tiles.
func (p *Products) aim(vs [][]byte, at int, base func(i int) *byte) {
	for i := range vs {
		p.bases[i] = base(i)
	}
	target := func(next *[4]uintptr, f fetches) {
		for i := range next {
			next[i] = uintptr(unsafe.Pointer(p.bases[0]))
			if i < len(f) {
				next[i] = fetch(vs[f[i].vector], at, p.size)
				if f[i].later {
					next[i] += uintptr(Run * p.size)
				}
			}
		}
	}
	for i := range p.steps {
		s := &p.steps[i]
		for k, v := range s.reads {
			s.v[k] = p.bases[v]
		}
		target(&s.next, s.fetch)
	}
	for i := range p.tiles {
		target(&p.tiles[i].next, p.tiles[i].fetch)
	}
}

// take adds the products over n elements from byte off on.
func (p *Products) take(off, n int) {
	if p.full {
		p.multiplyAll(off, n)
	} else {
		p.multiply(off, n)
	}
}

// residual sets row to the residual of a step, and the next three rows to those that follow.
func (p *Products) residual(row []float64, s *step, off int) {
	switch len(s.reads) {
	case 5:
		p.ops.setFour(row, &s.v, &s.next, off)
	case 1:
		p.widen(row, &s.v, &s.next, off)
	default:
		p.ops.setDiff(row, &s.v, &s.next, off)
	}
	if e := p.pairs[s.pair].Exp; e != 0 {
		Shift(row, -e)
	}
}

// multiply adds the products of the last residual with each.
func (p *Products) multiply(off, n int) {
	row := p.rows[:n]
	p.residual(row, &p.steps[0], off)
	for i := range p.steps[1:] {
		s := &p.steps[i+1]
		sums := (*[4 * Lanes]float64)(unsafe.Pointer(&p.lanes[s.pair*Lanes]))
		switch {
		case p.pairs[s.pair].Exp != 0 || p.ops.dot == nil:
			p.residual(p.extra[:n], s, off)
			v := [5]*byte{address(bytesOf(p.extra), 0, 8)}
			p.set.format[convert.Float64].dot(row, &v, &s.next, 0, sums)
		case s.count == 4:
			p.ops.dotFour(row, &s.v, &s.next, off, sums)
		case len(s.reads) == 1:
			p.ops.dot(row, &s.v, &s.next, off, sums)
		default:
			p.ops.dotDiff(row, &s.v, &s.next, off, sums)
		}
	}
}

// multiplyAll adds the products of all residuals.
func (p *Products) multiplyAll(off, n int) {
	for i := range p.steps {
		s := &p.steps[i]
		p.residual(p.rows[s.pair*pitch:][:n], s, off)
	}
	t := p.set.tile
	step := group * p.size
	for k := range p.tiles {
		q := &p.tiles[k]
		lanes, a, b := &p.lanes[k*t*t*Lanes], &p.rows[q.i*t*pitch], &p.rows[q.j*t*pitch]
		if q.i == q.j {
			p.set.triangle(lanes, a, a, n, &q.next, off, step)
		} else {
			p.set.square(lanes, a, b, n, &q.next, off, step)
		}
	}
}

// fold adds up the lanes.
func (p *Products) fold(sums []float64) {
	if !p.full {
		for i := range p.pairs {
			sums[i] = total((*[Lanes]float64)(p.lanes[i*Lanes:]))
		}
		return
	}
	t := p.set.tile
	for k, q := range p.tiles {
		for i := q.i * t; i < min((q.i+1)*t, len(p.pairs)); i++ {
			for j := q.j * t; j < min((q.j+1)*t, i+1); j++ {
				lanes := p.lanes[(k*t*t+(i-q.i*t)*t+j-q.j*t)*Lanes:]
				sums[i*(i+1)/2+j] = total((*[Lanes]float64)(lanes))
			}
		}
	}
}

func total(l *[Lanes]float64) float64 {
	return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

// Shift multiplies x by 2^exp.
func Shift(x []float64, exp int) {
	for i, v := range x {
		x[i] = math.Ldexp(v, exp)
	}
}
