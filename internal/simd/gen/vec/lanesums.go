package main

// summing is arithmetic on vectors V of matrices, and on D, their elements widened to float64, which are added to sums.
type summing[V, D any] interface {
	in(matrix string) V
	out(matrix string, x V)
	add(a, b V) V
	sub(a, b V) V
	passed(y, dy V) V // dy, and 0 if y ≤ 0
	doubles(x V) D
	accumulate(to string, d D)
	multiply(to string, a, b D) // adds the products, which are exact: they round as a multiplication and an addition do
}

// columnKernel is a kernel that sums down the columns of matrices, some with a row beside them.
type columnKernel[V, D any] struct {
	name, sums, matrices, row string
	several                   bool // reads several matrices
	body                      func(k summing[V, D], row V)
}

func columnSums[V, D any]() []columnKernel[V, D] {
	gradSums := func(k summing[V, D], dy, mean V) {
		d := k.doubles(k.sub(k.in("x"), mean))
		g := k.doubles(dy)
		k.multiply("scale", d, g)
		k.accumulate("bias", g)
	}
	return []columnKernel[V, D]{
		{"sums", "sum", "x", "", false, func(k summing[V, D], _ V) { k.accumulate("sum", k.doubles(k.in("x"))) }},
		{"moments", "sum squares", "x", "", false, func(k summing[V, D], _ V) {
			d := k.doubles(k.in("x"))
			k.accumulate("sum", d)
			k.multiply("squares", d, d)
		}},
		{"gradSums", "scale bias", "x dy", "mean", true, func(k summing[V, D], mean V) { gradSums(k, k.in("dy"), mean) }},
		{"reluGradSums", "scale bias", "x dy y from", "mean", true, func(k summing[V, D], mean V) {
			dy := k.passed(k.in("y"), k.in("from"))
			k.out("dy", dy)
			gradSums(k, dy, mean)
		}},
		{"addReLUGradSums", "scale bias", "x dy y from more", "mean", true, func(k summing[V, D], mean V) {
			dy := k.passed(k.in("y"), k.add(k.in("from"), k.in("more")))
			k.out("dy", dy)
			gradSums(k, dy, mean)
		}},
	}
}
