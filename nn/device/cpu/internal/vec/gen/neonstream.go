package main

import (
	"strings"

	"onlinerna/internal/asm/neon"
)

// neonStream is a kernel that runs once along slices of equal length, some with a row of parameters beside them.
type neonStream struct {
	*neon.Func
	base  map[string]neon.GP // of what the body works on
	unit  int                // the vector in hand
	bytes int                // of it that count
}

func (k *neonStream) in(name string) neon.Vec {
	return k.LoadVec(k.bytes, k.base[name], k.unit*neon.Bytes)
}

func (k *neonStream) out(name string, x neon.Vec) {
	k.StoreVec(k.bytes, x, k.base[name], k.unit*neon.Bytes)
}

func (k *neonStream) add(a, b neon.Vec) neon.Vec { return k.Op("fadd", neon.S4, a, b) }
func (k *neonStream) sub(a, b neon.Vec) neon.Vec { return k.Op("fsub", neon.S4, a, b) }
func (k *neonStream) mul(a, b neon.Vec) neon.Vec { return k.Op("fmul", neon.S4, a, b) }
func (k *neonStream) positive(x neon.Vec) neon.Vec { // x, and 0 where x < 0
	return k.Op("bic", neon.S4, x, k.CompareZero("fcmlt", neon.S4, x))
}

// passed is dy, and 0 where y ≤ 0.
func passed(k *neon.Func, y, dy neon.Vec) neon.Vec {
	return k.Op("bic", neon.S4, dy, k.CompareZero("fcmle", neon.S4, y))
}

// neonEnds are what a stream does besides its body, if not nil: rest before the numbers that are no whole turn of the loop, which
// are then taken one by one, and last at the end.
type neonEnds struct{ rest, last func() }

// neonRun writes a kernel with the given slices and rows. Other arguments and the result are written out in more, from the
// bracket if there are none.
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
			lanes := units * bytes / neonOne
			k.bytes = bytes
			k.SubsI(n, n, lanes)
			k.Branch("LT", label+"End")
			k.Label(label)
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
			k.SubsI(n, n, lanes)
			k.Branch("GE", label)
			k.Label(label + "End")
			k.AddI(n, n, lanes)
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

func neonElementwise(f *neon.File) {
	simple := func(name, slices, rows string, body func(k *neonStream) neon.Vec) {
		neonRun(f, name, slices, rows, ")", func(k *neonStream) (func(), neonEnds) {
			return func() { k.out("dst", body(k)) }, neonEnds{}
		})
	}
	simple("relu", "dst x", "", func(k *neonStream) neon.Vec { return k.positive(k.in("x")) })
	simple("add", "dst a b", "", func(k *neonStream) neon.Vec { return k.add(k.in("a"), k.in("b")) })
	simple("reluGrad", "dst y dy", "", func(k *neonStream) neon.Vec { return passed(k.Func, k.in("y"), k.in("dy")) })
	simple("scale", "dst x", "gain", func(k *neonStream) neon.Vec { return k.mul(k.in("x"), k.in("gain")) })
}

func neonBatchNorm(f *neon.File) {
	for _, v := range []struct {
		name, slices string
		add, relu    bool
	}{
		{"normalize", "dst x", false, false},
		{"normalizeReLU", "dst x", false, true},
		{"normalizeAdd", "dst x other", true, false},
		{"normalizeAddReLU", "dst x other", true, true},
	} {
		neonRun(f, v.name, v.slices, "mean gain bias", ")", func(k *neonStream) (func(), neonEnds) {
			return func() {
				x := k.add(k.mul(k.sub(k.in("x"), k.in("mean")), k.in("gain")), k.in("bias"))
				if v.add {
					x = k.add(x, k.in("other"))
				}
				if v.relu {
					x = k.positive(x)
				}
				k.out("dst", x)
			}, neonEnds{}
		})
	}
	neonRun(f, "normalizeGrad", "dst x dy", "mean gain meanGrad slope", ")", func(k *neonStream) (func(), neonEnds) {
		return func() {
			d := k.mul(k.sub(k.in("x"), k.in("mean")), k.in("slope"))
			k.out("dst", k.mul(k.sub(k.sub(k.in("dy"), k.in("meanGrad")), d), k.in("gain")))
		}, neonEnds{}
	})
}

func neonVectors(f *neon.File) {
	scalar := func(k *neonStream) neon.Vec { return k.All(neon.S4, k.Scalar("a"), 0) }
	neonRun(f, "fill", "dst", "", "a float32)", func(k *neonStream) (func(), neonEnds) {
		a := scalar(k)
		return func() { k.out("dst", a) }, neonEnds{}
	})
	neonRun(f, "addScaled", "dst x", "", "a float32)", func(k *neonStream) (func(), neonEnds) {
		a := scalar(k)
		return func() { k.out("dst", k.add(k.in("dst"), k.mul(a, k.in("x")))) }, neonEnds{}
	})
	neonRun(f, "lerp", "dst x", "", "a float32)", func(k *neonStream) (func(), neonEnds) {
		a := scalar(k)
		return func() {
			v := k.in("dst")
			k.out("dst", k.add(v, k.mul(a, k.sub(k.in("x"), v))))
		}, neonEnds{}
	})
	// x − x is 0, and NaN where x is not finite.
	neonRun(f, "strange", "x", "", ") uint32", func(k *neonStream) (func(), neonEnds) {
		bits := k.Zero()
		return func() {
			x := k.in("x")
			k.Into(bits, "orr", neon.S4, bits, k.sub(x, x))
		}, neonEnds{last: func() { k.Return(k.Word(k.LargestInt(bits))) }}
	})
	// Element i is added to sum i%8, whatever the vectors.
	neonRun(f, "squares", "x", "", "sums *[8]float64)", func(k *neonStream) (func(), neonEnds) {
		add, ends := k.squares(1)
		return func() { add(0, k.in("x")) }, ends
	})
}

// squares adds the squares of so many quantities up: those of element i in sum i%8 of [8]float64 for each in argument sums.
func (k *neonStream) squares(quantities int) (add func(quantity int, x neon.Vec), ends neonEnds) {
	const size = 8 * 8
	acc := make([][4]neon.Vec, quantities)
	for q := range acc {
		for i := range acc[q] {
			acc[q][i] = k.Zero()
		}
	}
	var sums neon.GP // of the next element, when they are taken one by one
	rest := func() {
		sums = k.Arg("sums")
		for q, list := range acc {
			for i := 0; i < len(list); i += 2 {
				k.StoreTwo(list[i], list[i+1], sums, q*size+i*neon.Bytes)
			}
		}
	}
	add = func(q int, x neon.Vec) {
		if k.bytes == neonWhole {
			for i, d := range k.Doubles(x) {
				k.Into(acc[q][2*k.unit+i], "fmla", neon.D2, d, d)
			}
			return
		}
		d, sum := k.Double(x), k.LoadVec(8, sums, q*size)
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
	type update struct {
		*neonStream
		c    [2]neon.Vec
		by   func(i int, x neon.Vec) neon.Vec // coefficient i times x
		plus func(i int, x neon.Vec) neon.Vec // coefficient i plus x
	}
	begin := func(k *neonStream) update {
		u := update{neonStream: k}
		u.c[0], u.c[1] = k.LoadTwo(k.Arg("c"), 0)
		u.by = func(i int, x neon.Vec) neon.Vec { return k.Times(neon.S4, x, u.c[i/4], i%4) }
		u.plus = func(i int, x neon.Vec) neon.Vec { return k.add(k.All(neon.S4, u.c[i/4], i%4), x) }
		return u
	}
	apply := func(name string, body func(u update)) {
		neonRun(f, name, "w g a b", "", "c *[8]float32)", func(k *neonStream) (func(), neonEnds) {
			u := begin(k)
			return func() { body(u) }, neonEnds{}
		})
	}
	measure := func(name string, body func(u update) (x, y neon.Vec)) {
		neonRun(f, name, "w g a b", "", "c *[8]float32, sums *[2][8]float64)", func(k *neonStream) (func(), neonEnds) {
			u := begin(k)
			add, ends := k.squares(2)
			return func() {
				x, y := body(u)
				add(0, x)
				add(1, y)
			}, ends
		})
	}
	for _, nesterov := range []bool{false, true} {
		name := "momentum"
		if nesterov {
			name = "nesterov"
		}
		apply(name, func(u update) {
			const rate, momentum, decay, scale = 0, 1, 2, 3
			w := u.in("w")
			d := u.add(u.by(scale, u.in("g")), u.by(decay, w))
			v := u.add(u.by(momentum, u.in("a")), d)
			u.out("a", v)
			if nesterov {
				v = u.add(d, u.by(momentum, v))
			}
			u.out("w", u.sub(w, u.by(rate, v)))
		})
	}
	// moments moves the averages of the gradient and of its square.
	moments := func(u update) (m, v neon.Vec) {
		g := u.in("g")
		d := u.by(3, g)
		m = u.add(u.by(0, u.in("a")), u.by(1, g))
		v = u.add(u.by(2, u.in("b")), u.mul(d, d))
		u.out("a", m)
		u.out("b", v)
		return m, v
	}
	ratio := func(u update, m, v neon.Vec) neon.Vec {
		return u.Op("fdiv", neon.S4, u.by(5, m), u.plus(4, u.Op("fsqrt", neon.S4, v)))
	}
	lamb := func(u update, w, m, v neon.Vec) neon.Vec { return u.add(ratio(u, m, v), u.by(6, w)) }
	apply("adamW", func(u update) {
		m, v := moments(u)
		u.out("w", u.sub(u.by(6, u.in("w")), ratio(u, m, v)))
	})
	measure("larsNorms", func(u update) (x, y neon.Vec) { return u.in("w"), u.in("g") })
	measure("lambNorms", func(u update) (x, y neon.Vec) {
		m, v := moments(u)
		w := u.in("w")
		return w, lamb(u, w, m, v)
	})
	apply("lamb", func(u update) {
		w := u.in("w")
		u.out("w", u.sub(w, u.by(7, lamb(u, w, u.in("a"), u.in("b")))))
	})
}
