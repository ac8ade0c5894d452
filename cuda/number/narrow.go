package number

import "math"

// Narrow rounds x to the 16 bits of a precision, to the nearest, ties to even.
func Narrow(p Precision, x []float32) []uint16 {
	y := make([]uint16, len(x))
	for i, f := range x {
		if p == Float16 {
			y[i] = toHalf(f)
		} else {
			y[i] = toBFloat16(f)
		}
	}
	return y
}

// Widen is the inverse of Narrow.
func Widen(p Precision, x []uint16) []float32 {
	y := make([]float32, len(x))
	for i, u := range x {
		if p == Float16 {
			y[i] = fromHalf(u)
		} else {
			y[i] = math.Float32frombits(uint32(u) << 16)
		}
	}
	return y
}

func toBFloat16(f float32) uint16 {
	if f != f {
		return 0x7fff
	}
	u := math.Float32bits(f)
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

func toHalf(f float32) uint16 {
	u := math.Float32bits(f)
	sign := uint16(u >> 16 & 0x8000)
	a := math.Abs(float64(f))
	switch {
	case f != f:
		return 0x7fff
	case a >= 65520: // halfway from the largest number to the next power of 2
		return sign | 0x7c00
	case a < 0x1p-14:
		return sign | uint16(math.RoundToEven(a*0x1p24))
	}
	u &= 1<<31 - 1
	return sign | uint16((u-112<<23+0xfff+u>>13&1)>>13)
}

func fromHalf(h uint16) float32 {
	fraction := float64(h & 0x3ff)
	var a float64
	switch exponent := int(h >> 10 & 0x1f); exponent {
	case 0:
		a = fraction * 0x1p-24
	case 0x1f:
		a = math.Inf(1)
		if fraction != 0 {
			a = math.NaN()
		}
	default:
		a = math.Ldexp(1024+fraction, exponent-25)
	}
	if h&0x8000 != 0 {
		a = -a
	}
	return float32(a)
}
