package main

import (
	"strings"

	"onlinerna/internal/simd/gen/neon"
)

// neonStream is a kernel with one pass over slices of equal length, some with a row of parameters beside them.
type neonStream struct {
	*neon.Func
	base  map[string]neon.GP // addresses of the current elements
	unit  int                // the current vector
	bytes int                // its used bytes

	a neon.Vec    // the argument a
	c [2]neon.Vec // coefficients
}

// neonValue is a vector, or a lane that stands for all lanes.
type neonValue struct {
	neon.Vec
	one  bool
	lane int
}

func vector(x neon.Vec) neonValue { return neonValue{Vec: x} }

// whole is x in all lanes.
func (k *neonStream) whole(x neonValue) neon.Vec {
	if x.one {
		return k.All(neon.S4, x.Vec, x.lane)
	}
	return x.Vec
}

func (k *neonStream) in(name string) neonValue {
	return vector(k.LoadVec(k.bytes, k.base[name], k.unit*neon.Bytes))
}

func (k *neonStream) out(name string, x neonValue) {
	k.StoreVec(k.bytes, k.whole(x), k.base[name], k.unit*neon.Bytes)
}

func (k *neonStream) op(name string, from ...neonValue) neonValue {
	var list []neon.Vec
	for _, x := range from {
		list = append(list, k.whole(x))
	}
	return vector(k.Op(name, neon.S4, list...))
}

func (k *neonStream) add(a, b neonValue) neonValue       { return k.op("fadd", a, b) }
func (k *neonStream) sub(a, b neonValue) neonValue       { return k.op("fsub", a, b) }
func (k *neonStream) div(a, b neonValue) neonValue       { return k.op("fdiv", a, b) }
func (k *neonStream) sqrt(x neonValue) neonValue         { return k.op("fsqrt", x) }
func (k *neonStream) neg(x neonValue) neonValue          { return k.op("fneg", x) }
func (k *neonStream) minimum(a, b neonValue) neonValue   { return k.op("fmin", a, b) }
func (k *neonStream) maximum(a, b neonValue) neonValue   { return k.op("fmax", a, b) }
func (k *neonStream) less(a, b neonValue) neonValue      { return k.op("fcmgt", b, a) }
func (k *neonStream) lessEqual(a, b neonValue) neonValue { return k.op("fcmge", b, a) }
func (k *neonStream) equal(a, b neonValue) neonValue     { return k.op("fcmeq", a, b) }

func (k *neonStream) mul(a, b neonValue) neonValue {
	if a.one {
		return vector(k.Times(neon.S4, k.whole(b), a.Vec, a.lane))
	}
	return k.op("fmul", a, b)
}

func (k *neonStream) choose(c, a, b neonValue) neonValue {
	truth := k.Negative(k.whole(c))
	k.Into(truth, "bsl", neon.S4, k.whole(a), k.whole(b))
	return vector(truth)
}

func (k *neonStream) positive(x neonValue) neonValue {
	v := k.whole(x)
	return vector(k.Op("bic", neon.S4, v, k.CompareZero("fcmlt", neon.S4, v)))
}

func (k *neonStream) passed(y, dy neonValue) neonValue {
	return vector(passed(k.Func, k.whole(y), k.whole(dy)))
}

// passed is dy, and 0 if y ≤ 0.
func passed(k *neon.Func, y, dy neon.Vec) neon.Vec {
	return k.Op("bic", neon.S4, dy, k.CompareZero("fcmle", neon.S4, y))
}

func (k *neonStream) scalar() neonValue { return vector(k.a) }

func (k *neonStream) coefficient(i int) neonValue { return neonValue{k.c[i/4], true, i % 4} }

// some is x: unused lanes are never added.
func (k *neonStream) some(x neonValue) neonValue { return x }

// neonEnds are a stream's functions besides its body; both may be nil. rest runs before the numbers behind whole turns
// of the loop, which are then processed one by one; last runs at the end.
type neonEnds struct{ rest, last func() }

// neonRun writes a kernel with the given slices and rows. more spells out other arguments and the result, or is only
// the closing parenthesis.
func neonRun(f *neon.File, name, slices, rows, more string, setup func(k *neonStream) (body func(), ends neonEnds)) {
	names, params := strings.Fields(slices), strings.Fields(rows)
	all := append(names[:len(names):len(names)], params...)
	if !strings.HasPrefix(more, ")") {
		more = ", " + more
	}
	f.Func(name+"NEON", "("+strings.Join(all, ", ")+" []float32"+more, func(fn *neon.Func) {
		k := &neonStream{Func: fn, base: make(map[string]neon.GP)}
		for _, n := range all {
			k.base[n] = k.Arg(n + "_base")
		}
		total := k.Arg(names[0] + "_len")
		body, ends := setup(k)
		n := total
		if len(params) > 0 {
			k.IfZero(total, "end")
			k.Label("row")
			for _, p := range params {
				k.ArgTo(k.base[p], p+"_base")
			}
			width := k.Arg(params[0] + "_len")
			k.Compare(total, width)
			n = k.Int(0)
			k.Choose("LT", n, total, width)
			k.Sub(total, total, n)
		}
		loop := func(label string, units, bytes int) {
			k.bytes = bytes
			k.Turns(label, n, units*bytes/neonOne, func() {
				if bytes == neonWhole {
					for _, s := range names {
						k.Fetch(k.base[s], ahead)
					}
				}
				for k.unit = range units {
					body()
				}
				k.unit = 0
				for _, s := range all {
					k.AddI(k.base[s], k.base[s], units*bytes)
				}
			})
		}
		if ends.rest != nil {
			loop("two", 2, neonWhole)
			ends.rest()
		} else {
			loop("four", 4, neonWhole)
			loop("vector", 1, neonWhole)
		}
		loop("single", 1, neonOne)
		if len(params) > 0 {
			k.IfNot(total, "row")
			k.Label("end")
		}
		if ends.last != nil {
			ends.last()
			return
		}
		k.Ret()
	})
}

// neonKernels writes kernels that apply the same function to all elements.
func neonKernels(f *neon.File, list []kernel[neonValue]) {
	for _, g := range list {
		neonRun(f, g.name, g.slices, g.rows, g.arguments(), func(k *neonStream) (func(), neonEnds) {
			if g.scalar {
				k.a = k.All(neon.S4, k.Scalar("a"), 0)
			}
			return func() { g.body(k) }, neonEnds{}
		})
	}
}

// neonVectors writes the kernels that reduce a vector.
func neonVectors(f *neon.File) {
	// x − x is 0, and NaN if x is not finite.
	neonRun(f, "strange", "x", "", ") uint32", func(k *neonStream) (func(), neonEnds) {
		bits := k.Zero()
		return func() {
			x := k.in("x")
			k.Into(bits, "orr", neon.S4, bits, k.sub(x, x).Vec)
		}, neonEnds{last: func() { k.Return(k.Word(k.LargestInt(bits))) }}
	})
	// Element i is added to sum i%8 for any vector length.
	neonRun(f, "squares", "x", "", "sums *[8]float64)", func(k *neonStream) (func(), neonEnds) {
		add, ends := k.squares(1)
		return func() { add(0, k.in("x")) }, ends
	})
}

// squares adds up the squares of several quantities: the argument sums has an [8]float64 for each, and element i goes
// to sum i%8.
func (k *neonStream) squares(quantities int) (add func(quantity int, x neonValue), ends neonEnds) {
	const size = 8 * 8
	acc := make([][4]neon.Vec, quantities)
	for q := range acc {
		for i := range acc[q] {
			acc[q][i] = k.Zero()
		}
	}
	var sums neon.GP // of the next element, in the loop over single numbers
	rest := func() {
		sums = k.Arg("sums")
		for q, list := range acc {
			for i := 0; i < len(list); i += 2 {
				k.StoreTwo(list[i], list[i+1], sums, q*size+i*neon.Bytes)
			}
		}
	}
	add = func(q int, x neonValue) {
		if k.bytes == neonWhole {
			for i, d := range k.Doubles(x.Vec) {
				k.Into(acc[q][2*k.unit+i], "fmla", neon.D2, d, d)
			}
			return
		}
		d, sum := k.Double(x.Vec), k.LoadVec(8, sums, q*size)
		k.Into(sum, "fmla", neon.D2, d, d)
		k.StoreVec(8, sum, sums, q*size)
		if q == quantities-1 {
			k.AddI(sums, sums, 8)
		}
	}
	return add, neonEnds{rest: rest}
}

// neonUpdates writes the optimisers' kernels. Their coefficients are lanes of two registers.
func neonUpdates(f *neon.File) {
	for _, u := range optimisers[neonValue]() {
		neonRun(f, u.name, "w g a b", "", u.arguments(), func(k *neonStream) (func(), neonEnds) {
			k.c[0], k.c[1] = k.LoadTwo(k.Arg("c"), 0)
			if u.measure == nil {
				return func() { u.step(k) }, neonEnds{}
			}
			add, ends := k.squares(2)
			return func() {
				x, y := u.measure(k)
				add(0, x)
				add(1, y)
			}, ends
		})
	}
}
