package main

import (
	"fmt"
	"log"
	"math"

	"onlinerna/internal/simd/gen/neon"
)

const (
	neonLanes = 2 // of a register
	neonUnit  = 4 // elements that are widened at a time, to two registers
	neonTile  = 5 // rows of a square of products that registers hold
)

// neonConversions writes the arm64 kernels of convert.
func neonConversions() {
	f := neon.New("convert")
	for _, g := range formats {
		neonRows(f, g, setters[neonPair]()[:1])
		if g.size != 8 { // that is a copy
			neonNarrow(f, g)
		}
	}
	for _, g := range formats[:2] {
		neonLargest(f, g, false)
		neonLargest(f, g, true)
	}
	write(f)
}

// neonProducts writes the arm64 kernels of rna/kernel.
func neonProducts() {
	f := neon.New("kernel")
	for _, g := range formats {
		neonRows(f, g, setters[neonPair]()[1:])
		neonResiduals(f, g)
		neonCombinations(f, g)
	}
	neonProduct(f, "square", false)
	neonProduct(f, "triangle", true)
	write(f)
}

func write(f *neon.File) {
	if err := f.Write("kernels_arm64.s", "stubs_arm64.go", ""); err != nil {
		log.Fatal(err)
	}
}

// neonStream is a kernel that runs along a row of float64 and, from byte off on, along several vectors. It also
// prefetches the next data.
type neonStream struct {
	*neon.Func
	format
	row  neon.GP
	v    []neon.GP
	unit int
	coef neonPair // coefficients, as lanes
}

type neonPair = [2]neon.Vec

// load widens the current unit of vector i.
func (k *neonStream) load(i int) neonPair {
	at, size := k.v[i], neonUnit*k.size
	x := k.LoadVec(min(size, neon.Bytes), at, k.unit*size)
	switch k.name {
	case "Float64":
		return neonPair{x, k.LoadVec(neon.Bytes, at, k.unit*size+neon.Bytes)}
	case "Float16":
		x = k.Halves(x)
	case "BFloat16":
		x = k.Raised(x)
	}
	return k.Doubles(x)
}

func (k *neonStream) rowAt(i, half int) int { return i*pitch + k.unit*8*neonUnit + half*neon.Bytes }

func (k *neonStream) set(i int, x neonPair) {
	for half, v := range x {
		k.StoreVec(neon.Bytes, v, k.row, k.rowAt(i, half))
	}
}

func (k *neonStream) get() (x neonPair) {
	for half := range x {
		x[half] = k.LoadVec(neon.Bytes, k.row, k.rowAt(0, half))
	}
	return x
}

func (k *neonStream) sub(x, y neonPair) neonPair {
	return neonPair{k.Op("fsub", neon.D2, x[0], y[0]), k.Op("fsub", neon.D2, x[1], y[1])}
}

func (k *neonStream) addTimes(y neonPair, i int, x neonPair) {
	for half := range y {
		k.AddTimes(y[half], neon.D2, x[half], k.coef[i/2], i%2)
	}
}

// neonRun writes a kernel over the given number of vectors.
func neonRun(f *neon.File, g format, name, args string, vectors int, begin, body, end func(k *neonStream)) {
	f.Func(name+g.name+"NEON", "(row []float64, v *[5]*byte, next *[4]uintptr, off int"+args+")", func(fn *neon.Func) {
		k := &neonStream{Func: fn, format: g, row: fn.Arg("row_base")}
		n, off := k.Arg("row_len"), k.Arg("off")
		from := func(name string, i int) neon.GP {
			p := k.Load(k.Arg(name), 8*i)
			k.Add(p, p, off)
			return p
		}
		for i := range vectors {
			k.v = append(k.v, from("v", i))
		}
		var next []neon.GP
		for i := range min(vectors, 4) {
			next = append(next, from("next", i))
		}
		begin(k)
		k.SubsI(n, n, group)
		k.Branch("LT", "done")
		k.Label("loop")
		for at := 0; at < group*g.size; at += line {
			for _, p := range next {
				k.Fetch(p, at)
			}
		}
		for k.unit = range group / neonUnit {
			body(k)
		}
		k.AddI(k.row, k.row, 8*group)
		for _, p := range append(next, k.v...) {
			k.AddI(p, p, g.size*group)
		}
		k.SubsI(n, n, group)
		k.Branch("GE", "loop")
		k.Label("done")
		end(k)
		k.Ret()
	})
}

// neonRows writes the NEON version of rows.
func neonRows(f *neon.File, g format, list []setter[neonPair]) {
	nothing := func(*neonStream) {}
	for _, s := range list {
		neonRun(f, g, s.name, "", s.vectors, nothing, func(k *neonStream) { s.body(k) }, nothing)
	}
}

// neonResiduals writes the NEON version of residuals.
func neonResiduals(f *neon.File, g format) {
	if g.size < 4 {
		return
	}
	for _, d := range dots[neonPair]() {
		const parts = sumLanes / neonLanes
		sums := make([]neon.Vec, d.products*parts)
		neonRun(f, g, d.name, fmt.Sprintf(", sums *[%d]float64", 4*sumLanes), d.vectors, func(k *neonStream) {
			table := k.Arg("sums")
			for i := 0; i < len(sums); i += 2 {
				sums[i], sums[i+1] = k.LoadTwo(table, i*neon.Bytes)
			}
		}, func(k *neonStream) {
			row := k.get()
			d.residuals(k, func(i int, x neonPair) {
				for half, x := range x {
					k.Into(sums[i*parts+(2*k.unit+half)%parts], "fmla", neon.D2, x, row[half])
				}
			})
		}, func(k *neonStream) {
			table := k.Arg("sums")
			for i := 0; i < len(sums); i += 2 {
				k.StoreTwo(sums[i], sums[i+1], table, i*neon.Bytes)
			}
		})
	}
}

// neonCombinations writes the NEON version of combinations.
func neonCombinations(f *neon.File, g format) {
	for i, name := range adders {
		neonRun(f, g, name, ", coef *[4]float64", i+1, func(k *neonStream) {
			k.coef[0], k.coef[1] = k.LoadTwo(k.Arg("coef"), 0)
		}, func(k *neonStream) { addMultiples(k, i+1) }, func(*neonStream) {})
	}
}

// neonProduct writes the NEON version of product, for two lanes at a time.
func neonProduct(f *neon.File, name string, lower bool) {
	f.Func(name+"NEON", "(sums, a, b *float64, n int, next *[4]uintptr, off, step int)", func(k *neon.Func) {
		var fetched [4]neon.GP
		sums, step := k.Arg("sums"), k.Arg("step")
		for i := range fetched {
			fetched[i] = k.Load(k.Arg("next"), 8*i)
			k.Add(fetched[i], fetched[i], k.Arg("off"))
		}
		for part := range sumLanes / neonLanes {
			n := k.Arg("n")
			// rows returns the addresses of the rows from an argument on.
			rows := func(name string) (list []neon.GP) {
				for i := range neonTile {
					row := k.Arg(name)
					k.AddI(row, row, i*pitch+part*neon.Bytes)
					list = append(list, row)
				}
				return list
			}
			b := rows("b")
			a := b
			if !lower {
				a = rows("a")
			}
			acc := map[[2]int]neon.Vec{}
			each := func(do func(i, j, at int)) {
				for i := range neonTile {
					for j := range neonTile {
						if !lower || j <= i {
							do(i, j, (i*neonTile+j)*8*sumLanes+part*neon.Bytes)
						}
					}
				}
			}
			each(func(i, j, at int) { acc[[2]int{i, j}] = k.LoadVec(neon.Bytes, sums, at) })
			loop := fmt.Sprintf("loop%d", part)
			k.Label(loop)
			for u := range group / sumLanes {
				row := func(base neon.GP) neon.Vec { return k.LoadNear(neon.Bytes, base, u*8*sumLanes) }
				var right [neonTile]neon.Vec
				for j := range right {
					right[j] = row(b[j])
				}
				left, last := neon.Vec{}, -1
				each(func(i, j, _ int) {
					if i != last {
						left, last = right[i], i
						if !lower {
							left = row(a[i])
						}
					}
					k.Into(acc[[2]int{i, j}], "fmla", neon.D2, left, right[j])
				})
			}
			if part == 0 {
				for _, p := range fetched {
					k.Fetch(p, 0)
					k.Add(p, p, step)
				}
			}
			for i := range neonTile {
				k.AddI(b[i], b[i], 8*group)
				if !lower {
					k.AddI(a[i], a[i], 8*group)
				}
			}
			k.SubsI(n, n, group)
			k.Branch("GT", loop)
			each(func(i, j, at int) { k.StoreVec(neon.Bytes, acc[[2]int{i, j}], sums, at) })
		}
		k.Ret()
	})
}

// neonNarrow writes the NEON version of narrow. 16-bit elements are first rounded to odd 32-bit ones. It stops at a
// group that has a too large element.
func neonNarrow(f *neon.File, g format) {
	f.Func("narrow"+g.name+"NEON", "(dst *byte, row []float64) int", func(k *neon.Func) {
		dst, row, n := k.Arg("dst"), k.Arg("row_base"), k.Arg("row_len")
		var magnitude, below, half, one neon.Vec
		if g.size == 2 {
			limit := math.Float64bits(65520)
			if g.name == "BFloat16" {
				limit = math.Float64bits(0x1.ffp127)
				half, one = k.Bits(neon.S4, 1<<15-1), k.Bits(neon.S4, 1)
			}
			magnitude, below = k.Bits(neon.D2, 1<<63-1), k.Bits(neon.D2, limit-1)
		}
		k.SubsI(n, n, group)
		k.Branch("LT", "done")
		k.Label("loop")
		var values []neon.Vec
		for at := 0; at < 8*group; at += 2 * neon.Bytes {
			lo, hi := k.LoadTwo(row, at)
			values = append(values, lo, hi)
		}
		if g.size == 2 {
			large := k.Zero()
			for _, v := range values {
				k.Into(large, "orr", neon.D2, large, k.Op("cmhi", neon.D2, k.Op("and", neon.D2, v, magnitude), below))
			}
			k.IfNot(k.Word(k.LargestInt(large)), "done")
		}
		for i := range group / neonUnit {
			lo, hi := values[2*i], values[2*i+1]
			switch g.name {
			case "Float32":
				k.StoreVec(16, k.Singles(lo, hi), dst, 16*i)
			case "Float16":
				k.StoreVec(8, k.HalvesOf(k.OddSingles(lo, hi)), dst, 8*i)
			default: // to even: add half a unit, less 1 if the lowest bit is 0, and drop the rest
				x := k.OddSingles(lo, hi)
				odd := k.Op("and", neon.S4, k.Shifted(neon.S4, x, -16), one)
				x = k.Op("add", neon.S4, k.Op("add", neon.S4, x, half), odd)
				k.StoreVec(8, k.Lowered(x), dst, 8*i)
			}
		}
		k.AddI(row, row, 8*group)
		k.AddI(dst, dst, g.size*group)
		k.SubsI(n, n, group)
		k.Branch("GE", "loop")
		k.Label("done")
		k.AddI(n, n, group)
		count := k.Arg("row_len")
		k.Sub(count, count, n)
		k.Return(count)
	})
}

// neonLargest writes the NEON version of largest.
func neonLargest(f *neon.File, g format, copies bool) {
	const ahead = 4 << 10
	name, args := "largest", "(top *[8]uint64, x *byte, n int)"
	if copies {
		name, args = "copyLargest", "(top *[8]uint64, dst, x *byte, n int)"
	}
	f.Func(name+g.name+"NEON", args, func(k *neon.Func) {
		top, x, n := k.Arg("top"), k.Arg("x"), k.Arg("n")
		var dst neon.GP
		if copies {
			dst = k.Arg("dst")
		}
		shape := neon.D2
		if g.size == 4 {
			shape = neon.S4
		}
		sign := k.Bits(shape, 1<<(8*g.size-1))
		var most []neon.Vec
		for i := range line / neon.Bytes {
			most = append(most, k.LoadVec(neon.Bytes, top, i*neon.Bytes))
		}
		k.SubsI(n, n, group)
		k.Branch("LT", "done")
		k.Label("loop")
		for at := 0; at < group*g.size; at += neon.Bytes {
			if at%line == 0 {
				k.Fetch(x, at+ahead)
			}
			v, m := k.LoadVec(neon.Bytes, x, at), most[at/neon.Bytes%len(most)]
			if copies {
				k.StoreVec(neon.Bytes, v, dst, at)
			}
			v = k.Op("bic", shape, v, sign)
			if g.size == 4 {
				k.Into(m, "umax", shape, m, v)
			} else {
				k.Into(m, "bit", shape, v, k.Op("cmhi", shape, v, m))
			}
		}
		k.AddI(x, x, group*g.size)
		if copies {
			k.AddI(dst, dst, group*g.size)
		}
		k.SubsI(n, n, group)
		k.Branch("GE", "loop")
		k.Label("done")
		for i, m := range most {
			k.StoreVec(neon.Bytes, m, top, i*neon.Bytes)
		}
		k.Ret()
	})
}
