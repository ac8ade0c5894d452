package main

import (
	"fmt"

	"onlinerna/internal/simd/gen/neon"
)

// neonMaths is arithmetic on registers. Its numbers are lanes of registers.
type neonMaths struct {
	*neon.Func
	numbers map[float64]neonNumber
}

type neonNumber struct {
	v    neon.Vec
	lane int
}

func newNEONMaths(k *neon.Func, l line) neonMaths {
	m := neonMaths{k, make(map[float64]neonNumber)}
	var four neon.Vec
	for i, x := range l.numbers {
		number := k.Number(neon.S4, x)
		if i%4 == 0 {
			four = number
		} else {
			k.SetLane(neon.S4, four, i%4, number)
		}
		m.numbers[x] = neonNumber{four, i % 4}
	}
	return m
}

func (m neonMaths) number(x float64) (neon.Vec, int) {
	n, ok := m.numbers[x]
	if !ok {
		panic(fmt.Sprintf("%v is not among the numbers", x))
	}
	return n.v, n.lane
}

func (m neonMaths) copy(x neon.Vec) neon.Vec { return m.Same(x) }
func (m neonMaths) release(...neon.Vec)      {}
func (m neonMaths) plus(y, x neon.Vec)       { m.Into(y, "fadd", neon.S4, y, x) }

func (m neonMaths) add(y neon.Vec, v float64, x neon.Vec) {
	n, i := m.number(v)
	m.AddTimes(y, neon.S4, x, n, i)
}

func (m neonMaths) subtract(y neon.Vec, v float64, x neon.Vec) {
	n, i := m.number(v)
	m.SubTimes(y, neon.S4, x, n, i)
}

func (m neonMaths) times(v float64, x neon.Vec) neon.Vec {
	n, i := m.number(v)
	return m.Times(neon.S4, x, n, i)
}

func (m neonMaths) scale(x neon.Vec, v float64) {
	n, i := m.number(v)
	m.TimesInto(x, neon.S4, x, n, i)
}

func (m neonMaths) sums(x, y neon.Vec) (sum, difference neon.Vec) {
	return m.Op("fadd", neon.S4, x, y), m.Op("fsub", neon.S4, x, y)
}

// neonTransforms writes the transforms and returns the Go code of their set.
func neonTransforms(f *neon.File) (value string) {
	value = "\nvar neonWinograd = Winograd{\n"
	for _, t := range []struct {
		name string
		line line
	}{{"Source", sourceLine}, {"Grad", gradLine}, {"Weight", weightLine}} {
		name := "neon" + t.name
		f.Func(name, "(a *Spread)", func(k *neon.Func) { neonSpread(k, t.line) })
		value += fmt.Sprintf("\t%s: %s,\n", t.name, name)
	}
	for _, t := range []struct {
		name string
		line line
	}{{"Result", resultLine}, {"WeightGrad", weightGradLine}} {
		value += fmt.Sprintf("\t%s: [2]func(*Collect){", t.name)
		for i, suffix := range []string{"", "Tail"} {
			name := "neon" + t.name + suffix
			f.Func(name, "(a *Collect)", func(k *neon.Func) { neonCollect(k, t.line, i > 0) })
			value += name + ", "
		}
		value += "},\n"
	}
	return value + "}\n"
}

// neonSpread is the NEON version of spread: each vector is two registers, processed one after the other.
func neonSpread(k *neon.Func, l line) {
	args := k.Arg("a")
	field := func(at int) neon.GP { return k.Load(args, at) }
	m := newNEONMaths(k, l)
	mask := field(spreadMask)
	n := neonCount(k, mask, neonPair)
	halves := neonHalves(k, n)
	columns, step, to := field(spreadColumns), field(spreadStepC), field(spreadTo)
	rows := make([]neon.GP, l.in)
	for i := range rows {
		rows[i] = field(spreadRows + 8*i)
	}
	var ahead neon.GP
	if l.in > tileTaps {
		ahead = field(spreadAhead)
	}
	k.IfZero(columns, "along")
	loop := func(name string, load func(row neon.GP, half int) neon.Vec) {
		k.Label(name)
		if l.in > tileTaps {
			for _, row := range rows[l.in-tileResults:] {
				k.FetchAt(row, ahead)
			}
		}
		for half := range neonPair {
			x := make([]neon.Vec, l.in)
			for i := range x {
				x[i] = load(rows[i], half)
			}
			for i, y := range l.neon(m, x) {
				k.StoreVec(neon.Bytes, y, to, i*neonBytes+half*neon.Bytes)
			}
		}
		for _, row := range rows {
			k.Add(row, row, step)
		}
		k.AddI(to, to, window*neonBytes)
		k.SubsI(columns, columns, 1)
		k.Branch("NE", name)
	}
	k.CompareI(n, neonLanes)
	k.Branch("NE", "some")
	loop("column", func(row neon.GP, half int) neon.Vec { return k.LoadVec(neon.Bytes, row, half*neon.Bytes) })
	k.Branch("", "along")
	loop("some", func(row neon.GP, half int) neon.Vec {
		at := k.Copy(row)
		k.AddI(at, at, half*neon.Bytes)
		return neonLoadSome(k, at, halves[half])
	})

	k.Label("along")
	scratch, tiles := field(spreadScratch), field(spreadTiles)
	dst, stepT, stepP := field(spreadDst), field(spreadStepT), field(spreadStepP)
	k.Label("tile")
	at := k.Copy(dst)
	for i := range window {
		y := [neonPair][]neon.Vec{}
		for half := range neonPair {
			x := make([]neon.Vec, l.in)
			for j := range x {
				x[j] = k.LoadVec(neon.Bytes, scratch, (j*window+i)*neonBytes+half*neon.Bytes)
			}
			y[half] = l.neon(m, x)
		}
		for j := range window {
			k.StoreTwo(y[0][j], y[1][j], at, 0)
			k.Add(at, at, stepP)
		}
	}
	k.AddI(scratch, scratch, tileResults*window*neonBytes)
	k.Add(dst, dst, stepT)
	k.SubsI(tiles, tiles, 1)
	k.Branch("NE", "tile")
	k.Ret()
}

// neonCollect is the NEON version of collect.
func neonCollect(k *neon.Func, l line, part bool) {
	args := k.Arg("a")
	field := func(at int) neon.GP { return k.Load(args, at) }
	m := newNEONMaths(k, l)
	var bias, floor [neonPair]neon.Vec
	bias[0], bias[1] = k.LoadTwo(field(collectBias), 0)
	floor[0], floor[1] = k.LoadTwo(field(collectFloor), 0)
	var halves [neonPair]neon.GP
	if part {
		halves = neonHalves(k, neonCount(k, field(collectMask), neonPair))
	}
	src, scratch, dst, from := field(collectSrc), field(collectScratch), field(collectDst), field(collectFrom)
	left, stepP := field(collectColumns), field(collectStepP)
	// Rows that are not written share the address of the first row, which is written last.
	stepRow, rows := field(collectStepRow), field(collectRows)
	row := make([]neon.GP, l.out)
	zero, off := k.Int(0), k.Int(0)
	for r := range row {
		row[r] = k.Int(0)
		if r > 0 {
			k.Add(off, off, stepRow)
			k.CompareI(rows, r)
			k.Choose("GT", row[r], off, zero)
		}
	}
	k.Label("tile")
	at := k.Copy(src)
	for i := range window {
		var y [neonPair][]neon.Vec
		x := [neonPair][]neon.Vec{}
		for range l.in {
			a, b := k.LoadTwo(at, 0)
			x[0], x[1] = append(x[0], a), append(x[1], b)
			k.Add(at, at, stepP)
		}
		for half := range neonPair {
			y[half] = l.neon(m, x[half])
		}
		for c := range l.out {
			k.StoreTwo(y[0][c], y[1][c], scratch, (c*window+i)*neonBytes)
		}
	}
	k.Add(src, src, field(collectStepT))

	// The next tile, so that its stores do not wait.
	to, more := k.Copy(dst), k.Copy(from)
	k.Add(to, to, field(collectStepTile))
	for c := range l.out {
		if c > 0 {
			k.Add(to, to, field(collectStepC))
		}
		for r := range l.out {
			k.FetchAt(to, row[r])
		}
	}
	k.Set(to, dst)
	for c := range l.out {
		if c > 0 {
			k.CompareI(left, c)
			k.Branch("LE", "next")
			stepC := field(collectStepC)
			k.Add(to, to, stepC)
			k.Add(more, more, stepC)
		}
		for half := range neonPair {
			x := make([]neon.Vec, l.in)
			for i := range x {
				x[i] = k.LoadVec(neon.Bytes, scratch, (c*window+i)*neonBytes+half*neon.Bytes)
			}
			y := l.neon(m, x)
			for _, v := range y {
				m.plus(v, bias[half])
			}
			place := func(base neon.GP, r int) neon.GP {
				p := k.Copy(base)
				k.Add(p, p, row[r])
				if half > 0 {
					k.AddI(p, p, half*neon.Bytes)
				}
				return p
			}
			set := fmt.Sprintf("set%d%d", c, half)
			k.IfZero(from, set)
			for r, v := range y {
				if part {
					m.plus(v, neonLoadSome(k, place(more, r), halves[half]))
				} else {
					m.plus(v, k.LoadVec(neon.Bytes, place(more, r), 0))
				}
			}
			k.Label(set)
			for r := l.out - 1; r >= 0; r-- {
				k.Into(y[r], "bit", neon.S4, floor[half], k.Op("fcmgt", neon.S4, floor[half], y[r])) // NaN and −0 stay
				if part {
					neonStoreSome(k, y[r], place(to, r), halves[half])
				} else {
					k.StoreVec(neon.Bytes, y[r], place(to, r), 0)
				}
			}
		}
	}
	k.Label("next")
	stepTile := field(collectStepTile)
	k.Add(dst, dst, stepTile)
	k.IfZero(from, "stay")
	k.Add(from, from, stepTile)
	k.Label("stay")
	k.SubsI(left, left, l.out)
	k.Branch("GT", "tile")
	k.Ret()
}
