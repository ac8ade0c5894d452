package main

// combining is arithmetic on vectors V of slices, and on named numbers, for either set of instructions.
type combining[V any] interface {
	in(slice string) V
	out(slice string, x V)
	sub(a, b V) V
	times(number string, x V) V
	addTimes(y V, number string, x V) // y = y + number·x
	subTimes(y V, number string, x V) // y = y − number·x
}

// combination is a kernel with one pass over slices, unroll vectors at a time.
type combination[V any] struct {
	name, slices, numbers string
	unroll                int
	body                  func(k combining[V])
}

// combinations are the combinations of [kern.Set], besides Dot.
func combinations[V any]() []combination[V] {
	return []combination[V]{
		{"combine2", "dst x", "a b", 2, func(k combining[V]) {
			v := k.times("a", k.in("dst"))
			k.addTimes(v, "b", k.in("x"))
			k.out("dst", v)
		}},
		{"combine3", "dst x y", "a b c", 2, func(k combining[V]) {
			v := k.times("a", k.in("dst"))
			k.addTimes(v, "b", k.in("x"))
			k.addTimes(v, "c", k.in("y"))
			k.out("dst", v)
		}},
		{"sagaStep", "w mean x", "a b c e", 2, func(k combining[V]) {
			m, x := k.in("mean"), k.in("x")
			v := k.times("a", k.in("w"))
			k.addTimes(v, "b", m)
			k.addTimes(v, "c", x)
			k.out("w", v)
			k.addTimes(m, "e", x)
			k.out("mean", m)
		}},
		{"mix", "dst x y z", "a b c", 2, func(k combining[V]) {
			v := k.times("a", k.in("x"))
			k.addTimes(v, "b", k.in("y"))
			k.addTimes(v, "c", k.in("z"))
			k.out("dst", v)
		}},
		{"katyushaStep", "z y mean x grad", "alpha shrinkZ short shrinkY weight", 1, func(k combining[V]) {
			g, z, y, mean := k.in("grad"), k.in("z"), k.in("x"), k.in("mean")
			k.subTimes(z, "alpha", g)
			k.out("z", k.times("shrinkZ", z))
			k.subTimes(y, "short", g)
			y = k.times("shrinkY", y)
			k.out("y", y)
			k.addTimes(mean, "weight", k.sub(y, mean))
			k.out("mean", mean)
		}},
	}
}
