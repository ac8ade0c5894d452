package imaging

import (
	"math"

	"onlinerna/data/imaging/internal/kern"
)

// filter makes the coefficients of a resampling along one axis.
type filter struct {
	kern.Filter
	weight []float64
}

// set computes the coefficients of outputs [from, to) of the reduction or enlargement of in samples to out.
// The conversions to float64 forbid fused multiply-add, so every machine gets the same coefficients.
func (f *filter) set(in, out, from, to int) {
	scale := float64(in) / float64(out)
	support := max(scale, 1)
	f.Size = 2*int(math.Ceil(support)) + 1
	f.In = in
	n := to - from
	f.Start, f.Count = grow(f.Start, n), grow(f.Count, n)
	f.Coef, f.weight = grow(f.Coef, n*f.Size), grow(f.weight, f.Size)
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
		coef := f.Coef[i*f.Size:]
		for k, w := range weight {
			coef[k] = int32(0.5 + float64(w/sum*(1<<kern.Precision)))
		}
		// The outermost taps are often nothing.
		for hi-lo > 1 && coef[hi-lo-1] == 0 {
			hi--
		}
		f.Start[i], f.Count[i] = lo, hi-lo
	}
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
		out[i] = uint8(min(sum>>kern.Precision, 255)) // rounded coefficients may add up to more than one
	}
}
