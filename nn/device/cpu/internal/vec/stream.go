package vec

import "math"

// plain has the kernels in Go. Conversions to float32 keep the compiler from fusing multiplications and additions.
var plain = Set{
	ReLU:             relu,
	ReLUGrad:         reluGrad,
	Add:              add,
	Normalize:        normalize,
	NormalizeReLU:    normalizeReLU,
	NormalizeAdd:     normalizeAdd,
	NormalizeAddReLU: normalizeAddReLU,
	NormalizeAct: normalizeActs{
		SiLU: normalizedBy(silu), Hardswish: normalizedBy(hardswish), ReLU6: normalizedBy(relu6)},
	NormalizeActGrad: normalizeActGrads{
		SiLU: normalizedGradBy(siluGrad), Hardswish: normalizedGradBy(hardswishGrad), ReLU6: normalizedGradBy(relu6Grad)},
	NormalizeGrad:   normalizeGrad,
	Scale:           scale,
	Fill:            fill,
	AddScaled:       addScaled,
	Lerp:            lerp,
	Strange:         strange,
	Squares:         squares,
	Sums:            sums,
	Moments:         moments,
	GradSums:        gradSums,
	ReLUGradSums:    reluGradSums,
	AddReLUGradSums: addReLUGradSums,
	Functions:       plainFunctions,
	Rows:            plainRows,
	MaxWindows:      maxWindows,
	MaxWindowsGrad:  maxWindowsGrad,
	MaxWindowsSet:   maxWindowsSet,
}

// positive is x, and 0 if x < 0. On integers the compiler can avoid a branch, here and below.
func positive(x float32) float32 {
	b := math.Float32bits(x)
	if x < 0 {
		b = 0
	}
	return math.Float32frombits(b)
}

// passed is dy, and 0 if y ≤ 0.
func passed(y, dy float32) float32 {
	b := math.Float32bits(dy)
	if y <= 0 {
		b = 0
	}
	return math.Float32frombits(b)
}

func relu(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = positive(v)
	}
}

func reluGrad(dst, y, dy []float32) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		dst[i] = passed(v, dy[i])
	}
}

func add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, v := range a {
		dst[i] = v + b[i]
	}
}

// rows calls f for the parts of n elements that one row covers, each from lo to hi.
func rows(n, width int, f func(lo, hi int)) {
	for lo := 0; lo < n; lo += width {
		f(lo, min(lo+width, n))
	}
}

func normalize(dst, x, mean, gain, bias []float32) {
	rows(len(dst), len(mean), func(lo, hi int) {
		dst, x := dst[lo:hi], x[lo:hi]
		mean, gain, bias := mean[:len(x)], gain[:len(x)], bias[:len(x)]
		for c, v := range x {
			dst[c] = float32((v-mean[c])*gain[c]) + bias[c]
		}
	})
}

func normalizedBy(f func(x float32) float32) func(dst, x, mean, gain, bias []float32) {
	return func(dst, x, mean, gain, bias []float32) {
		rows(len(dst), len(mean), func(lo, hi int) {
			for c, v := range x[lo:hi] {
				dst[lo+c] = f(float32((v-mean[c])*gain[c]) + bias[c])
			}
		})
	}
}

func normalizedGradBy(f func(x, dy float32) float32) func(dst, x, dy, mean, gain, bias []float32) {
	return func(dst, x, dy, mean, gain, bias []float32) {
		rows(len(dst), len(mean), func(lo, hi int) {
			for c, v := range x[lo:hi] {
				dst[lo+c] = f(float32((v-mean[c])*gain[c])+bias[c], dy[lo+c])
			}
		})
	}
}

func normalizeReLU(dst, x, mean, gain, bias []float32) {
	rows(len(dst), len(mean), func(lo, hi int) {
		dst, x := dst[lo:hi], x[lo:hi]
		mean, gain, bias := mean[:len(x)], gain[:len(x)], bias[:len(x)]
		for c, v := range x {
			dst[c] = positive(float32((v-mean[c])*gain[c]) + bias[c])
		}
	})
}

func normalizeAdd(dst, x, other, mean, gain, bias []float32) {
	rows(len(dst), len(mean), func(lo, hi int) {
		dst, x, other := dst[lo:hi], x[lo:hi], other[lo:hi]
		mean, gain, bias := mean[:len(x)], gain[:len(x)], bias[:len(x)]
		for c, v := range x {
			dst[c] = float32((v-mean[c])*gain[c]) + bias[c] + other[c]
		}
	})
}

func normalizeAddReLU(dst, x, other, mean, gain, bias []float32) {
	rows(len(dst), len(mean), func(lo, hi int) {
		dst, x, other := dst[lo:hi], x[lo:hi], other[lo:hi]
		mean, gain, bias := mean[:len(x)], gain[:len(x)], bias[:len(x)]
		for c, v := range x {
			dst[c] = positive(float32((v-mean[c])*gain[c]) + bias[c] + other[c])
		}
	})
}

func normalizeGrad(dst, x, dy, mean, gain, meanGrad, slope []float32) {
	rows(len(dst), len(mean), func(lo, hi int) {
		dst, x, dy := dst[lo:hi], x[lo:hi], dy[lo:hi]
		mean, gain, meanGrad, slope := mean[:len(x)], gain[:len(x)], meanGrad[:len(x)], slope[:len(x)]
		for c, v := range x {
			dst[c] = (dy[c] - meanGrad[c] - float32((v-mean[c])*slope[c])) * gain[c]
		}
	})
}

func scale(dst, x, gain []float32) {
	rows(len(dst), len(gain), func(lo, hi int) {
		dst, x := dst[lo:hi], x[lo:hi]
		gain := gain[:len(x)]
		for c, v := range x {
			dst[c] = v * gain[c]
		}
	})
}

func fill(dst []float32, a float32) {
	for i := range dst {
		dst[i] = a
	}
}

func addScaled(dst, x []float32, a float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] += float32(a * v)
	}
}

func lerp(dst, x []float32, a float32) {
	x = x[:len(dst)]
	for i, v := range dst {
		dst[i] = v + float32(a*(x[i]-v))
	}
}

func strange(x []float32) uint32 {
	bits := uint32(0)
	for _, v := range x {
		bits |= math.Float32bits(v - v) // 0, or NaN
	}
	return bits
}

func squares(x []float32, sums *[8]float64) {
	clear(sums[:])
	for len(x) >= len(sums) {
		for i, v := range x[:len(sums)] {
			sums[i] += float64(v) * float64(v)
		}
		x = x[len(sums):]
	}
	for i, v := range x {
		sums[i] += float64(v) * float64(v)
	}
}
