package vec

import "math"

// Rows has the kernels that run along the rows of matrices of rows × width elements. Element i of a row is added to sum
// i%16, and the sums pairwise.
type Rows struct {
	// Softmax sets each row of dst to the softmax of scale·x, or of scale·x + bias unless bias is nil.
	Softmax func(dst, x, bias []float32, scale float32, width, rows int)
	// SoftmaxGrad sets dst to scale·y·(dy − Σ y·dy) for a softmax y. It adds y·(dy − Σ y·dy) to sum unless that is nil.
	SoftmaxGrad func(dst, y, dy, sum []float32, scale float32, width, rows int)
	// SoftmaxPadded and SoftmaxGradPadded are the same with results in x and in dy. Rows of x, y and dy are Padded(width)
	// apart, those of bias and sum width. Weights up to 2^-100 of the largest are 0: they or their products with
	// gradients could be denormal, with which Intel's processors multiply ten times as long.
	SoftmaxPadded     func(x, bias []float32, scale float32, width, rows int)
	SoftmaxGradPadded func(y, dy, sum []float32, scale float32, width, rows int)
	// LayerNorm sets dst to x̂·gain + bias, where x̂ is (x − mean)/√(variance + eps) of a row. gain and bias have width
	// elements.
	LayerNorm func(dst, x, gain, bias []float32, eps float64, width, rows int)
	// LayerNormGrad computes the gradients for a gradient dy of LayerNorm. It sets dst to that of x unless dst is nil,
	// and adds the columns of dy·x̂ to sum, of Padded(width) elements, unless that is nil.
	LayerNormGrad func(dst, x, dy, gain []float32, sum []float64, eps float64, width, rows int)
}

var plainRows = Rows{softmax, softmaxGrad, softmaxPadded, softmaxGradPadded, layerNorm, layerNormGrad}

// along is a sum along a row.
type along [16]float64

func (s *along) total() float64 {
	for n := len(s) / 2; n > 0; n /= 2 {
		for i := range n {
			s[i] += s[i+n]
		}
	}
	return s[0]
}

func softmax(dst, x, bias []float32, scale float32, width, rows int) {
	for at := 0; at < rows*width; at += width {
		softmaxRow(dst[at:][:width], x[at:], rowOf(bias, at/width, width), scale, 0)
	}
}

// softmaxRow sets weights up to least of the largest to 0.
func softmaxRow(y, x, bias []float32, scale, least float32) {
	top := float32(math.Inf(-1))
	for i, v := range x[:len(y)] {
		v = float32(v * scale)
		if bias != nil {
			v += bias[i]
		}
		if y[i] = v; v > top {
			top = v
		}
	}
	var sum along
	for i, v := range y {
		if y[i] = exp(v - top); y[i] <= least {
			y[i] = 0
		}
		sum[i%len(sum)] += float64(y[i])
	}
	f := float32(1 / sum.total())
	for i := range y {
		y[i] *= f
	}
}

func softmaxGrad(dst, y, dy, sum []float32, scale float32, width, rows int) {
	for at := 0; at < rows*width; at += width {
		y, dy, dst := y[at:][:width], dy[at:][:width], dst[at:][:width]
		var dot along
		for i, v := range y {
			dot[i%len(dot)] += float64(v) * float64(dy[i])
		}
		mean := float32(dot.total())
		for i, v := range y {
			d := float32((dy[i] - mean) * v)
			if sum != nil {
				sum[at+i] += d
			}
			dst[i] = d * scale
		}
	}
}

func softmaxPadded(x, bias []float32, scale float32, width, rows int) {
	for r := range rows {
		row := x[r*Padded(width):][:width]
		softmaxRow(row, row, rowOf(bias, r, width), scale, 0x1p-100)
	}
}

func softmaxGradPadded(y, dy, sum []float32, scale float32, width, rows int) {
	for r := range rows {
		at := r * Padded(width)
		softmaxGrad(dy[at:], y[at:], dy[at:], rowOf(sum, r, width), scale, width, 1)
	}
}

// rowOf is row r of x, or nil if x is.
func rowOf(x []float32, r, width int) []float32 {
	if x == nil {
		return nil
	}
	return x[r*width:][:width]
}

// rowMoments returns the mean of a row and 1/√(variance + eps). The sums are float64, so that the square of a mean much
// larger than the standard deviation does not hide the variance.
func rowMoments(x []float32, eps float64) (mean, inverse float64) {
	var first, second along
	for i, v := range x {
		d := float64(v)
		first[i%len(first)] += d
		second[i%len(second)] += d * d
	}
	n := float64(len(x))
	mean = first.total() / n
	return mean, 1 / math.Sqrt(max(second.total()/n-float64(mean*mean), 0)+eps)
}

func layerNorm(dst, x, gain, bias []float32, eps float64, width, rows int) {
	gain, bias = gain[:width], bias[:width]
	for at := 0; at < rows*width; at += width {
		x, y := x[at:][:width], dst[at:][:width]
		m, inv := rowMoments(x, eps)
		mean, inverse := float32(m), float32(inv)
		for i, v := range x {
			y[i] = float32(float32((v-mean)*inverse)*gain[i]) + bias[i]
		}
	}
}

func layerNormGrad(dst, x, dy, gain []float32, sum []float64, eps float64, width, rows int) {
	for at := 0; at < rows*width; at += width {
		x, dy := x[at:][:width], dy[at:][:width]
		m, inv := rowMoments(x, eps)
		mean, inverse := float32(m), float32(inv)
		if sum != nil {
			for i, v := range x {
				sum[i] += float64(float32((v-mean)*inverse) * dy[i])
			}
		}
		if dst == nil {
			continue
		}
		var mixed, total along
		for i, v := range x {
			g := float64(dy[i] * gain[i])
			mixed[i%len(mixed)] += float64(v-mean) * g
			total[i%len(total)] += g
		}
		n, t := float64(width), total.total()
		// The differences were those from a rounded mean.
		all := mixed.total() + float64(t*(float64(mean)-m))
		meanGrad, slope := float32(t/n), float32(float64(all*float64(inv*inv))/n)
		for i, v := range x {
			dst[at+i] = (float32(dy[i]*gain[i]) - meanGrad - float32((v-mean)*slope)) * inverse
		}
	}
}
