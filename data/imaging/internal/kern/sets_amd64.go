//go:build amd64 && !purego

package kern

import "onlinerna/internal/simd"

var avx2 = &Set{
	Block: fastBlock,
	Skip:  fastSkip,
	IDCT: func(dst []uint8, stride int, coef, quant *[64]int16) {
		_ = dst[7*stride+7]
		idctAVX2(&dst[0], stride, &coef[0], &quant[0])
	},
	IDCT4: func(dst []uint8, stride int, coef, quant *[64]int16) {
		_ = dst[3*stride+3]
		idct4AVX2(&dst[0], stride, &coef[0], &quant[0])
	},
	UpsampleH2V1: fastH2V1,
	UpsampleH2V2: fastH2V2,
	YCbCrToRGB:   fastYCbCr,
	Across:       fastAcross,
	Down:         fastDown,
}

var sets = [...]*Set{simd.Go: plain, simd.AVX2: avx2, simd.AVX512: avx2}

// Plain Go decodes the last blocks, since assembly reads past them.

func fastBlock(r *Bits, first *Firsts, rest *Symbols, blk *[Room]int16, pred *int32, k int) int {
	if r.At+mostBytes > len(r.Data) {
		return block(r, first, rest, blk, pred, k)
	}
	return blockBMI(&r.At, &r.Data[0], &first[0], &rest[0], &blk[0], pred, k)
}

func fastSkip(r *Bits, first *Firsts, rest *Symbols, runs *Runs, pred *int32, k int) int {
	if r.At+mostBytes > len(r.Data) {
		return skip(r, first, rest, runs, pred, k)
	}
	return skipBMI(&r.At, &r.Data[0], &first[0], &rest[0], &runs[0], pred, k)
}

// The plain kernels compute the samples at the borders of the row and the remainder of 16.

func fastH2V1(out, near []uint8, first, last int) {
	from, n := inside(first, last, len(near))
	if n <= 0 {
		upsampleH2V1(out, near, first, last)
		return
	}
	_ = out[2*(last-first)-1]
	upsampleH2V1(out, near, first, from)
	upsampleH2V1AVX2(&out[2*(from-first)], &near[from], n)
	upsampleH2V1(out[2*(from+n-first):], near, from+n, last)
}

func fastH2V2(out, near, far []uint8, first, last int) {
	far = far[:len(near)]
	from, n := inside(first, last, len(near))
	if n <= 0 {
		upsampleH2V2(out, near, far, first, last)
		return
	}
	_ = out[2*(last-first)-1]
	upsampleH2V2(out, near, far, first, from)
	upsampleH2V2AVX2(&out[2*(from-first)], &near[from], &far[from], n)
	upsampleH2V2(out[2*(from+n-first):], near, far, from+n, last)
}

// inside returns the first sample with a left neighbour, and the number of samples from there on with a right
// neighbour, in whole vectors.
func inside(first, last, width int) (from, n int) {
	from = max(first, 1)
	return from, (min(last, width-1) - from) &^ 15
}

func fastYCbCr(dst, luma, cb, cr []uint8) {
	n := len(luma)
	cb, cr, dst = cb[:n], cr[:n], dst[:3*n]
	if n < 16 {
		ycbcrToRGB(dst, luma, cb, cr)
		return
	}
	ycbcrToRGBAVX2(&dst[0], &luma[0], &cb[0], &cr[0], n&^15)
	if n&15 != 0 { // the last vector once more, whole
		n -= 16
		ycbcrToRGBAVX2(&dst[3*n], &luma[n], &cb[n], &cr[n], 16)
	}
}

func fastAcross(out, in []uint8, f *Filter) {
	if f.pairs == 0 { // fewer samples than taps
		across(out, in, f)
		return
	}
	_, _ = out[:3*len(f.Start)+Slack], in[:3*f.In+Slack]
	acrossAVX2(&out[0], &in[0], &f.starts[0], &f.words[0], f.pairs, len(f.Start))
}

func fastDown(out, in []uint8, taps *Taps) {
	n := len(out)
	if n < 32 {
		down(out, in, taps)
		return
	}
	_ = in[:2*taps.pairs*n+Slack]
	downAVX2(&out[0], &in[0], n, &taps.words[0], taps.pairs, n&^31)
	if n&31 != 0 { // the last vector once more, whole
		downAVX2(&out[n-32], &in[n-32], n, &taps.words[0], taps.pairs, 32)
	}
}
