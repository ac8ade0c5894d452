package main

// lanes is arithmetic on the current vectors, of type V, of a kernel's slices, for either set of instructions. This
// file and functions.go define all computations of the kernels once; stream.go and neonstream.go have the instructions.
type lanes[V any] interface {
	in(slice string) V
	out(slice string, x V)

	add(a, b V) V
	sub(a, b V) V
	mul(a, b V) V
	div(a, b V) V
	sqrt(x V) V
	neg(x V) V

	minimum(a, b V) V // NaN if either is, and −0 is below 0
	maximum(a, b V) V
	less(a, b V) V // all bits set if true, otherwise none
	lessEqual(a, b V) V
	equal(a, b V) V
	choose(c, a, b V) V // a if c has its bits set, otherwise b

	positive(x V) V      // x, and 0 if x < 0
	passed(y, dy V) V    // dy, and 0 if y ≤ 0
	scalar() V           // the argument a
	coefficient(i int) V // element i of the argument c
	some(x V) V          // x, and 0 in unused lanes
}

// kernel applies the same function to all elements of its slices; the slices in rows are repeated.
type kernel[V any] struct {
	name, slices, rows string
	zero               bool // may use positive or passed
	scalar             bool // has the argument a
	body               func(k lanes[V])
}

// arguments are the arguments behind the slices, with the closing parenthesis.
func (g kernel[V]) arguments() string {
	if g.scalar {
		return "a float32)"
	}
	return ")"
}

// elementwise returns the kernels of layers and of vectors. The kernels whose results may go past the caches exist for
// each of ways, the endings of their names.
func elementwise[V any](ways ...string) []kernel[V] {
	return append(append(layers[V](ways...), gradients[V]("")...), ofVectors[V]()...)
}

// layers returns the kernels of forward passes for each of ways.
func layers[V any](ways ...string) (list []kernel[V]) {
	put := func(g kernel[V]) { list = append(list, g) }
	for _, way := range ways {
		put(kernel[V]{name: "relu" + way, slices: "dst x", zero: true, body: func(k lanes[V]) {
			k.out("dst", k.positive(k.in("x")))
		}})
		put(kernel[V]{name: "add" + way, slices: "dst a b",
			body: func(k lanes[V]) { k.out("dst", k.add(k.in("a"), k.in("b"))) }})
	}
	for _, v := range []struct {
		name, slices string
		add, relu    bool
	}{
		{"normalize", "dst x", false, false},
		{"normalizeReLU", "dst x", false, true},
		{"normalizeAdd", "dst x other", true, false},
		{"normalizeAddReLU", "dst x other", true, true},
	} {
		for _, way := range ways {
			put(kernel[V]{name: v.name + way, slices: v.slices, rows: normalRows, zero: true, body: func(k lanes[V]) {
				x := normalized[V](k)
				if v.add {
					x = k.add(x, k.in("other"))
				}
				if v.relu {
					x = k.positive(x)
				}
				k.out("dst", x)
			}})
		}
	}
	return list
}

// normalized is the current x after a batch normalisation, whose parameters are the rows normalRows.
func normalized[V any](k lanes[V]) V {
	return k.add(k.mul(k.sub(k.in("x"), k.in("mean")), k.in("gain")), k.in("bias"))
}

const normalRows = "mean gain bias"

// gradients returns the kernels of backward passes, with an ending of their names.
func gradients[V any](way string) (list []kernel[V]) {
	put := func(g kernel[V]) { list = append(list, g) }
	put(kernel[V]{name: "reluGrad" + way, slices: "dst y dy", zero: true, body: func(k lanes[V]) {
		k.out("dst", k.passed(k.in("y"), k.in("dy")))
	}})
	const rows = "mean gain meanGrad slope"
	put(kernel[V]{name: "normalizeGrad" + way, slices: "dst x dy", rows: rows, body: func(k lanes[V]) {
		d := k.mul(k.sub(k.in("x"), k.in("mean")), k.in("slope"))
		k.out("dst", k.mul(k.sub(k.sub(k.in("dy"), k.in("meanGrad")), d), k.in("gain")))
	}})
	return list
}

// ofVectors returns the kernels of vectors.
func ofVectors[V any]() (list []kernel[V]) {
	put := func(g kernel[V]) { list = append(list, g) }
	put(kernel[V]{name: "scale", slices: "dst x", rows: "gain", body: func(k lanes[V]) {
		k.out("dst", k.mul(k.in("x"), k.in("gain")))
	}})
	put(kernel[V]{name: "fill", slices: "dst", scalar: true, body: func(k lanes[V]) { k.out("dst", k.scalar()) }})
	put(kernel[V]{name: "addScaled", slices: "dst x", scalar: true, body: func(k lanes[V]) {
		k.out("dst", k.add(k.in("dst"), k.mul(k.scalar(), k.in("x"))))
	}})
	put(kernel[V]{name: "lerp", slices: "dst x", scalar: true, body: func(k lanes[V]) {
		v := k.in("dst")
		k.out("dst", k.add(v, k.mul(k.scalar(), k.sub(k.in("x"), v))))
	}})
	return list
}

// unary and others return the kernels of expressions that consist of a few instructions.
func unary[V any]() (list []kernel[V]) {
	for _, f := range []struct {
		name string
		of   func(k lanes[V], x V) V
	}{{"neg", lanes[V].neg}, {"sqrt", lanes[V].sqrt}} {
		list = append(list, kernel[V]{name: f.name, slices: "dst x",
			body: func(k lanes[V]) { k.out("dst", f.of(k, k.in("x"))) }})
	}
	return list
}

func others[V any]() (list []kernel[V]) {
	for _, f := range []struct {
		name string
		of   func(k lanes[V], a, b V) V
	}{
		{"sub", lanes[V].sub}, {"mul", lanes[V].mul}, {"div", lanes[V].div},
		{"minimum", lanes[V].minimum}, {"maximum", lanes[V].maximum},
		{"less", lanes[V].less}, {"lessEqual", lanes[V].lessEqual}, {"equal", lanes[V].equal},
	} {
		list = append(list, kernel[V]{name: f.name, slices: "dst a b", body: func(k lanes[V]) {
			k.out("dst", f.of(k, k.in("a"), k.in("b")))
		}})
	}
	return append(list, kernel[V]{name: "choose", slices: "dst c a b", body: func(k lanes[V]) {
		k.out("dst", k.choose(k.in("c"), k.in("a"), k.in("b")))
	}})
}
