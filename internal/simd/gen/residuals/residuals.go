package main

// streaming is arithmetic along a row of float64 and several vectors, a few elements at a time, for either set of
// instructions.
type streaming[V any] interface {
	load(i int) V // vector i
	get() V       // the row
	set(i int, x V)
	sub(a, b V) V
	addTimes(y V, i int, x V) // y = y + coefficient i times x
}

// setter sets rows to residuals: a vector itself, a difference of two, or the four differences of five successive
// vectors.
type setter[V any] struct {
	name    string
	vectors int
	body    func(k streaming[V])
}

func setters[V any]() []setter[V] {
	return []setter[V]{
		{"set", 1, func(k streaming[V]) { k.set(0, k.load(0)) }},
		{"setDiff", 2, func(k streaming[V]) { k.set(0, k.sub(k.load(1), k.load(0))) }},
		{"setFour", 5, func(k streaming[V]) { four(k, k.set) }},
	}
}

// dot multiplies a row by several residuals, which it passes to do.
type dot[V any] struct {
	name              string
	vectors, products int
	residuals         func(k streaming[V], do func(i int, x V))
}

func dots[V any]() []dot[V] {
	return []dot[V]{
		{"dot", 1, 1, func(k streaming[V], do func(int, V)) { do(0, k.load(0)) }},
		{"dotDiff", 2, 1, func(k streaming[V], do func(int, V)) { do(0, k.sub(k.load(1), k.load(0))) }},
		{"dotFour", 5, 4, four[V]},
	}
}

// four calls do for the differences of successive vectors of five.
func four[V any](k streaming[V], do func(i int, x V)) {
	before := k.load(0)
	for i := range 4 {
		now := k.load(i + 1)
		do(i, k.sub(now, before))
		before = now
	}
}

// adders are the kernels that add multiples of one to four vectors to a row.
var adders = []string{"addOne", "addTwo", "addThree", "addFour"}

func addMultiples[V any](k streaming[V], vectors int) {
	sum := k.get()
	for i := range vectors {
		k.addTimes(sum, i, k.load(i))
	}
	k.set(0, sum)
}
