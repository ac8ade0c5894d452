package main

import "onlinerna/internal/simd/gen/neon"

// NEON's vectors are pairs of registers: 8 columns. A tile of 6 × 16 keeps 24 of the 32 registers as sums, 6 with four
// elements of a row of A each, and 2 for B.
const (
	neonRows  = 6
	neonLanes = 8
	neonPair  = neonLanes / 4            // registers
	neonBytes = 4 * neonLanes            // of a vector
	neonAhead = 512                      // distance in bytes at which the kernels prefetch B
	neonSome  = neonRows * 2 * neonBytes // memory for a tile whose columns are written in part
)

// neonTile is a kernel that keeps rows × vectors in registers.
type neonTile struct {
	*neon.Func
	rows, vectors int
	kind

	args, b, offs, taps neon.GP

	ahead, aheadStep, aheadLines, zero neon.GP
	acc                                [][]neon.Vec // by row: registers of columns, twice for pairs
}

// width is the number of registers of sums of a row.
func (t *neonTile) width() int { return t.vectors * neonPair }

// columns is the number of registers of C of a row.
func (t *neonTile) columns() int {
	if t.kind == pairs {
		return neonPair
	}
	return t.width()
}

// generate writes the kernel.
func (t *neonTile) generate() {
	t.args = t.Arg("a")
	t.b, t.offs, t.taps = t.Load(t.args, argB), t.Load(t.args, argOffs), t.Load(t.args, argTaps)
	t.begin()
	t.ahead, t.aheadStep = t.Load(t.args, argAhead), t.Load(t.args, argAheadStep)
	t.aheadLines, t.zero = t.Load(t.args, argAheadLines), t.Int(0)
	t.IfNot(t.ahead, "ahead")
	t.Set(t.ahead, t.args) // a line at hand
	t.Label("ahead")
	step := t.Load(t.args, argStepA)
	if t.kind == sums {
		t.alongPixels(step)
	} else {
		t.alongChannels(step)
	}
	t.Store(t.aheadLines, t.args, argAheadLines)
	if t.kind == pairs {
		for _, row := range t.acc {
			for j := range neonPair {
				t.Into(row[j], "fadd", neon.S4, row[j], row[neonPair+j])
			}
		}
	}
	t.store()
}

// begin prefetches C and sets the sums: the second ones of pairs to 0.
func (t *neonTile) begin() {
	init := t.Load(t.args, argInit)
	c, step := t.Load(t.args, argC), t.Load(t.args, argStepC)
	var first []neon.Vec
	for j := range t.width() {
		if j >= t.columns() {
			first = append(first, t.Zero())
			continue
		}
		first = append(first, t.LoadVec(neon.Bytes, init, j*neon.Bytes))
	}
	for m := range t.rows {
		if m > 0 {
			t.Add(c, c, step)
		}
		t.Fetch(c, 0)
		if m == 0 {
			t.acc = append(t.acc, first)
			continue
		}
		var row []neon.Vec
		for _, x := range first {
			row = append(row, t.Same(x))
		}
		t.acc = append(t.acc, row)
	}
}

// multiply adds the products of one step along the depth: B's columns times an element of A for each row, given as a
// lane.
func (t *neonTile) multiply(step int, lane func(m int) (neon.Vec, int)) {
	n := t.columns() // registers of B in a step along the depth
	first := 0
	if t.kind == pairs {
		first = step % 2 * n
	}
	for j := 0; j < n; j += 2 {
		at := (step*n + j) * neon.Bytes
		b0, b1 := t.LoadNear(neon.Bytes, t.b, at), t.LoadNear(neon.Bytes, t.b, at+neon.Bytes)
		for m := range t.rows {
			a, i := lane(m)
			t.AddTimes(t.acc[m][first+j], neon.S4, b0, a, i)
			t.AddTimes(t.acc[m][first+j+1], neon.S4, b1, a, i)
		}
	}
	for at := step * n * neon.Bytes; at < (step+1)*n*neon.Bytes; at += 2 * neon.Bytes {
		if at%64 == 0 {
			t.Fetch(t.b, neonAhead+at)
		}
	}
}

// loops iterates over the taps and, four steps at a time, over the depth of each.
func (t *neonTile) loops(enter func(), four, rest func()) {
	t.Label("tap")
	enter()
	t.AddI(t.offs, t.offs, 8)
	depth := t.Load(t.args, argDepth)
	steps, each := unroll, 1
	if t.kind == pairs {
		steps, each = unroll/2, 2 // the depth counts pairs of steps
	}
	t.SubsI(depth, depth, steps)
	t.Branch("LT", "rest")
	t.Label("loop")
	four()
	t.AddI(t.b, t.b, unroll*t.columns()*neon.Bytes)
	t.FetchFar(t.ahead)
	t.Add(t.ahead, t.ahead, t.aheadStep)
	t.SubsI(t.aheadLines, t.aheadLines, 1)
	t.Choose("GT", t.aheadStep, t.aheadStep, t.zero)
	t.SubsI(depth, depth, steps)
	t.Branch("GE", "loop")
	t.Label("rest")
	t.AddsI(depth, depth, steps)
	t.Branch("EQ", "next")
	t.Label("single")
	rest()
	t.AddI(t.b, t.b, each*t.columns()*neon.Bytes)
	t.SubsI(depth, depth, 1)
	t.Branch("NE", "single")
	t.Label("next")
	t.SubsI(t.taps, t.taps, 1)
	t.Branch("NE", "tap")
}

// alongChannels reads row m of A at step·m and depth u at 4u.
func (t *neonTile) alongChannels(step neon.GP) {
	rows := make([]neon.GP, t.rows)
	for m := range rows {
		rows[m] = t.Int(0)
	}
	load := func(bytes int) (a []neon.Vec) {
		for _, row := range rows {
			a = append(a, t.LoadNext(bytes, row))
		}
		return a
	}
	run := func(steps int) {
		a := load(4 * steps)
		for u := range steps {
			t.multiply(u, func(m int) (neon.Vec, int) { return a[m], u })
		}
	}
	t.loops(func() {
		t.Add(rows[0], t.Load(t.args, argA), t.Load(t.offs, 0))
		for m := range t.rows - 1 {
			t.Add(rows[m+1], rows[m], step)
		}
	}, func() { run(unroll) }, func() {
		if t.kind == pairs {
			run(2)
		} else {
			run(1)
		}
	})
}

// alongPixels reads row m of A at 4m and depth u at step·u.
func (t *neonTile) alongPixels(step neon.GP) {
	base := t.Int(0)
	run := func(u int) {
		var a []neon.Vec
		for m := 0; m < t.rows; {
			bytes := 16
			for bytes > 4*(t.rows-m) {
				bytes /= 2
			}
			a = append(a, t.LoadNear(bytes, base, 4*m))
			if m += bytes / 4; m < 4 && m < t.rows {
				t.Into(a[0], "zip1", neon.D2, a[0], t.LoadVec(4, base, 4*m))
				m++
			}
		}
		t.multiply(u, func(m int) (neon.Vec, int) { return a[m/4], m % 4 })
		t.Add(base, base, step)
	}
	t.loops(func() { t.Add(base, t.Load(t.args, argA), t.Load(t.offs, 0)) }, func() {
		for u := range unroll {
			run(u)
		}
	}, func() { run(0) })
}

// store writes the columns under the mask. It adds argFrom unless that is nil, and clips negative results to 0 if
// argReLU is set.
func (t *neonTile) store() {
	mask, relu := t.Load(t.args, argMask), t.Load(t.args, argReLU)
	from, c, step := t.Load(t.args, argFrom), t.Load(t.args, argC), t.Load(t.args, argStepC)
	t.IfZero(t.LoadWord(mask, t.columns()*neon.Bytes-4), "some")

	t.IfZero(from, "clip")
	for m := range t.rows {
		for j := range t.columns() {
			t.Into(t.acc[m][j], "fadd", neon.S4, t.acc[m][j], t.LoadVec(neon.Bytes, from, j*neon.Bytes))
		}
		if m < t.rows-1 {
			t.Add(from, from, step)
		}
	}
	t.Label("clip")
	t.IfZero(relu, "set")
	for m := range t.rows {
		for j := range t.columns() {
			neonClip(t.Func, t.acc[m][j])
		}
	}
	t.Label("set")
	for m := range t.rows {
		for j := 0; j < t.columns(); j += 2 {
			t.StoreTwo(t.acc[m][j], t.acc[m][j+1], c, j*neon.Bytes)
		}
		if m < t.rows-1 {
			t.Add(c, c, step)
		}
	}
	t.Ret()

	// Rows go through memory, from which parts of them are read.
	t.Label("some")
	memory := t.Memory()
	for m := range t.rows {
		for j := 0; j < t.columns(); j += 2 {
			t.StoreTwo(t.acc[m][j], t.acc[m][j+1], memory, (m*t.columns()+j)*neon.Bytes)
		}
	}
	n := neonCount(t.Func, mask, t.columns())
	rows := t.Int(t.rows)
	t.Label("row")
	left, tile, add, to := t.Copy(n), t.Copy(memory), t.Copy(from), t.Copy(c)
	part := func(bytes int, label string) {
		x := t.LoadVec(bytes, tile, 0)
		t.IfZero(from, label+"Clip")
		t.Into(x, "fadd", neon.S4, x, t.LoadVec(bytes, add, 0))
		t.Label(label + "Clip")
		t.IfZero(relu, label+"Set")
		neonClip(t.Func, x)
		t.Label(label + "Set")
		t.StoreVec(bytes, x, to, 0)
		for _, p := range []neon.GP{tile, add, to} {
			t.AddI(p, p, bytes)
		}
	}
	t.Label("four")
	t.SubsI(left, left, 4)
	t.Branch("LT", "two")
	part(16, "four")
	t.Branch("", "four")
	t.Label("two")
	t.IfNoBit(1, left, "one")
	part(8, "two")
	t.Label("one")
	t.IfNoBit(0, left, "done")
	part(4, "one")
	t.Label("done")
	t.AddI(memory, memory, t.columns()*neon.Bytes)
	t.Add(from, from, step)
	t.IfNot(t.Load(t.args, argFrom), "more")
	t.SetInt(from, 0)
	t.Label("more")
	t.Add(c, c, step)
	t.SubsI(rows, rows, 1)
	t.Branch("NE", "row")
	t.Ret()
}

// neonClip sets negative lanes of x to 0. It keeps NaN and −0.
func neonClip(k *neon.Func, x neon.Vec) {
	k.Into(x, "bic", neon.S4, x, k.CompareZero("fcmlt", neon.S4, x))
}

// neonCount is the number of lanes of a mask that are set, within its first registers; they are contiguous.
func neonCount(k *neon.Func, mask neon.GP, registers int) neon.GP {
	sum := k.LoadVec(neon.Bytes, mask, 0)
	for i := 1; i < registers; i++ {
		k.Into(sum, "add", neon.S4, sum, k.LoadVec(neon.Bytes, mask, i*neon.Bytes))
	}
	n := k.Word(k.Op("sub", neon.S4, k.Zero(), k.SumInts(sum)))
	return n
}
