package kern

func upsampleH2V1(out, in []uint8, first, last int) {
	if first >= last {
		return
	}
	prev, this := uint16(in[max(first-1, 0)]), uint16(in[first])
	for i := range last - first {
		next := this
		if j := first + i + 1; j < len(in) {
			next = uint16(in[j])
		}
		p := out[2*i : 2*i+2 : 2*i+2]
		p[0] = uint8((3*this + prev + 1) >> 2)
		p[1] = uint8((3*this + next + 2) >> 2)
		prev, this = this, next
	}
}

func upsampleH2V2(out, near, far []uint8, first, last int) {
	if first >= last {
		return
	}
	far = far[:len(near)]
	sum := func(i int) uint16 { return 3*uint16(near[i]) + uint16(far[i]) }
	prev, this := sum(max(first-1, 0)), sum(first)
	for i := range last - first {
		next := this
		if j := first + i + 1; j < len(near) {
			next = 3*uint16(near[j]) + uint16(far[j])
		}
		p := out[2*i : 2*i+2 : 2*i+2]
		p[0] = uint8((3*this + prev + 8) >> 4)
		p[1] = uint8((3*this + next + 7) >> 4)
		prev, this = this, next
	}
}

func ycbcrToRGB(dst, luma, cb, cr []uint8) {
	const half = 1 << 15
	cb, cr = cb[:len(luma)], cr[:len(luma)]
	for i := range luma {
		y, u, v := int32(luma[i]), int32(cb[i])-128, int32(cr[i])-128
		p := dst[3*i : 3*i+3 : 3*i+3]
		p[0] = clamp(y + (91881*v+half)>>16)
		p[1] = clamp(y + (half-22554*u-46802*v)>>16)
		p[2] = clamp(y + (116130*u+half)>>16)
	}
}
