package kernel

import (
	"math"
	"unsafe"

	"onlinerna/internal/simd/convert"
)

// A Combination is Σ coef[k]·v[k] over vectors of one format. It may be used by one goroutine at a time.
type Combination struct {
	ops    *ops
	size   int
	coef   []float64
	copies [4][]byte
}

// NewCombination makes a combination with the given coefficients.
func NewCombination(f convert.Format, coef []float64) *Combination {
	return &Combination{ops: &sets[active].format[f], size: f.Size(), coef: coef}
}

// negatives are −0, to which products that are −0 add up to −0.
var negatives = func() (row [Run]float64) {
	for i := range row {
		row[i] = math.Copysign(0, -1)
	}
	return row
}()

// Sum sets row, of up to [Run] elements, to the combination of elements [at, at+len(row)) of the vectors. It adds up in
// their order.
func (c *Combination) Sum(row []float64, vs [][]byte, at int) {
	if copy(row, negatives[:]); len(c.coef) == 0 {
		clear(row)
	}
	whole := len(row) / group * group
	c.sum(row[:whole], vs, at, whole)
	if n := len(row) - whole; n > 0 {
		var rest [group]float64
		copy(rest[:], row[whole:])
		c.sum(rest[:], vs, at+whole, n)
		copy(row[whole:], rest[:n])
	}
}

// sum adds to a row of whole groups, n of whose elements are real.
func (c *Combination) sum(row []float64, vs [][]byte, at, n int) {
	if n == 0 {
		return
	}
	var v [5]*byte
	var next [4]uintptr
	var coef [4]float64
	for k := 0; k < len(vs); k += 4 {
		count := min(4, len(vs)-k)
		for i := range count {
			if c.copies[i] == nil {
				c.copies[i] = bytesOf(make([]float64, Run))
			}
			v[i], coef[i] = place(vs[k+i], at, n, len(row), c.size, c.copies[i]), c.coef[k+i]
			// The next elements are prefetched while these are read.
			j, later := k+count+i, at
			if j >= len(vs) {
				j, later = i, at+len(row)
			}
			next[i] = fetch(vs[j], later, c.size)
		}
		c.ops.add[count-1](row, &v, &next, 0, &coef)
	}
}

// fetch is the address of element i of v. It may lie past the end, since it is only prefetched.
func fetch(v []byte, i, size int) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(v))) + uintptr(i*size)
}

// place is where elements [at, at+n) of x lie, or a copy in buf where they have to be aligned or filled up to count.
func place(x []byte, at, n, count, size int, buf []byte) *byte {
	part := x[at*size : (at+n)*size]
	p := unsafe.SliceData(part)
	if n == count && uintptr(unsafe.Pointer(p))%uintptr(size) == 0 {
		return p
	}
	clear(buf[copy(buf, part) : count*size])
	return unsafe.SliceData(buf)
}
