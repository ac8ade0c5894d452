package kern

// Constants of the Loeffler, Ligtenberg and Moschytz transform in 13-bit fixed point, named as in libjpeg's jidctint.c,
// whose accurate integer transform this is.
const (
	constBits = 13
	pass1Bits = 2

	fix0298631336 = 2446
	fix0390180644 = 3196
	fix0541196100 = 4433
	fix0765366865 = 6270
	fix0899976223 = 7373
	fix1175875602 = 9633
	fix1501321110 = 12299
	fix1847759065 = 15137
	fix1961570560 = 16069
	fix2053119869 = 16819
	fix2562915447 = 20995
	fix3072711026 = 25172
)

func idct(dst []uint8, stride int, coef, quant *[64]int16) {
	var ws [64]int32
	for i := range 8 {
		c1, c2, c3, c4 := coef[8+i], coef[16+i], coef[24+i], coef[32+i]
		c5, c6, c7 := coef[40+i], coef[48+i], coef[56+i]
		dc := int32(coef[i] * quant[i])
		if c1|c2|c3|c4|c5|c6|c7 == 0 {
			if dc == 0 {
				continue
			}
			dc <<= pass1Bits
			ws[i], ws[8+i], ws[16+i], ws[24+i] = dc, dc, dc, dc
			ws[32+i], ws[40+i], ws[48+i], ws[56+i] = dc, dc, dc, dc
			continue
		}
		const round, shift = 1 << (constBits - pass1Bits - 1), constBits - pass1Bits
		e0, e1, e2, e3, o0, o1, o2, o3 := butterflies(dc, int32(c1*quant[8+i]), int32(c2*quant[16+i]),
			int32(c3*quant[24+i]),
			int32(c4*quant[32+i]), int32(c5*quant[40+i]), int32(c6*quant[48+i]), int32(c7*quant[56+i]), round)
		ws[i], ws[56+i] = (e0+o3)>>shift, (e0-o3)>>shift
		ws[8+i], ws[48+i] = (e1+o2)>>shift, (e1-o2)>>shift
		ws[16+i], ws[40+i] = (e2+o1)>>shift, (e2-o1)>>shift
		ws[24+i], ws[32+i] = (e3+o0)>>shift, (e3-o0)>>shift
	}
	for y := range 8 {
		w := ws[8*y : 8*y+8 : 8*y+8]
		out := dst[y*stride : y*stride+8 : y*stride+8]
		// 128 is the level shift. outside this range the sums below wrap around
		if w[1]|w[2]|w[3]|w[4]|w[5]|w[6]|w[7] == 0 && -1<<17 <= w[0] && w[0] < 1<<17 {
			v := clamp((w[0]+1<<(pass1Bits+2))>>(pass1Bits+3) + 128)
			out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = v, v, v, v, v, v, v, v
			continue
		}
		const shift = constBits + pass1Bits + 3
		const round = 1<<(shift-1) + 128<<shift
		e0, e1, e2, e3, o0, o1, o2, o3 := butterflies(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], round)
		out[0], out[7] = clamp((e0+o3)>>shift), clamp((e0-o3)>>shift)
		out[1], out[6] = clamp((e1+o2)>>shift), clamp((e1-o2)>>shift)
		out[2], out[5] = clamp((e2+o1)>>shift), clamp((e2-o1)>>shift)
		out[3], out[4] = clamp((e3+o0)>>shift), clamp((e3-o0)>>shift)
	}
}

// butterflies returns the even part, to which round is added, and the odd part of a one-dimensional transform.
func butterflies(c0, c1, c2, c3, c4, c5, c6, c7, round int32) (e0, e1, e2, e3, o0, o1, o2, o3 int32) {
	z1 := (c2 + c6) * fix0541196100
	t2, t3 := z1-c6*fix1847759065, z1+c2*fix0765366865
	t0, t1 := (c0+c4)<<constBits+round, (c0-c4)<<constBits+round
	e0, e3, e1, e2 = t0+t3, t0-t3, t1+t2, t1-t2

	z1 = (c7 + c1) * -fix0899976223
	z2 := (c5 + c3) * -fix2562915447
	z3, z4 := c7+c3, c5+c1
	z5 := (z3 + z4) * fix1175875602
	z3, z4 = z5-z3*fix1961570560, z5-z4*fix0390180644
	o0 = c7*fix0298631336 + z1 + z3
	o1 = c5*fix2053119869 + z2 + z4
	o2 = c3*fix3072711026 + z2 + z3
	o3 = c1*fix1501321110 + z1 + z4
	return
}

func clamp(v int32) uint8 {
	if uint32(v) > 255 {
		v = ^(v >> 31)
	}
	return uint8(v)
}
