package vec

// The summed squares and products are exact in float64: fusing by the compiler does not change them.

func sums(sum []float64, x []float32, width, stride, rows int) {
	sum = sum[:width]
	for r := range rows {
		for c, v := range x[r*stride:][:width] {
			sum[c] += float64(v)
		}
	}
}

func moments(sum, squares []float64, x []float32, width, stride, rows int) {
	sum, squares = sum[:width], squares[:width]
	for r := range rows {
		for c, v := range x[r*stride:][:width] {
			d := float64(v)
			sum[c] += d
			squares[c] += d * d
		}
	}
}

func gradSums(scale, bias []float64, x, dy, mean []float32, width, stride, rows int) {
	scale, bias, mean = scale[:width], bias[:width], mean[:width]
	for r := range rows {
		x := x[r*stride:][:width]
		for c, v := range dy[r*stride:][:width] {
			g := float64(v)
			scale[c] += g * float64(x[c]-mean[c])
			bias[c] += g
		}
	}
}

func reluGradSums(scale, bias []float64, x, dy, y, from, mean []float32, width, stride, rows int) {
	for r := range rows {
		at := r * stride
		row := dy[at:][:width]
		reluGrad(row, y[at:], from[at:])
		gradSums(scale, bias, x[at:], row, mean, width, stride, 1)
	}
}

func addReLUGradSums(scale, bias []float64, x, dy, y, from, more, mean []float32, width, stride, rows int) {
	for r := range rows {
		at := r * stride
		row := dy[at:][:width]
		y, from, more := y[at:][:width], from[at:][:width], more[at:][:width]
		for c, v := range y {
			row[c] = passed(v, from[c]+more[c])
		}
		gradSums(scale, bias, x[at:], row, mean, width, stride, 1)
	}
}
