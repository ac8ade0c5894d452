package kern

// splitBits is the number of low bits of a coefficient that vectors multiply apart, so that both parts are 16-bit
// numbers.
const splitBits = 11

// Filter is a resampling along a row: output i is Σ_k Coef[i·Size+k]·in[Start[i]+k] for k < Count[i], in units of
// 2^−Precision, rounded and clipped to 8 bits.
type Filter struct {
	In           int // samples of a row
	Start, Count []int
	Size         int // coefficients reserved for an output
	Coef         []int32

	pairs  int // of taps, the same for all outputs; 0 if a row is too short for them
	starts []int32
	words  []int16
}

// Taps are the coefficients of output i.
func (f *Filter) Taps(i int) []int32 { return f.Coef[i*f.Size : i*f.Size+f.Count[i]] }

// Prepare lays the coefficients out for vectors, of three interleaved channels. It is called once they are set.
func (f *Filter) Prepare() {
	most := 0
	for _, n := range f.Count {
		most = max(most, n)
	}
	if f.pairs = (most + 1) / 2; 2*f.pairs > f.In {
		f.pairs = 0
		return
	}
	n := len(f.Start)
	even := (n + 1) &^ 1
	f.starts, f.words = Grow(f.starts, even), Grow(f.words, even*f.pairs*16)
	for i := range even {
		k := min(i, n-1)
		// No tap lies past the row: there, zero taps come before the others.
		start := min(f.Start[k], f.In-2*f.pairs)
		f.starts[i] = int32(3 * start)
		taps, before := f.Taps(k), f.Start[k]-start
		for p := range f.pairs {
			var c [2]int32
			for j := range c {
				if at := 2*p + j - before; at >= 0 && at < len(taps) {
					c[j] = taps[at]
				}
			}
			w := f.words[(i/2*f.pairs+p)*32+i%2*8:]
			for channel := range 4 {
				w[2*channel], w[2*channel+1] = int16(c[0]>>splitBits), int16(c[1]>>splitBits)
				w[16+2*channel], w[16+2*channel+1] = int16(c[0]&(1<<splitBits-1)), int16(c[1]&(1<<splitBits-1))
			}
		}
	}
}

// Taps are the coefficients of a sum of rows.
type Taps struct {
	Coef []int32

	pairs int
	words []uint32
}

// Set makes coef the coefficients. It keeps them.
func (t *Taps) Set(coef []int32) {
	t.Coef, t.pairs = coef, (len(coef)+1)/2
	t.words = Grow(t.words, 2*t.pairs)
	for p := range t.pairs {
		a, b := uint32(coef[2*p]), uint32(0)
		if 2*p+1 < len(coef) {
			b = uint32(coef[2*p+1])
		}
		t.words[2*p] = uint32(uint16(int32(a)>>splitBits)) | uint32(uint16(int32(b)>>splitBits))<<16
		t.words[2*p+1] = a&(1<<splitBits-1) | b&(1<<splitBits-1)<<16
	}
}

const half = 1 << (Precision - 1) // added to a sum for rounding

// round is a sum's sample. Rounded coefficients may add up to more than one, and some are negative.
func round(sum int32) uint8 { return uint8(max(0, min(sum>>Precision, 255))) }

func across(out, in []uint8, f *Filter) {
	for i := range f.Start {
		taps := f.Taps(i)
		from := in[3*f.Start[i]:]
		r, g, b := int32(half), int32(half), int32(half)
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

// down sums some columns at a time, so that the sums stay in the L1 cache.
func down(out, in []uint8, taps *Taps) {
	const strip = 256
	var sums [strip]int32
	n := len(out)
	for lo := 0; lo < n; lo += strip {
		acc := sums[:min(strip, n-lo)]
		for i := range acc {
			acc[i] = half
		}
		coef, at := taps.Coef, lo
		for ; len(coef) >= 2; coef, at = coef[2:], at+2*n {
			row, next := in[at:at+len(acc)], in[at+n:at+n+len(acc)]
			for i := range acc {
				acc[i] += int32(row[i])*coef[0] + int32(next[i])*coef[1]
			}
		}
		if len(coef) == 1 {
			for i, v := range in[at : at+len(acc)] {
				acc[i] += int32(v) * coef[0]
			}
		}
		for i, v := range acc {
			out[lo+i] = round(v)
		}
	}
}
