package kernel

import "unsafe"

// A Pair is the residual 2^-Exp (x − y) of two vectors, by their numbers. Y is −1 where there is none.
type Pair struct{ X, Y, Exp int }

func (p Pair) plain() bool { return p.Y >= 0 && p.Exp == 0 }

// Products computes inner products of residuals over vectors of one format, block by block, and reads each vector once
// for each block. It may be used by one goroutine at a time.
type Products struct {
	set   *set
	ops   *ops
	size  int
	pairs []Pair
	full  bool // whether all pairs are multiplied, and not the last one with each

	steps []step
	tiles []tile
	sub   int // elements that are taken at a time

	rows   []float64 // residuals, pitch apart; of a row of the matrix its residual alone
	extra  []float64 // a residual that is scaled
	lanes  []float64 // sums
	copies [][]byte  // of parts of vectors that are not aligned or not whole groups
	parts  []*byte   // of the vectors, in hand
	ahead  []uintptr // what is prefetched of the vectors
}

// A step takes one residual, or four of a chain.
type step struct {
	pair, count int
	next        [4]int // vectors to prefetch, −1 for none
	later       [4]bool
}

// A tile is the products of two groups of residuals.
type tile struct {
	i, j int // the groups
	next [4]int
}

// NewProducts makes the products of the last of pairs with each of them, or, if full is true, of each with each. There
// are so many vectors.
func NewProducts(f Format, vectors int, pairs []Pair, full bool) *Products {
	k := current.Load()
	p := &Products{set: k, ops: &k.format[f], size: f.Size(), pairs: pairs, full: full, sub: Run}
	p.copies, p.parts, p.ahead = make([][]byte, vectors), make([]*byte, vectors), make([]uintptr, vectors)
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
		p.lanes = make([]float64, (len(pairs)+3)*Lanes) // four are in hand at a time
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

// plan makes the steps, and says what they prefetch.
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
	// The vectors in the order in which they are first read, and the step of each.
	var order, when []int
	seen := make([]bool, len(p.parts))
	for i, s := range p.steps {
		for _, q := range p.pairs[s.pair : s.pair+s.count] {
			for _, v := range [2]int{q.Y, q.X} {
				if v >= 0 && !seen[v] {
					seen[v] = true
					order, when = append(order, v), append(when, i)
				}
			}
		}
	}
	for i := range p.steps {
		p.steps[i].next = [4]int{-1, -1, -1, -1}
	}
	for i := range p.tiles {
		p.tiles[i].next = [4]int{-1, -1, -1, -1}
	}
	if !p.full {
		// Each is prefetched by the step before the one that reads it.
		for k, v := range order {
			i, later := when[k]-1, false
			if i < 0 {
				i, later = len(p.steps)-1, true
			}
			p.steps[i].take(v, later)
		}
		return
	}
	// Products take longer than residuals: so they prefetch most.
	spread := max(len(order)/4, len(order)-4*len(p.tiles))
	for k, v := range order[:spread] {
		for i := range p.steps {
			if p.steps[(k+i)%len(p.steps)].take(v, true) {
				break
			}
		}
	}
	for k, v := range order[spread:] {
		t := &p.tiles[k%len(p.tiles)]
		t.next[k/len(p.tiles)] = v
	}
}

// take adds v to what the step prefetches, if there is room.
func (s *step) take(v int, later bool) bool {
	for i := range s.next[:min(1+s.count, 4)] {
		if s.next[i] < 0 {
			s.next[i], s.later[i] = v, later
			return true
		}
	}
	return false
}

// chain is how many plain pairs begin ps of which each one's y is the x of the one before.
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
	for done := 0; done < n; {
		there := min(p.sub, whole-done)
		if there == 0 {
			there = n - done
		}
		count := (there + group - 1) / group * group
		for i, v := range vs {
			if p.copies[i] == nil && (there < count || misaligned(v, p.size)) {
				p.copies[i] = make([]byte, p.sub*p.size)
			}
			p.parts[i] = place(v, at+done, there, count, p.size, p.copies[i])
			p.ahead[i] = fetch(v, at+done, p.size)
		}
		if p.full {
			p.multiplyAll(count)
		} else {
			p.multiply(count)
		}
		done += there
	}
	p.fold(sums)
}

func misaligned(v []byte, size int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(v)))%uintptr(size) != 0
}

// inputs are the vectors of a step, and what it prefetches.
func (p *Products) inputs(s *step, v *[5]*byte, next *[4]uintptr, distance int) {
	if first := p.pairs[s.pair]; first.Y < 0 {
		v[0] = p.parts[first.X]
	} else {
		v[0] = p.parts[first.Y]
		for i, q := range p.pairs[s.pair : s.pair+s.count] {
			v[i+1] = p.parts[q.X]
		}
	}
	for i, vector := range s.next {
		if vector < 0 {
			next[i] = uintptr(unsafe.Pointer(v[0]))
			continue
		}
		if next[i] = p.ahead[vector]; s.later[i] {
			next[i] += uintptr(distance * p.size)
		}
	}
}

// residual sets row to the residual of a step, and the three behind it to those that follow.
func (p *Products) residual(row []float64, s *step, v *[5]*byte, next *[4]uintptr) {
	q := p.pairs[s.pair]
	switch {
	case s.count == 4:
		p.ops.setFour(row, v, next)
	case q.Y < 0:
		p.ops.set(row, v, next)
	default:
		p.ops.setDiff(row, v, next)
	}
	if q.Exp != 0 {
		Shift(row, -q.Exp)
	}
}

// multiply adds the products of the last residual with each.
func (p *Products) multiply(n int) {
	var v [5]*byte
	var next [4]uintptr
	row := p.rows[:n]
	for i := range p.steps {
		s := &p.steps[i]
		p.inputs(s, &v, &next, p.sub)
		if i == 0 {
			p.residual(row, s, &v, &next)
			continue
		}
		sums := p.sumsOf(s)
		switch q := p.pairs[s.pair]; {
		case q.Exp != 0 || p.ops.dot == nil:
			p.residual(p.extra[:n], s, &v, &next)
			v[0] = address(bytesOf(p.extra), 0, 8)
			p.set.format[Float64].dot(row, &v, &[4]uintptr{}, sums)
		case s.count == 4:
			p.ops.dotFour(row, &v, &next, sums)
		case q.Y < 0:
			p.ops.dot(row, &v, &next, sums)
		default:
			p.ops.dotDiff(row, &v, &next, sums)
		}
	}
}

// sumsOf is the lanes of the step's pair and, where it has four, of the three behind it.
func (p *Products) sumsOf(s *step) *[4 * Lanes]float64 {
	return (*[4 * Lanes]float64)(unsafe.Pointer(&p.lanes[s.pair*Lanes]))
}

// multiplyAll adds the products of all residuals.
func (p *Products) multiplyAll(n int) {
	var v [5]*byte
	var next [4]uintptr
	for i := range p.steps {
		s := &p.steps[i]
		p.inputs(s, &v, &next, Run)
		p.residual(p.rows[s.pair*pitch:][:n], s, &v, &next)
	}
	t := p.set.tile
	step := group * p.size
	for i := range p.tiles {
		q := &p.tiles[i]
		for k, vector := range q.next {
			if next[k] = p.ahead[max(vector, 0)]; vector >= 0 {
				next[k] += uintptr(Run * p.size)
			}
		}
		lanes, a, b := &p.lanes[i*t*t*Lanes], &p.rows[q.i*t*pitch], &p.rows[q.j*t*pitch]
		if q.i == q.j {
			p.set.triangle(lanes, a, a, n, &next, step)
		} else {
			p.set.square(lanes, a, b, n, &next, step)
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
