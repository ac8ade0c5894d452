package kern

import (
	"math"
	"unsafe"
)

// plain is the kernels in Go.
var plain = Set{
	Dots:      [Most]dots{plainDots(1), plainDots(2), plainDots(3), plainDots(4)},
	AddRows:   [Most]addRows{plainAddRows(1), plainAddRows(2), plainAddRows(3), plainAddRows(4)},
	CodedDots: [Most]codedDots{codedDotsPlain(1), codedDotsPlain(2), codedDotsPlain(3), codedDotsPlain(4)},
	CodedAddRows: [Most]codedAddRows{codedAddRowsPlain(1), codedAddRowsPlain(2), codedAddRowsPlain(3),
		codedAddRowsPlain(4)},
	SparseDots:    sparseDotsPlain,
	SparseAddRows: sparseAddRowsPlain,
	StripDots:     stripDotsPlain,
	StripAddRows:  stripAddRowsPlain,
	StripSums: func(out *float64, columns *uint16, counts *uint32, w *float64, rows int) {
		stripDotsPlain(out, nil, columns, counts, w, rows)
	},
	StripAdds: func(dst *float64, columns *uint16, counts *uint32, a *float64, rows int) {
		stripAddRowsPlain(dst, nil, columns, counts, a, rows)
	},
	Logistic: func(z, old, y *float64, a, b float64, rows int) float64 {
		return losses(logistic, nil, z, old, y, a, b, rows)
	},
	Squares: func(z, old, y *float64, a, b float64, rows int) float64 {
		return losses(squares, nil, z, old, y, a, b, rows)
	},
	LogisticSlopes: func(to, z, old, y *float64, a, b float64, rows int) float64 {
		return losses(logistic, slice(to, rows), z, old, y, a, b, rows)
	},
	SquaresSlopes: func(to, z, old, y *float64, a, b float64, rows int) float64 {
		return losses(squares, slice(to, rows), z, old, y, a, b, rows)
	},
	Dot:          func(x, w *float64, d int) float64 { return dot(slice(x, d), slice(w, d)) },
	Combine2:     combine2Plain,
	Combine3:     combine3Plain,
	SAGAStep:     sagaStepPlain,
	Mix:          mixPlain,
	KatyushaStep: katyushaStepPlain,
}

func slice[T any](p *T, n int) []T { return unsafe.Slice(p, n) }

// dot has four sums, since each addition would wait for the one before.
func dot(x, w []float64) float64 {
	var s0, s1, s2, s3 float64
	w = w[:len(x)]
	j := 0
	for ; j+4 <= len(x); j += 4 {
		a, b := x[j:j+4:j+4], w[j:j+4:j+4]
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
	}
	for ; j < len(x); j++ {
		s0 += x[j] * w[j]
	}
	return (s0 + s1) + (s2 + s3)
}

func plainDots(n int) dots {
	return func(out, x, w *float64, d, stride, rows, width, pitch int) {
		to, from, vectors := slice(out, (n-1)*pitch+rows), slice(x, (rows-1)*stride+d), slice(w, n*width)
		for i := range rows {
			row := from[i*stride : i*stride+d]
			for k := range n {
				to[k*pitch+i] = dot(row, vectors[k*width:k*width+d])
			}
		}
	}
}

// plainAddRows goes over four rows at a time, since each pass reads and writes dst.
func plainAddRows(n int) addRows {
	return func(dst, x, a *float64, d, stride, rows, width, pitch, _ int) {
		to, from, scale := slice(dst, n*width), slice(x, (rows-1)*stride+d), slice(a, (n-1)*pitch+rows)
		for k := range n {
			sum, s := to[k*width:k*width+d], scale[k*pitch:k*pitch+rows]
			i := 0
			for ; i+4 <= rows; i += 4 {
				x0, x1 := from[i*stride:][:len(sum)], from[(i+1)*stride:][:len(sum)]
				x2, x3 := from[(i+2)*stride:][:len(sum)], from[(i+3)*stride:][:len(sum)]
				s0, s1, s2, s3 := s[i], s[i+1], s[i+2], s[i+3]
				for j := range sum {
					sum[j] += (s0*x0[j] + s1*x1[j]) + (s2*x2[j] + s3*x3[j])
				}
			}
			for ; i < rows; i++ {
				for j, v := range from[i*stride:][:len(sum)] {
					sum[j] += s[i] * v
				}
			}
		}
	}
}

func sparseDotsPlain(out, values *float64, index *int32, start *int, w *float64, rows, pitch int) {
	to, starts := slice(out, 3*pitch+rows), slice(start, rows+1)
	columns, x := slice(index, starts[rows]), slice(values, starts[rows])
	for i := range rows {
		var s0, s1, s2, s3 float64
		for k := starts[i]; k < starts[i+1]; k++ {
			v, q := x[k], (*[Quad]float64)(unsafe.Add(unsafe.Pointer(w), 32*int(columns[k])))
			s0 += v * q[0]
			s1 += v * q[1]
			s2 += v * q[2]
			s3 += v * q[3]
		}
		to[i], to[pitch+i], to[2*pitch+i], to[3*pitch+i] = s0, s1, s2, s3
	}
}

func sparseAddRowsPlain(dst, values *float64, index *int32, start *int, a *float64, rows, pitch int) {
	from, starts := slice(a, 3*pitch+rows), slice(start, rows+1)
	columns, x := slice(index, starts[rows]), slice(values, starts[rows])
	for i := range rows {
		s0, s1, s2, s3 := from[i], from[pitch+i], from[2*pitch+i], from[3*pitch+i]
		for k := starts[i]; k < starts[i+1]; k++ {
			v, q := x[k], (*[Quad]float64)(unsafe.Add(unsafe.Pointer(dst), 32*int(columns[k])))
			q[0] += v * s0
			q[1] += v * s1
			q[2] += v * s2
			q[3] += v * s3
		}
	}
}

// quadAt is the four elements of a column of a strip.
func quadAt(p *float64, column uint16) *[Quad]float64 {
	return (*[Quad]float64)(unsafe.Add(unsafe.Pointer(p), 8*int(column)))
}

// stripDotsPlain has values of 1 where values is nil.
func stripDotsPlain(out, values *float64, columns *uint16, counts *uint32, w *float64, rows int) {
	to, at := slice(out, Quad*rows), 0
	for i, c := range slice(counts, rows) {
		v := 1.0
		var s0, s1, s2, s3 float64
		for k := range 4 * int(c) {
			if values != nil {
				v = *(*float64)(unsafe.Add(unsafe.Pointer(values), 8*(at+k)))
			}
			q := quadAt(w, *(*uint16)(unsafe.Add(unsafe.Pointer(columns), 2*(at+k))))
			s0 += v * q[0]
			s1 += v * q[1]
			s2 += v * q[2]
			s3 += v * q[3]
		}
		at += 4 * int(c)
		sum := to[Quad*i : Quad*i+4 : Quad*i+4]
		sum[0] += s0
		sum[1] += s1
		sum[2] += s2
		sum[3] += s3
	}
}

// stripAddRowsPlain has values of 1 where values is nil.
func stripAddRowsPlain(dst, values *float64, columns *uint16, counts *uint32, a *float64, rows int) {
	from, at := slice(a, Quad*rows), 0
	for i, c := range slice(counts, rows) {
		v, s := 1.0, from[Quad*i:Quad*i+4:Quad*i+4]
		for k := range 4 * int(c) {
			if values != nil {
				v = *(*float64)(unsafe.Add(unsafe.Pointer(values), 8*(at+k)))
			}
			q := quadAt(dst, *(*uint16)(unsafe.Add(unsafe.Pointer(columns), 2*(at+k))))
			q[0] += v * s[0]
			q[1] += v * s[1]
			q[2] += v * s[2]
			q[3] += v * s[3]
		}
		at += 4 * int(c)
	}
}

func logistic(z, y float64) (value, slope float64) {
	m := y * z
	e := math.Exp(-math.Abs(m))
	if m > 0 {
		return math.Log1p(e), -y * e / (1 + e)
	}
	return math.Log1p(e) - m, -y / (1 + e)
}

func squares(z, y float64) (value, slope float64) { return (z - y) * (z - y) / 2, z - y }

func losses(loss func(z, y float64) (value, slope float64), slopes []float64, z, old, y *float64, a, b float64,
	rows int) float64 {
	now, before, targets := slice(z, rows), slice(old, rows), slice(y, rows)
	sum := 0.0
	for i, v := range now {
		value, slope := loss(a*v+b*before[i], targets[i])
		sum += value
		if slopes != nil {
			slopes[i] = slope
		}
	}
	return sum
}

func combine2Plain(dst, x *float64, a, b float64, d int) {
	to, from := slice(dst, d), slice(x, d)
	for j, v := range to {
		to[j] = a*v + b*from[j]
	}
}

func combine3Plain(dst, x, y *float64, a, b, c float64, d int) {
	to, p, q := slice(dst, d), slice(x, d), slice(y, d)
	for j, v := range to {
		to[j] = a*v + b*p[j] + c*q[j]
	}
}

func sagaStepPlain(w, mean, x *float64, a, b, c, e float64, d int) {
	to, m, row := slice(w, d), slice(mean, d), slice(x, d)
	for j, v := range row {
		to[j] = a*to[j] + b*m[j] + c*v
		m[j] += e * v
	}
}

func mixPlain(dst, x, y, z *float64, a, b, c float64, d int) {
	to, p, q, r := slice(dst, d), slice(x, d), slice(y, d), slice(z, d)
	for j := range to {
		to[j] = a*p[j] + b*q[j] + c*r[j]
	}
}

func katyushaStepPlain(z, y, mean, x, g *float64, alpha, shrinkZ, short, shrinkY, weight float64, d int) {
	zs, ys, ms, xs := slice(z, d), slice(y, d), slice(mean, d), slice(x, d)
	for j, v := range slice(g, d) {
		zs[j] = (zs[j] - alpha*v) * shrinkZ
		ys[j] = (xs[j] - short*v) * shrinkY
		ms[j] += weight * (ys[j] - ms[j])
	}
}
