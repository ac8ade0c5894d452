package main

import "strings"

// rowing is arithmetic on rows of matrices: on vectors V of a row, on D, their elements widened to float64, and on N,
// float64 numbers of a row.
type rowing[V, D, N any] interface {
	// phase runs body for each row of a group: a processor works on several rows at a time, since no row waits for a
	// number of the one before. pass runs body for each vector of a row, given for either way that an optional slice may
	// be.
	phase(body func())
	pass(body func())
	given(slice string, then, otherwise func())

	keep(name string, x N) // for the row's next phases
	kept(name string) N

	in(matrix string) V
	out(matrix string, x V)
	parameter(slice string) V // of the row that all rows share
	add(a, b V) V
	sub(a, b V) V
	mul(a, b V) V
	exp(x V) V
	withoutSmall(x V) V   // x, and 0 if it is 2^-100 at most
	scalar(name string) V // an argument, in all lanes

	lowest()   // resets the largest element
	raise(x V) // includes x in it
	highest() N

	doubles(x V) D
	clear(sums ...string)       // sets sums along the row to 0
	accumulate(to string, d D)  // adds to one
	multiply(to string, a, b D) // adds products, which are exact
	total(sum string) N
	addColumns(to string, d D) // adds to a slice of sums down the columns

	number(name string) N // an argument
	count() N             // of the elements of a row
	one() N
	calculate(op string, a, b N) N // +, -, *, / or max, which is NaN if b is
	root(x N) N
	single(x N) N // rounded to float32
	all(x N) V    // likewise, in all lanes
}

// rowKernel is a kernel that computes rows one by one. Slices that its body asks for with given may be nil.
type rowKernel[V, D, N any] struct {
	name               string
	padded, matrices   string // slices: matrices with and without padding behind each row
	parameters, sums   string // slices: rows that all rows share, and float64 sums of columns
	scalars, precision string // arguments that are numbers of float32 and of float64
	body               func(k rowing[V, D, N])
}

// signature is that of the kernel.
func (g rowKernel[V, D, N]) signature() string {
	var list []string
	for _, p := range []struct{ names, kind string }{
		{g.padded + " " + g.matrices + " " + g.parameters, "[]float32"}, {g.sums, "[]float64"}, {g.scalars, "float32"},
		{g.precision, "float64"}, {"width rows", "int"},
	} {
		if names := strings.Fields(p.names); len(names) > 0 {
			list = append(list, strings.Join(names, ", ")+" "+p.kind)
		}
	}
	return "(" + strings.Join(list, ", ") + ")"
}

func rowKernels[V, D, N any]() []rowKernel[V, D, N] {
	return []rowKernel[V, D, N]{
		{name: "softmax", matrices: "dst x bias", scalars: "scale", body: softmax[V, D, N]("x", "dst", false)},
		{name: "softmaxGrad", matrices: "dst y dy sum", scalars: "scale", body: softmaxGrad[V, D, N]("dy", "dst")},
		{name: "softmaxPadded", padded: "x", matrices: "bias", scalars: "scale", body: softmax[V, D, N]("x", "x", true)},
		{name: "softmaxGradPadded", padded: "y dy", matrices: "sum", scalars: "scale",
			body: softmaxGrad[V, D, N]("dy", "dy")},
		{name: "layerNorm", matrices: "dst x", parameters: "gain bias", precision: "eps", body: layerNorm[V, D, N]},
		{name: "layerNormGrad", matrices: "dst x dy", parameters: "gain", sums: "sum", precision: "eps",
			body: layerNormGrad[V, D, N]},
	}
}

func softmax[V, D, N any](x, dst string, withoutSmall bool) func(k rowing[V, D, N]) {
	return func(k rowing[V, D, N]) {
		k.phase(func() {
			k.lowest()
			scale := k.scalar("scale")
			scaled := func() V { return k.mul(k.in(x), scale) }
			set := func(v V) {
				k.out(dst, v)
				k.raise(v)
			}
			k.given("bias", func() { k.pass(func() { set(k.add(scaled(), k.in("bias"))) }) },
				func() { k.pass(func() { set(scaled()) }) })
			k.keep("top", k.highest())
		})
		k.phase(func() {
			k.clear("sum")
			top := k.all(k.kept("top"))
			k.pass(func() {
				e := k.exp(k.sub(k.in(dst), top))
				if withoutSmall {
					e = k.withoutSmall(e)
				}
				k.out(dst, e)
				k.accumulate("sum", k.doubles(e))
			})
			k.keep("sum", k.total("sum"))
		})
		k.phase(func() {
			f := k.all(k.calculate("/", k.one(), k.kept("sum")))
			k.pass(func() { k.out(dst, k.mul(k.in(dst), f)) })
		})
	}
}

func softmaxGrad[V, D, N any](dy, dst string) func(k rowing[V, D, N]) {
	return func(k rowing[V, D, N]) {
		k.phase(func() {
			k.clear("dot")
			k.pass(func() {
				y := k.doubles(k.in("y"))
				k.multiply("dot", y, k.doubles(k.in(dy)))
			})
			k.keep("dot", k.total("dot"))
		})
		k.phase(func() {
			mean, scale := k.all(k.kept("dot")), k.scalar("scale")
			grad := func() V { return k.mul(k.sub(k.in(dy), mean), k.in("y")) }
			k.given("sum", func() {
				k.pass(func() {
					d := grad()
					k.out("sum", k.add(k.in("sum"), d))
					k.out(dst, k.mul(d, scale))
				})
			}, func() { k.pass(func() { k.out(dst, k.mul(grad(), scale)) }) })
		})
	}
}

// keepMoments keeps the mean of a row of x and 1/√(variance + eps).
func keepMoments[V, D, N any](k rowing[V, D, N]) {
	k.phase(func() {
		k.clear("first", "second")
		k.pass(func() {
			x := k.doubles(k.in("x"))
			k.accumulate("first", x)
			k.multiply("second", x, x)
		})
		n := k.count()
		mean := k.calculate("/", k.total("first"), n)
		k.keep("mean", mean)
		variance := k.calculate("-", k.calculate("/", k.total("second"), n), k.calculate("*", mean, mean))
		zero := k.calculate("-", n, n)
		variance = k.calculate("+", k.calculate("max", zero, variance), k.number("eps"))
		k.keep("inverse", k.calculate("/", k.one(), k.root(variance)))
	})
}

func layerNorm[V, D, N any](k rowing[V, D, N]) {
	keepMoments(k)
	k.phase(func() {
		mean, inverse := k.all(k.kept("mean")), k.all(k.kept("inverse"))
		k.pass(func() {
			x := k.mul(k.mul(k.sub(k.in("x"), mean), inverse), k.parameter("gain"))
			k.out("dst", k.add(x, k.parameter("bias")))
		})
	})
}

func layerNormGrad[V, D, N any](k rowing[V, D, N]) {
	keepMoments(k)
	k.given("sum", func() {
		k.phase(func() {
			mean, inverse := k.all(k.kept("mean")), k.all(k.kept("inverse"))
			k.pass(func() {
				x := k.mul(k.sub(k.in("x"), mean), inverse)
				k.addColumns("sum", k.doubles(k.mul(x, k.in("dy"))))
			})
		})
	}, nil)
	k.given("dst", func() {
		k.phase(func() {
			k.clear("mixed", "total")
			mean := k.all(k.kept("mean"))
			k.pass(func() {
				x := k.doubles(k.sub(k.in("x"), mean))
				g := k.doubles(k.mul(k.in("dy"), k.parameter("gain")))
				k.multiply("mixed", x, g)
				k.accumulate("total", g)
			})
			n, m, i, sum := k.count(), k.kept("mean"), k.kept("inverse"), k.total("total")
			// The differences were those from a rounded mean.
			rounding := k.calculate("-", k.single(m), m)
			mixed := k.calculate("+", k.total("mixed"), k.calculate("*", sum, rounding))
			k.keep("meanGrad", k.calculate("/", sum, n))
			k.keep("slope", k.calculate("/", k.calculate("*", mixed, k.calculate("*", i, i)), n))
		})
		k.phase(func() {
			mean, inverse := k.all(k.kept("mean")), k.all(k.kept("inverse"))
			meanGrad, slope := k.all(k.kept("meanGrad")), k.all(k.kept("slope"))
			k.pass(func() {
				g := k.sub(k.mul(k.in("dy"), k.parameter("gain")), meanGrad)
				d := k.mul(k.sub(k.in("x"), mean), slope)
				k.out("dst", k.mul(k.sub(g, d), inverse))
			})
		})
	}, nil)
}
