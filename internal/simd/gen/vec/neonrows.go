package main

import (
	"math"
	"strings"

	"onlinerna/internal/simd/gen/neon"
)

// neonRows is rowStream for NEON.
type neonRows struct {
	*neon.Func
	padded map[string]bool
	now    map[string]neon.GP // addresses of the current elements
	width  neon.GP
	left   neon.GP // elements behind the current ones

	unit    int // vectors from the current elements
	partial bool
	lanes   neon.Symbol // the numbers of lanes
	mask    neon.Vec    // of a partial vector
	top     []neon.Vec  // by unit
	sums    map[string][][2]neon.Vec

	// A group of rows: the bytes to its first one and to the current one, its rows and the number of the current one.
	group, start             neon.GP
	paddedGroup, paddedStart neon.GP
	size, slot               neon.GP
	places                   map[string]int // of numbers, in local memory
	slices                   []string
	wide                     map[string]int // the factor of a column's bytes, by slice of parameters or sums
}

const neonUnits = rowLanes / neonLanes

func (k *neonRows) phase(body func()) {
	k.Set(k.start, k.group)
	if len(k.padded) > 0 {
		k.Set(k.paddedStart, k.paddedGroup)
	}
	k.SetInt(k.slot, 0)
	row := k.NewLabel("row")
	k.Label(row)
	body()
	k.AddShift(k.start, k.start, k.width, 2)
	if len(k.padded) > 0 {
		k.AddI(k.left, k.width, rowLanes-1)
		k.ShiftRight(k.left, k.left, 4)
		k.AddShift(k.paddedStart, k.paddedStart, k.left, 6)
	}
	k.AddI(k.slot, k.slot, 1)
	k.Compare(k.slot, k.size)
	k.Branch("LT", row)
}

func (k *neonRows) pass(body func()) {
	for _, name := range k.slices {
		k.ArgTo(k.now[name], name+"_base")
		switch {
		case k.padded[name]:
			k.Add(k.now[name], k.now[name], k.paddedStart)
		case k.wide[name] == 0:
			k.Add(k.now[name], k.now[name], k.start)
		}
	}
	k.Set(k.left, k.width)
	k.partial = false
	turns, done := k.NewLabel("turns"), k.NewLabel("done")
	k.Turns(turns, k.left, rowLanes, func() {
		for k.unit = range neonUnits {
			body()
		}
		for _, name := range k.slices {
			k.AddI(k.now[name], k.now[name], 4*rowLanes*max(1, k.wide[name]))
		}
	})
	k.IfZero(k.left, done)
	for k.unit = range neonUnits {
		some := k.NewLabel("some")
		if k.unit+1 < neonUnits {
			k.CompareI(k.left, neonLanes)
			k.Branch("LT", some)
			body()
			k.SubsI(k.left, k.left, neonLanes)
			k.Branch("EQ", done)
		}
		next := k.NewLabel("next")
		if k.unit+1 < neonUnits {
			k.Branch("", next)
			k.Label(some)
		}
		k.partial = true
		k.mask = k.Op("cmhi", neon.S4, k.AllOf(neon.S4, k.left), k.LoadVec(neon.Bytes, k.Address(k.lanes, 0), 0))
		body()
		k.partial = false
		if k.unit+1 < neonUnits {
			k.Branch("", done)
			k.Label(next)
		}
	}
	k.Label(done)
}

func (k *neonRows) given(slice string, then, otherwise func()) {
	no, end := k.NewLabel("no"), k.NewLabel("end")
	k.IfZero(k.Arg(slice+"_base"), no)
	then()
	if otherwise == nil {
		k.Label(no)
		return
	}
	k.Branch("", end)
	k.Label(no)
	otherwise()
	k.Label(end)
}

// part calls one of three functions: for a partial vector of one, two or three elements.
func (k *neonRows) part(one, two, three func()) {
	single, end := k.NewLabel("single"), k.NewLabel("end")
	k.CompareI(k.left, 2)
	k.Branch("LT", single)
	two()
	k.Branch("EQ", end)
	three()
	k.Branch("", end)
	k.Label(single)
	one()
	k.Label(end)
}

func (k *neonRows) in(name string) neon.Vec {
	base := k.now[name]
	if !k.partial || k.padded[name] {
		return k.LoadVec(neon.Bytes, base, k.unit*neon.Bytes)
	}
	v, third, at := k.Zero(), k.Copy(base), k.unit*neon.Bytes
	k.part(func() { k.LoadTo(v, 4, base, at) }, func() { k.LoadTo(v, 8, base, at) }, func() {
		k.AddI(third, third, at+8)
		k.LoadLane(neon.S4, v, 2, third)
	})
	return v
}

func (k *neonRows) parameter(name string) neon.Vec { return k.in(name) }

func (k *neonRows) out(name string, x neon.Vec) {
	base := k.now[name]
	if !k.partial || k.padded[name] {
		k.StoreVec(neon.Bytes, k.some(x), base, k.unit*neon.Bytes)
		return
	}
	third, at := k.Copy(base), k.unit*neon.Bytes
	k.part(func() { k.StoreVec(4, x, base, at) }, func() { k.StoreVec(8, x, base, at) }, func() {
		k.AddI(third, third, at+8)
		k.StoreLane(neon.S4, x, 2, third)
	})
}

func (k *neonRows) add(a, b neon.Vec) neon.Vec { return k.Op("fadd", neon.S4, a, b) }
func (k *neonRows) sub(a, b neon.Vec) neon.Vec { return k.Op("fsub", neon.S4, a, b) }
func (k *neonRows) mul(a, b neon.Vec) neon.Vec { return k.Op("fmul", neon.S4, a, b) }

func (k *neonRows) exp(x neon.Vec) neon.Vec {
	m := neonMaths{k.Func, neon.S4, k.Address("·singleVectors", 0), make(map[int]neon.Vec)}
	return (*exponential[*neonParts](m, &neonParts{x}))[0]
}

func (k *neonRows) withoutSmall(x neon.Vec) neon.Vec {
	small := k.Op("fcmge", neon.S4, k.Bits(neon.S4, uint64(math.Float32bits(0x1p-100))), x)
	return k.Op("bic", neon.S4, x, small)
}

func (k *neonRows) scalar(name string) neon.Vec { return k.All(neon.S4, k.Scalar(name), 0) }

func (k *neonRows) lowest() {
	k.top = nil
	for range neonUnits {
		k.top = append(k.top, k.Bits(neon.S4, 0xff800000))
	}
}

func (k *neonRows) raise(x neon.Vec) {
	top := k.top[k.unit]
	if k.partial {
		larger := k.Same(k.mask)
		k.Into(larger, "bsl", neon.S4, x, top)
		x = larger
	}
	k.Into(top, "fmax", neon.S4, top, x)
}

func (k *neonRows) highest() neon.Vec {
	all := k.Op("fmax", neon.S4, k.Op("fmax", neon.S4, k.top[0], k.top[1]), k.Op("fmax", neon.S4, k.top[2], k.top[3]))
	lane := func(i int) neon.Vec { return k.All(neon.S4, all, i) }
	return k.Double(k.Op("fmax", neon.S4, k.Op("fmax", neon.S4, lane(0), lane(1)),
		k.Op("fmax", neon.S4, lane(2), lane(3))))
}

// some is x with zeros in unused lanes.
func (k *neonRows) some(x neon.Vec) neon.Vec {
	if k.partial {
		return k.Op("and", neon.S4, x, k.mask)
	}
	return x
}

func (k *neonRows) doubles(x neon.Vec) [2]neon.Vec { return k.Doubles(k.some(x)) }

func (k *neonRows) clear(sums ...string) {
	for _, name := range sums {
		k.sums[name] = make([][2]neon.Vec, neonUnits)
		for i := range k.sums[name] {
			k.sums[name][i] = [2]neon.Vec{k.Zero(), k.Zero()}
		}
	}
}

func (k *neonRows) accumulate(to string, d [2]neon.Vec)  { accumulate(k.Func, k.sums[to][k.unit], d) }
func (k *neonRows) multiply(to string, a, b [2]neon.Vec) { multiply(k.Func, k.sums[to][k.unit], a, b) }

func (k *neonRows) total(name string) neon.Vec {
	var sums []neon.Vec // in the order of their lanes
	for _, s := range k.sums[name] {
		sums = append(sums, s[:]...)
	}
	for n := len(sums) / 2; n > 0; n /= 2 {
		for i := range n {
			sums[i] = k.Op("fadd", neon.D2, sums[i], sums[i+n])
		}
	}
	return k.Pair(sums[0])
}

func (k *neonRows) addColumns(to string, d [2]neon.Vec) {
	a, b := k.LoadTwo(k.now[to], 32*k.unit)
	k.StoreTwo(k.Op("fadd", neon.D2, a, d[0]), k.Op("fadd", neon.D2, b, d[1]), k.now[to], 32*k.unit)
}

func (k *neonRows) number(name string) neon.Vec { return k.Scalar(name) }
func (k *neonRows) count() neon.Vec             { return k.Op("ucvtf", neon.D2, k.AllOf(neon.D2, k.width)) }
func (k *neonRows) one() neon.Vec               { return k.Number(neon.D2, 1) }
func (k *neonRows) root(x neon.Vec) neon.Vec    { return k.Op("fsqrt", neon.D2, x) }
func (k *neonRows) single(x neon.Vec) neon.Vec  { return k.Double(k.Singles(x, x)) }
func (k *neonRows) all(x neon.Vec) neon.Vec     { return k.All(neon.S4, k.Singles(x, x), 0) }

func (k *neonRows) calculate(op string, a, b neon.Vec) neon.Vec {
	of := map[string]string{"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv", "max": "fmax"}[op]
	return k.Op(of, neon.D2, a, b)
}

// place is the address of a number of the current row.
func (k *neonRows) place(name string) (base neon.GP, offset int) {
	i, ok := k.places[name]
	if !ok {
		i = len(k.places)
		k.places[name] = i
	}
	base = k.Memory()
	k.AddShift(base, base, k.slot, 3)
	return base, 8 * rowGroup * i
}

func (k *neonRows) keep(name string, x neon.Vec) {
	base, offset := k.place(name)
	k.StoreVec(8, x, base, offset)
}

func (k *neonRows) kept(name string) neon.Vec {
	base, offset := k.place(name)
	return k.LoadVec(8, base, offset)
}

// neonRowKernels writes the kernels that run along rows.
func neonRowKernels(f *neon.File) {
	const numbers = 4 // of a row
	lanes := f.Constant("lanes", [4]uint32{0, 1, 2, 3})
	for _, g := range rowKernels[neon.Vec, [2]neon.Vec, neon.Vec]() {
		f.FuncWith(8*rowGroup*numbers, g.name+"NEON", g.signature(), func(fn *neon.Func) {
			k := &neonRows{Func: fn, lanes: lanes, padded: make(map[string]bool), now: make(map[string]neon.GP),
				sums: make(map[string][][2]neon.Vec), places: make(map[string]int), wide: make(map[string]int)}
			k.slices = strings.Fields(g.padded + " " + g.matrices + " " + g.parameters + " " + g.sums)
			for _, name := range k.slices {
				k.now[name] = k.Int(0)
			}
			for _, name := range strings.Fields(g.padded) {
				k.padded[name] = true
			}
			for _, name := range strings.Fields(g.parameters) {
				k.wide[name] = 1
			}
			for _, name := range strings.Fields(g.sums) {
				k.wide[name] = 2
			}
			k.width, k.left, k.slot = k.Arg("width"), k.Int(0), k.Int(0)
			k.group, k.start = k.Int(0), k.Int(0)
			if len(k.padded) > 0 {
				k.paddedGroup, k.paddedStart = k.Int(0), k.Int(0)
			}
			rows, one := k.Arg("rows"), k.Int(1)
			k.Label("group")
			// The last group may be smaller, those of wide rows have one row.
			k.size = k.Int(rowGroup)
			k.CompareI(k.width, rowWide)
			k.Choose("LE", k.size, k.size, one)
			k.Compare(k.size, rows)
			k.Choose("LT", k.size, k.size, rows)
			g.body(k)
			k.Set(k.group, k.start)
			if len(k.padded) > 0 {
				k.Set(k.paddedGroup, k.paddedStart)
			}
			k.Sub(rows, rows, k.size)
			k.IfNot(rows, "group")
			k.Ret()
			if len(k.places) > numbers {
				panic(g.name + ": more numbers of a row than places")
			}
		})
	}
}
