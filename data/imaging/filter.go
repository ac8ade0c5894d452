package imaging

import "math"

// precision is the number of fractional bits of the coefficients: PIL leaves 8 bits for the sample and 2 of headroom.
const precision = 32 - 8 - 2

// filter holds the coefficients of a resampling along one axis: output i is
// Σ_k taps(i)[k] · input[start[i]+k], in units of 2^−precision.
type filter struct {
	start, count []int
	size         int     // coefficients reserved for an output
	coef         []int32 // size for each output
	weight       []float64
}

func (f *filter) taps(i int) []int32 { return f.coef[i*f.size : i*f.size+f.count[i]] }

// set computes the coefficients of outputs [from, to) of the reduction or enlargement of in samples to out.
// The conversions to float64 forbid fused multiply-add, so every machine gets the same coefficients.
func (f *filter) set(in, out, from, to int) {
	scale := float64(in) / float64(out)
	support := max(scale, 1)
	f.size = 2*int(math.Ceil(support)) + 1
	n := to - from
	f.start, f.count = grow(f.start, n), grow(f.count, n)
	f.coef, f.weight = grow(f.coef, n*f.size), grow(f.weight, f.size)
	for i := range n {
		center := float64((float64(from+i) + 0.5) * scale)
		lo := max(int(center-support+0.5), 0)
		hi := min(int(center+support+0.5), in)
		weight := f.weight[:hi-lo]
		sum := 0.0
		for k := range weight {
			w := max(0, 1-math.Abs(float64((float64(lo+k)-center+0.5)*(1/support))))
			weight[k] = w
			sum += w
		}
		coef := f.coef[i*f.size:]
		for k, w := range weight {
			coef[k] = int32(0.5 + float64(w/sum*(1<<precision)))
		}
		// The outermost taps are often nothing.
		for hi-lo > 1 && coef[hi-lo-1] == 0 {
			hi--
		}
		f.start[i], f.count[i] = lo, hi-lo
	}
}

const unitHalf = 1 << (precision - 1) // what rounding adds to a sum

// round is a sum's sample. Rounded coefficients may add up to more than one.
func round(sum int32) uint8 { return uint8(min(sum>>precision, 255)) }

// gray resamples one row of one channel.
func (f *filter) gray(out, in []uint8) {
	for i := range out {
		taps := f.taps(i)
		from := in[f.start[i]:][:len(taps)]
		sum := int32(unitHalf)
		for k, c := range taps {
			sum += int32(from[k]) * c
		}
		out[i] = round(sum)
	}
}

// rgb resamples one row of three channels.
func (f *filter) rgb(out, in []uint8) {
	for i := range len(out) / 3 {
		taps := f.taps(i)
		from := in[3*f.start[i]:]
		r, g, b := int32(unitHalf), int32(unitHalf), int32(unitHalf)
		for len(taps) >= 2 && len(from) >= 6 {
			c, d := taps[0], taps[1]
			r += int32(from[0])*c + int32(from[3])*d
			g += int32(from[1])*c + int32(from[4])*d
			b += int32(from[2])*c + int32(from[5])*d
			taps, from = taps[2:], from[6:]
		}
		if len(taps) == 1 {
			c := taps[0]
			r += int32(from[0]) * c
			g += int32(from[1]) * c
			b += int32(from[2]) * c
		}
		p := out[3*i : 3*i+3 : 3*i+3]
		p[0], p[1], p[2] = round(r), round(g), round(b)
	}
}

// sumRows writes the weighted sum of consecutive rows of in, as many as there are taps, to out. acc is scratch of the
// same length. Two rows at a time halve the traffic of acc.
func sumRows(out, in []uint8, taps []int32, acc []int32) {
	n := len(out)
	acc = acc[:n]
	for i := range acc {
		acc[i] = unitHalf
	}
	for len(taps) > 2 {
		c, d := taps[0], taps[1]
		row, next := in[:n], in[n:2*n]
		for i := range acc {
			acc[i] += int32(row[i])*c + int32(next[i])*d
		}
		taps, in = taps[2:], in[2*n:]
	}
	c, d := taps[0], int32(0)
	row, next := in[:n], in[:n]
	if len(taps) == 2 {
		d, next = taps[1], in[n:2*n]
	}
	for i, v := range acc {
		out[i] = round(v + int32(row[i])*c + int32(next[i])*d)
	}
}
