package main

import "onlinerna/internal/simd/gen/neon"

// neonRounding rounds registers to bfloat16 as rounding does.
type neonRounding struct {
	*neon.Func
	one, half, high, exponent, sign, quiet neon.Vec
}

func newNeonRounding(k *neon.Func) neonRounding {
	bits := func(x uint64) neon.Vec { return k.Bits(neon.S4, x) }
	return neonRounding{k, bits(1), bits(0x7fff), bits(0xffff0000), bits(0x7f800000), bits(1 << 31), bits(1 << 22)}
}

// sum is x plus the rounding term: cutting off the lower halves of its elements then rounds.
func (r neonRounding) sum(x neon.Vec) neon.Vec {
	op := func(name string, a, b neon.Vec) neon.Vec { return r.Op(name, neon.S4, a, b) }
	odd := op("and", r.Shifted(neon.S4, x, -16), r.one)
	v := op("fcmeq", x, x) // lanes without NaN
	r.Into(v, "bsl", neon.S4, op("add", op("add", x, r.half), odd), op("orr", x, r.quiet))
	return op("and", v, op("orr", op("cmtst", x, r.exponent), r.sign)) // only the sign of small numbers
}

func neonRound(k *neon.Func) {
	r := newNeonRounding(k)
	neonCopyOf(k, func(x neon.Vec) { k.Into(x, "and", neon.S4, r.sum(x), r.high) })
}

func neonWiden(k *neon.Func) {
	neonEachRow(k, 4, 2, 4,
		func(neon.GP) {},
		func(r neonRow, i int) {
			at := i * neonLanes * 2
			x, y := k.LoadVec(8, r.from, at), k.LoadVec(8, r.from, at+8)
			k.StoreTwo(k.Raised(x), k.Raised(y), r.to, 2*at)
		},
		func(r neonRow) {
			zero := k.Zero()
			k.StoreTwo(zero, zero, r.to, 0)
			k.Label("single")
			k.StoreVec(4, k.Raised(k.LoadShort(r.from)), r.to, 0)
			k.AddI(r.from, r.from, 2)
			k.AddI(r.to, r.to, 4)
			k.SubsI(r.left, r.left, 1)
			k.Branch("NE", "single")
		})
}

func neonNarrow(k *neon.Func) {
	c := newNeonRounding(k)
	neonEachRow(k, 2, 4, 2,
		func(neon.GP) {},
		func(r neonRow, i int) {
			at := i * neonLanes * 4
			x, y := k.LoadTwo(r.from, at)
			k.StoreVec(8, k.Lowered(c.sum(x)), r.to, at/2)
			k.StoreVec(8, k.Lowered(c.sum(y)), r.to, at/2+8)
		},
		func(r neonRow) {
			k.Label("single")
			k.StoreShort(k.Lowered(c.sum(k.LoadVec(4, r.from, 0))), r.to)
			k.AddI(r.from, r.from, 4)
			k.AddI(r.to, r.to, 2)
			k.SubsI(r.left, r.left, 1)
			k.Branch("NE", "single")
		})
}
