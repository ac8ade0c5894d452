package ptx

import (
	"math"
	"strings"
)

// A format is a floating-point type: the bits of its fraction and of its exponent.
type format struct{ fraction, exponent uint }

var formats = map[string]format{"f16": {10, 5}, "bf16": {7, 8}, "f32": {23, 8}, "f64": {52, 11}}

// widen is the value of these bits. Every format fits float64.
func (f format) widen(x uint64) float64 {
	switch f.fraction {
	case 52:
		return math.Float64frombits(x)
	case 23:
		return float64(math.Float32frombits(uint32(x)))
	}
	fraction := x & (1<<f.fraction - 1)
	exponent := int(x >> f.fraction & (1<<f.exponent - 1))
	bias := 1<<(f.exponent-1) - 1
	var v float64
	switch {
	case exponent == 1<<f.exponent-1 && fraction != 0:
		return math.NaN()
	case exponent == 1<<f.exponent-1:
		v = math.Inf(1)
	case exponent == 0:
		v = math.Ldexp(float64(fraction), 1-bias-int(f.fraction))
	default:
		v = math.Ldexp(float64(fraction|1<<f.fraction), exponent-bias-int(f.fraction))
	}
	if x>>(f.fraction+f.exponent)&1 != 0 {
		v = -v
	}
	return v
}

// nan is the bit pattern of the format's NaN.
func (f format) nan() uint64 { return 1<<(f.fraction+f.exponent) - 1 }

// A rounding chooses one of two neighbours.
type rounding string

// round rounds a number to an integer.
func (r rounding) round(x float64) float64 {
	switch r {
	case "rn", "rni":
		return math.RoundToEven(x)
	case "rz", "rzi":
		return math.Trunc(x)
	case "rm", "rmi":
		return math.Floor(x)
	}
	return math.Ceil(x)
}

// narrow returns the bits of a number in the format.
func (f format) narrow(x float64, r rounding) uint64 {
	if x != x {
		return f.nan()
	}
	var sign uint64
	if math.Signbit(x) {
		sign = 1 << (f.fraction + f.exponent)
	}
	bias := 1<<(f.exponent-1) - 1
	infinite := uint64(1<<f.exponent-1) << f.fraction
	switch {
	case math.IsInf(x, 0):
		return sign | infinite
	case x == 0:
		return sign
	case f.fraction == 52:
		return math.Float64bits(x)
	}
	_, e := math.Frexp(x) // |x| is less than 2ᵉ
	unit := max(e-1, 1-bias) - int(f.fraction)
	n := math.Abs(r.round(math.Ldexp(x, -unit))) // in units of the last place, exact
	if n >= float64(uint64(2)<<f.fraction) {
		n, unit = n/2, unit+1
	}
	if unit+int(f.fraction) > bias { // overflow: infinite or the largest number, by the rounding
		if away := r == "rn" || r == "rp" && x > 0 || r == "rm" && x < 0; away {
			return sign | infinite
		}
		return sign | (infinite - 1)
	}
	whole := uint64(n)
	if whole>>f.fraction == 0 {
		return sign | whole // subnormal
	}
	return sign | uint64(unit+int(f.fraction)+bias)<<f.fraction | whole&(1<<f.fraction-1)
}

// quick has the most frequent conversions, done by Go's own.
var quick = map[string]function{
	"f64.f32":     func(a, _, _ uint64) uint64 { return quiet(float64(f32(a))) },
	"rn.f32.f64":  func(a, _, _ uint64) uint64 { return bits32(float32(f64(a))) },
	"rn.f32.s32":  func(a, _, _ uint64) uint64 { return bits32(float32(int32(a))) },
	"rn.f64.s32":  func(a, _, _ uint64) uint64 { return bits64(float64(int32(a))) },
	"rn.bf16.f32": func(a, _, _ uint64) uint64 { return bfloat16(a) },
}

// pairs convert two numbers to the halves of a word, the second to the low one.
var pairs = map[string]function{
	"rn.bf16x2.f32": func(a, b, _ uint64) uint64 { return bfloat16(a)<<16 | bfloat16(b) },
	"rn.f16x2.f32": func(a, b, _ uint64) uint64 {
		f := formats["f16"]
		return f.narrow(float64(f32(a)), "rn")<<16 | f.narrow(float64(f32(b)), "rn")
	},
}

// quiet is the bits of a number, with one bit pattern for NaN.
func quiet(x float64) uint64 {
	if x != x {
		return formats["f64"].nan()
	}
	return bits64(x)
}

// bfloat16 rounds to nearest.
func bfloat16(a uint64) uint64 {
	if x := f32(a); x != x {
		return 0x7fff
	}
	return (a + 0x7fff + a>>16&1) >> 16 & 0xffff
}

// conversion decodes cvt: its modifiers and two types.
func conversion(parts []string) (function, []int, error) {
	if fn := quick[strings.Join(parts, ".")]; fn != nil {
		return fn, []int{bytesOf[parts[len(parts)-1]]}, nil
	}
	if fn := pairs[strings.Join(parts, ".")]; fn != nil {
		return fn, []int{4, 4}, nil
	}
	if len(parts) < 2 {
		return nil, nil, errUnknown
	}
	to, from := parts[len(parts)-2], parts[len(parts)-1]
	var round rounding
	flushed, saturated := false, false
	for _, p := range parts[:len(parts)-2] {
		switch p {
		case "rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi":
			round = rounding(p)
		case "ftz":
			flushed = true
		case "sat":
			saturated = true
		default:
			return nil, nil, errUnknown
		}
	}
	toFloat, wide := formats[to]
	fromFloat, float := formats[from]
	size := bytesOf[from]
	if size == 0 || bytesOf[to] == 0 || to == "pred" || from == "pred" || to[0] == 'b' && !wide || from[0] == 'b' &&
		!float {
		return nil, nil, errUnknown
	}
	sources := []int{size}
	flush := func(x uint64) uint64 { return x }
	if flushed {
		if to != "f32" && from != "f32" {
			return nil, nil, errUnknown
		}
		flush = flush32
	}
	switch {
	case !float && !wide:
		if round != "" || flushed {
			return nil, nil, errUnknown
		}
		return integerOf(from).convert(integerOf(to), saturated), sources, nil
	case float && !wide:
		if len(round) != 3 {
			return nil, nil, errUnknown
		}
		i := integerOf(to)
		lo, hi := i.limits()
		mask := ^uint64(0) >> (64 - i.width)
		return func(a, _, _ uint64) uint64 {
			if from == "f32" {
				a = flush(a)
			}
			return whole(round.round(fromFloat.widen(a)), lo, hi, i.signed) & mask
		}, sources, nil
	case wide && !float:
		if len(round) != 2 || saturated || to == "f64" && round != "rn" {
			return nil, nil, errUnknown
		}
		i := integerOf(from)
		return func(a, _, _ uint64) uint64 { return toFloat.fromInteger(a, i, round) }, sources, nil
	}
	// Between floating-point types; within one type it rounds to integers.
	narrows := toFloat.fraction < fromFloat.fraction || to == "bf16" && from == "f16"
	if narrows != (len(round) == 2) || len(round) == 3 && to != from {
		return nil, nil, errUnknown
	}
	return func(a, _, _ uint64) uint64 {
		if from == "f32" {
			a = flush(a)
		}
		v := fromFloat.widen(a)
		if len(round) == 3 {
			v = math.Copysign(round.round(v), v)
		}
		if saturated {
			if v = min(1, max(0, v)); v != v {
				v = 0
			}
		}
		way := round
		if len(way) != 2 {
			way = "rn"
		}
		x := toFloat.narrow(v, way)
		if to == "f32" {
			x = flush(x)
		}
		return x
	}, sources, nil
}

// limits are the least value and the largest plus one.
func (i integer) limits() (lo, hi float64) {
	if i.signed {
		return -math.Ldexp(1, int(i.width)-1), math.Ldexp(1, int(i.width)-1)
	}
	return 0, math.Ldexp(1, int(i.width))
}

// whole converts an integral number, clamped to [lo, hi - 1]; NaN becomes 0.
func whole(x, lo, hi float64, signed bool) uint64 {
	switch {
	case x != x:
		return 0
	case x < lo:
		x = lo
	case x >= hi:
		if signed {
			return uint64(int64(math.Ldexp(hi, -1))*2 - 1)
		}
		return uint64(math.Ldexp(hi, -1))*2 - 1
	}
	if x < 0 {
		return uint64(int64(x))
	}
	return uint64(x)
}

// An integer type: its width and signedness.
type integer struct {
	width  uint
	signed bool
}

func integerOf(kind string) integer { return integer{8 * uint(bytesOf[kind]), kind[0] == 's'} }

// extended is a sign- or zero-extended integer, in 64 bits.
func (i integer) extended(x uint64) uint64 {
	shift := 64 - i.width
	if i.signed {
		return uint64(int64(x<<shift) >> shift)
	}
	return x << shift >> shift
}

// convert returns the conversion to another integer type.
func (i integer) convert(to integer, saturated bool) function {
	mask := ^uint64(0) >> (64 - to.width)
	if !saturated {
		return func(a, _, _ uint64) uint64 { return i.extended(a) & mask }
	}
	return func(a, _, _ uint64) uint64 {
		v := i.extended(a)
		negative := i.signed && int64(v) < 0
		if !to.signed {
			if negative {
				return 0
			}
			return min(v, mask)
		}
		most := mask >> 1
		if negative {
			return uint64(max(int64(v), -int64(most)-1)) & mask
		}
		return min(v, most)
	}
}

// fromInteger converts an integer. It rounds to odd at 53 bits first, so that rounding to fewer bits equals that of the
// exact value; to float64 it rounds to nearest.
func (f format) fromInteger(x uint64, i integer, r rounding) uint64 {
	v := i.extended(x)
	negative := i.signed && int64(v) < 0
	if negative {
		v = -v
	}
	d := float64(v)
	if v>>53 != 0 && f.fraction < 52 {
		d = float64(v &^ 0x7ff)
		if v&0x7ff != 0 {
			d = math.Float64frombits(math.Float64bits(d) | 1)
		}
	}
	if negative {
		d = -d
	}
	return f.narrow(d, r)
}

// FromFloat16 and FromBFloat16 are the values of 16-bit patterns.
func FromFloat16(x uint64) float64  { return formats["f16"].widen(x) }
func FromBFloat16(x uint64) float64 { return formats["bf16"].widen(x) }
