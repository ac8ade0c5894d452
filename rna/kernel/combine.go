package kernel

import "unsafe"

// A Combination is Σ coef[k]·v[k] over vectors of one format. It may be used by one goroutine at a time.
type Combination struct {
	ops    *ops
	size   int
	coef   []float64
	copies [4][]byte
}

// NewCombination makes a combination with the given coefficients.
func NewCombination(f Format, coef []float64) *Combination {
	return &Combination{ops: &current.Load().format[f], size: f.Size(), coef: coef}
}

// Sum sets row, of up to [Run] elements, to the combination of elements [at, at+len(row)) of the vectors. It adds up in
// their order, beginning with the first product rather than with 0, which would lose the sign of −0.
func (c *Combination) Sum(row []float64, vs [][]byte, at int) {
	if len(c.coef) == 0 {
		clear(row)
		return
	}
	whole := len(row) / group * group
	c.sum(row[:whole], vs, at, whole)
	if n := len(row) - whole; n > 0 {
		var rest [group]float64
		c.sum(rest[:], vs, at+whole, n)
		copy(row[whole:], rest[:n])
	}
}

// sum is Sum for a row of whole groups, of which n elements are there.
func (c *Combination) sum(row []float64, vs [][]byte, at, n int) {
	if n == 0 {
		return
	}
	var v [5]*byte
	var next [4]uintptr
	var coef [4]float64
	for k := 0; k < len(vs); {
		count := 1
		if k > 0 && len(vs)-k >= 4 {
			count = 4
		}
		// While these are read the ones to be read next are fetched.
		following := k + count
		for i := range count {
			if c.copies[i] == nil {
				c.copies[i] = make([]byte, 8*Run)
			}
			v[i], coef[i] = place(vs[k+i], at, n, len(row), c.size, c.copies[i]), c.coef[k+i]
			j, later := following+i, at
			if j >= len(vs) {
				j, later = j%len(vs), at+len(row)
			}
			next[i] = fetch(vs[j], later, c.size)
		}
		switch {
		case k == 0:
			c.ops.scale(row, &v, &next, &coef)
		case count == 1:
			c.ops.add(row, &v, &next, &coef)
		default:
			c.ops.addFour(row, &v, &next, &coef)
		}
		k += count
	}
}

// fetch is the address of element i of v, which need not be there: it is prefetched only.
func fetch(v []byte, i, size int) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(v))) + uintptr(i*size)
}
