package main

import (
	"fmt"
	"log"
	"strings"

	"onlinerna/internal/simd/gen/neon"
)

// neonLanes is the number of lanes of a NEON register.
const neonLanes = 2

// writeNEON writes the kernels for arm64.
func writeNEON() {
	f := neon.New("kern")
	for n := 1; n <= most; n++ {
		for _, e := range []element{floats, coded} {
			neonDots(f, n, e)
			neonAddRows(f, n, e)
		}
	}
	neonLosses(f)
	neonStreams(f)
	neonSparse(f)
	neonStrips(f)
	if err := f.Write("kernels_arm64.s", "stubs_arm64.go", ""); err != nil {
		log.Fatal(err)
	}
}

// neonRows is a kernel over the rows of a matrix and n vectors, several rows at a time.
type neonRows struct {
	*neon.Func
	element
	codes    *neonCodes
	n        int
	together int
	x        []neon.GP // rows, at the current columns
	beside   []neon.GP // vectors, likewise
	numbers  []neon.GP // the numbers of each vector for the current rows
	ahead    neon.GP   // bytes to the next rows, of float64s
}

// neonKernel writes a kernel; vectors and numbers are names of arguments.
func neonKernel(f *neon.File, name string, n int, e element, vectors, numbers, arguments string,
	block func(k *neonRows, label string)) {
	if e.coded() {
		name = e.prefix + strings.ToUpper(name[:1]) + name[1:]
	}
	f.Func(fmt.Sprintf("%s%dNEON", name, n), fmt.Sprintf(arguments, e.kind), func(fn *neon.Func) {
		k := &neonRows{Func: fn, element: e, n: n}
		if e.coded() {
			k.codes = newNEONCodes(fn)
		}
		x, number, count := k.Arg("x"), k.Arg(numbers), k.Arg("rows")
		beside := func(list *[]neon.GP, first neon.GP, step string, size, n int) {
			*list = []neon.GP{k.Copy(first)}
			by := k.Arg(step)
			for len(*list) < n {
				next := k.Copy(first)
				k.AddShift(next, (*list)[len(*list)-1], by, map[int]int{2: 1, 8: 3}[size])
				*list = append(*list, next)
			}
		}
		together := 4
		if e.coded() && n > 2 {
			together = 2
		}
		for _, k.together = range []int{together, 1} {
			label := fmt.Sprintf("rows%d", k.together)
			k.Turns(label, count, k.together, func() {
				beside(&k.x, x, "stride", e.size, k.together+1)
				k.Set(x, k.x[k.together])
				beside(&k.beside, k.Arg(vectors), "width", 8, n)
				beside(&k.numbers, number, "pitch", 8, n)
				block(k, label)
				k.AddI(number, number, 8*k.together)
			})
		}
		k.Ret()
	})
}

// along loops over the columns. body handles units registers at a time; bytes is less than a full register in the last
// columns.
func (k *neonRows) along(label string, unroll int, body func(units, bytes int)) {
	left := k.Arg("d")
	loop := func(label string, units, bytes int) {
		columns := units * bytes / 8
		k.Turns(label, left, columns, func() {
			body(units, bytes)
			for _, p := range k.x[:k.together] {
				k.AddI(p, p, columns*k.size)
			}
			for _, p := range k.beside {
				k.AddI(p, p, columns*8)
			}
		})
	}
	if k.coded() {
		loop(label+"Block", codeBlock/neonLanes, neon.Bytes)
		return
	}
	loop(label+"Wide", unroll, neon.Bytes)
	if unroll > 1 {
		loop(label+"One", 1, neon.Bytes)
	}
	loop(label+"Last", 1, 8)
}

// neonColumn is the first column, in its step, of unit u.
func (k *neonRows) neonColumn(u int) int {
	if k.coded() {
		return u%codeWords*codeLanes + u/codeWords*neonLanes
	}
	return u * neonLanes
}

// reader returns the function that loads unit u of row r at the current columns. Callers request the units of a row in
// order.
func (k *neonRows) reader(bytes int) func(r, u int) neon.Vec {
	raw := make([]neon.Vec, k.together)
	return func(r, u int) neon.Vec {
		if !k.coded() {
			return k.LoadVec(bytes, k.x[r], u*neon.Bytes)
		}
		if u%codeWords == 0 {
			raw[r] = k.LoadVec(bytes, k.x[r], u/codeWords*neon.Bytes)
		}
		return k.codes.decode(raw[r], u%codeWords)
	}
}

// neonDots writes the NEON version of dots.
func neonDots(f *neon.File, n int, e element) {
	neonKernel(f, "dots", n, e, "w", "out", "(out *float64, x *%s, w *float64, d, stride, rows, width, pitch int)",
		func(k *neonRows, label string) {
			unroll := max(1, 16/(k.n*4))
			if k.coded() {
				unroll = 1
			}
			sums := make([][]neon.Vec, unroll*n)
			for i := range sums {
				for range k.together {
					sums[i] = append(sums[i], k.Zero())
				}
			}
			k.along(label, unroll, func(units, bytes int) {
				load := k.reader(bytes)
				for u := range units {
					w := make([]neon.Vec, n)
					for i := range w {
						w[i] = k.LoadVec(bytes, k.beside[i], 8*k.neonColumn(u))
					}
					for r := range k.together {
						v := load(r, u)
						for i := range w {
							k.Into(sums[u%unroll*n+i][r], "fmla", neon.D2, v, w[i])
						}
					}
				}
			})
			for i := range n {
				for r, sum := range sums[i] {
					for u := 1; u < unroll; u++ {
						k.Into(sum, "fadd", neon.D2, sum, sums[u*n+i][r])
					}
					k.StoreVec(8, k.Pair(sum), k.numbers[i], 8*r)
				}
			}
		})
}

// neonAddRows writes the NEON version of addRows.
func neonAddRows(f *neon.File, n int, e element) {
	arguments := "(dst *float64, x *%s, a *float64, d, stride, rows, width, pitch, ahead int)"
	if e.coded() {
		arguments = strings.Replace(arguments, ", ahead", "", 1)
	}
	neonKernel(f, "addRows", n, e, "dst", "a", arguments, func(k *neonRows, label string) {
		scale := make([][]neon.Vec, n) // two rows in a register
		for i := range scale {
			for r := 0; r < k.together; r += 2 {
				scale[i] = append(scale[i], k.LoadVec(min(neon.Bytes, 8*(k.together-r)), k.numbers[i], 8*r))
			}
		}
		if !k.coded() {
			k.ahead = k.Arg("ahead")
			k.Shift(k.ahead, k.ahead, 3)
		}
		k.along(label, 2, func(units, bytes int) {
			if !k.coded() && units > 1 {
				for _, p := range k.x[:k.together] {
					k.FetchAt(p, k.ahead)
				}
			}
			load := k.reader(bytes)
			for u := range units {
				sums := make([]neon.Vec, n)
				for i := range sums {
					sums[i] = k.LoadVec(bytes, k.beside[i], 8*k.neonColumn(u))
				}
				for r := range k.together {
					v := load(r, u)
					for i := range sums {
						k.AddTimes(sums[i], neon.D2, v, scale[i][r/2], r%2)
					}
				}
				for i := range sums {
					k.StoreVec(bytes, sums[i], k.beside[i], 8*k.neonColumn(u))
				}
			}
		})
	})
}

// neonCodes decodes codes: it puts a code into a word of a large power of two, which adds the code to the number;
// subtracting the power is exact.
type neonCodes struct {
	*neon.Func
	magic, zero, word [codeWords - 1]neon.Vec
}

func newNEONCodes(k *neon.Func) *neonCodes {
	c := &neonCodes{Func: k}
	for i, exponent := range exponents {
		power := float64(uint64(1) << exponent)
		c.magic[i], c.zero[i], c.word[i] = k.Number(neon.D2, power), k.Number(neon.D2, power+codeOffset),
			k.Bits(neon.D2, 0xffff<<(16*i))
	}
	return c
}

func (c *neonCodes) decode(raw neon.Vec, word int) neon.Vec {
	if word == codeWords-1 { // the word of the exponent
		x := c.Op("orr", neon.D2, c.Shifted(neon.D2, raw, -48), c.magic[0])
		return c.Op("fsub", neon.D2, x, c.zero[0])
	}
	x := c.Same(c.magic[word])
	c.Into(x, "bit", neon.D2, raw, c.word[word])
	return c.Op("fsub", neon.D2, x, c.zero[word])
}
