package kern

// Constants of libjpeg's jidctred.c, named as there.
const (
	fix0211164243 = 1730
	fix0509795579 = 4176
	fix0601344887 = 4926
	fix0720959822 = 5906
	fix0850430095 = 6967
	fix1061594337 = 8697
	fix1272758580 = 10426
	fix1451774981 = 11893
	fix2172734803 = 17799
	fix3624509785 = 29692
)

// idct4 is libjpeg's inverse DCT to 4×4 samples; the fifth row and column do not count.
func idct4(dst []uint8, stride int, coef, quant *[64]int16) {
	var ws [32]int32
	at := func(i int) int32 { return int32(coef[i] * quant[i]) }
	for i := range 8 {
		if i == 4 {
			continue
		}
		const shift = constBits - pass1Bits + 1
		a, b, c, d := reduced4(at(i), at(8+i), at(16+i), at(24+i), at(40+i), at(48+i), at(56+i), 1<<(shift-1))
		ws[i], ws[8+i], ws[16+i], ws[24+i] = a>>shift, b>>shift, c>>shift, d>>shift
	}
	for y := range 4 {
		w := ws[8*y : 8*y+8 : 8*y+8]
		const shift = constBits + pass1Bits + 3 + 1
		a, b, c, d := reduced4(w[0], w[1], w[2], w[3], w[5], w[6], w[7], 1<<(shift-1)+128<<shift)
		out := dst[y*stride : y*stride+4 : y*stride+4]
		out[0], out[1], out[2], out[3] = clamp(a>>shift), clamp(b>>shift), clamp(c>>shift), clamp(d>>shift)
	}
}

// reduced4 is a one-dimensional transform of eight coefficients, the fifth left out, to four samples.
func reduced4(c0, c1, c2, c3, c5, c6, c7, round int32) (s0, s1, s2, s3 int32) {
	t0 := c0<<(constBits+1) + round
	t2 := c2*fix1847759065 - c6*fix0765366865
	e0, e1 := t0+t2, t0-t2
	o1 := c5*fix1451774981 - c7*fix0211164243 - c3*fix2172734803 + c1*fix1061594337
	o0 := c3*fix0899976223 - c7*fix0509795579 - c5*fix0601344887 + c1*fix2562915447
	return e0 + o0, e1 + o1, e1 - o1, e0 - o0
}

// IDCT2 is libjpeg's inverse DCT to 2×2 samples.
func IDCT2(dst []uint8, stride int, coef, quant *[64]int16) {
	var ws [16]int32
	at := func(i int) int32 { return int32(coef[i] * quant[i]) }
	for _, i := range [...]int{0, 1, 3, 5, 7} {
		const shift = constBits - pass1Bits + 2
		a, b := reduced2(at(i), at(8+i), at(24+i), at(40+i), at(56+i), 1<<(shift-1))
		ws[i], ws[8+i] = a>>shift, b>>shift
	}
	for y := range 2 {
		w := ws[8*y : 8*y+8 : 8*y+8]
		const shift = constBits + pass1Bits + 3 + 2
		a, b := reduced2(w[0], w[1], w[3], w[5], w[7], 1<<(shift-1)+128<<shift)
		out := dst[y*stride : y*stride+2 : y*stride+2]
		out[0], out[1] = clamp(a>>shift), clamp(b>>shift)
	}
}

// reduced2 is a one-dimensional transform of the first and the odd coefficients to two samples.
func reduced2(c0, c1, c3, c5, c7, round int32) (s0, s1 int32) {
	e := c0<<(constBits+2) + round
	o := c5*fix0850430095 - c7*fix0720959822 - c3*fix1272758580 + c1*fix3624509785
	return e + o, e - o
}

// IDCT1 is the mean of a block, from its first coefficient.
func IDCT1(dc, quant int16) uint8 { return clamp((int32(dc*quant)+4)>>3 + 128) }
