package imaging

import (
	"math"
	"slices"

	"onlinerna/data/imaging/internal/kern"
)

// filter makes the coefficients of a resampling along one axis.
type filter struct {
	kern.Filter
	weight []float64
}

// triangle and cubic are the kernels of PIL's filters, which reach one and two samples far.
func triangle(x float64) float64 { return max(0, 1-math.Abs(x)) }

func cubic(x float64) float64 { // Keys' with a = −1/2
	const a = -0.5
	x = math.Abs(x)
	switch {
	case x < 1:
		return float64(float64(float64(float64((a+2)*x)-(a+3))*x)*x) + 1
	case x < 2:
		return float64(float64(float64(float64(float64(x-5)*x)+8)*x)-4) * a
	}
	return 0
}

// set computes the coefficients of outputs [from, to) when the part [in0, in1) of in samples is resized to out
// samples. Filters at the edge of the part may reach beyond it. The conversions to float64 forbid fused multiply-add,
// so every machine gets the same coefficients.
func (f *filter) set(how Interpolation, in int, in0, in1 float64, out, from, to int) {
	scale := (in1 - in0) / float64(out)
	stretch := max(scale, 1)
	kernel, support := triangle, stretch
	if how == Bicubic {
		kernel, support = cubic, 2*stretch
	}
	f.Size = 2*int(math.Ceil(support)) + 1
	f.In = in
	n := to - from
	f.Start, f.Count = kern.Grow(f.Start, n), kern.Grow(f.Count, n)
	f.Coef, f.weight = kern.Grow(f.Coef, n*f.Size), kern.Grow(f.weight, f.Size)
	for i := range n {
		center := in0 + float64((float64(from+i)+0.5)*scale)
		lo := max(int(center-support+0.5), 0)
		hi := min(int(center+support+0.5), in)
		weight := f.weight[:hi-lo]
		sum := 0.0
		for k := range weight {
			w := kernel(float64((float64(lo+k) - center + 0.5) * (1 / stretch)))
			weight[k] = w
			sum += w
		}
		coef := f.Coef[i*f.Size:]
		for k, w := range weight {
			if x := float64(w / sum * (1 << kern.Precision)); x < 0 {
				coef[k] = int32(-0.5 + x)
			} else {
				coef[k] = int32(0.5 + x)
			}
		}
		// The outermost taps are often zero.
		for hi-lo > 1 && coef[hi-lo-1] == 0 {
			hi--
		}
		f.Start[i], f.Count[i] = lo, hi-lo
	}
}

// first and end are the inputs between which all taps lie.
func (f *filter) first() int { return slices.Min(f.Start) }

func (f *filter) end() int {
	end := 0
	for i, first := range f.Start {
		end = max(end, first+f.Count[i])
	}
	return end
}

// apply resamples a row of ch interleaved channels.
func (f *filter) apply(set *kern.Set, out, in []uint8, ch int) {
	if ch == 1 {
		f.gray(out[:len(f.Start)], in[:f.In])
		return
	}
	set.Across(out, in, &f.Filter)
}

// gray resamples one row of one channel.
func (f *filter) gray(out, in []uint8) {
	for i := range out {
		taps := f.Taps(i)
		from := in[f.Start[i]:][:len(taps)]
		sum := int32(1 << (kern.Precision - 1))
		for k, c := range taps {
			sum += int32(from[k]) * c
		}
		// rounded coefficients may add up to more than one, and some are negative
		out[i] = uint8(max(0, min(sum>>kern.Precision, 255)))
	}
}
