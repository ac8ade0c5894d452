package ptx

import (
	"math"
	"slices"
	"strings"
)

func f32(x uint64) float32 { return math.Float32frombits(uint32(x)) }
func f64(x uint64) float64 { return math.Float64frombits(x) }

// bits32 is the bits of a result, with one bit pattern for NaN.
func bits32(x float32) uint64 {
	if x != x {
		return 0x7fffffff
	}
	return uint64(math.Float32bits(x))
}
func bits64(x float64) uint64 { return math.Float64bits(x) }

// sum is a·b + c in float64, where the product is exact, rounded to odd: rounding it to float32 equals rounding the
// exact value.
func sum(a, b, c float32) float64 {
	p, z := float64(a)*float64(b), float64(c)
	s := p + z
	if math.IsInf(s, 0) || s != s {
		return s
	}
	// The exact rounding error of the sum.
	t := s - p
	lost := (p - (s - t)) + (z - t)
	if n := math.Float64bits(s); lost != 0 && n&1 == 0 {
		if lost > 0 == (s > 0) {
			n++
		} else {
			n--
		}
		s = math.Float64frombits(n)
	}
	return s
}

// Floating-point arithmetic and comparisons as functions of bits.
func init() {
	one, two, three := []int{4}, []int{4, 4}, []int{4, 4, 4}
	operations["add.f32"] = operation{func(a, b, _ uint64) uint64 { return bits32(f32(a) + f32(b)) }, two}
	operations["sub.f32"] = operation{func(a, b, _ uint64) uint64 { return bits32(f32(a) - f32(b)) }, two}
	operations["mul.f32"] = operation{func(a, b, _ uint64) uint64 { return bits32(f32(a) * f32(b)) }, two}
	operations["div.f32"] = operation{func(a, b, _ uint64) uint64 { return bits32(f32(a) / f32(b)) }, two}
	operations["fma.f32"] = operation{func(a, b, c uint64) uint64 {
		return bits32(float32(sum(f32(a), f32(b),
			f32(c))))
	}, three}
	for _, r := range []rounding{"rm", "rp", "rz"} {
		operations["fma."+string(r)+".f32"] = operation{func(a, b,
			c uint64) uint64 {
			return formats["f32"].narrow(sum(f32(a), f32(b), f32(c)), r)
		}, three}
	}
	operations["mad.f32"] = operations["fma.f32"]
	operations["rcp.f32"] = operation{func(a, _, _ uint64) uint64 { return bits32(1 / f32(a)) }, one}
	operations["sqrt.f32"] = operation{func(a, _,
		_ uint64) uint64 {
		return bits32(float32(math.Sqrt(float64(f32(a)))))
	}, one}
	operations["neg.f32"] = operation{func(a, _, _ uint64) uint64 { return a ^ 1<<31 }, one}
	operations["abs.f32"] = operation{func(a, _, _ uint64) uint64 { return a &^ (1 << 31) }, one}
	operations["copysign.f32"] = operation{func(a, b, _ uint64) uint64 { return a&(1<<31) | b&^(1<<31) }, two}
	operations["min.f32"] = operation{func(a, b, _ uint64) uint64 {
		return bits32(float32(least(float64(f32(a)),
			float64(f32(b)))))
	}, two}
	operations["max.f32"] = operation{func(a, b, _ uint64) uint64 {
		return bits32(float32(-least(-float64(f32(a)),
			-float64(f32(b)))))
	}, two}
	for name, f := range map[string]func(float64) float64{
		"ex2": math.Exp2, "lg2": math.Log2, "tanh": math.Tanh, "sqrt": math.Sqrt,
		"rcp":   func(x float64) float64 { return 1 / x },
		"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	} {
		operations[name+".approx.f32"] = operation{func(a, _,
			_ uint64) uint64 {
			return bits32(float32(f(float64(f32(a)))))
		}, one}
	}
	operations["div.approx.f32"] = operations["div.f32"]
	operations["div.full.f32"] = operations["div.f32"]

	one, two, three = []int{8}, []int{8, 8}, []int{8, 8, 8}
	operations["add.f64"] = operation{func(a, b, _ uint64) uint64 { return bits64(f64(a) + f64(b)) }, two}
	operations["sub.f64"] = operation{func(a, b, _ uint64) uint64 { return bits64(f64(a) - f64(b)) }, two}
	operations["mul.f64"] = operation{func(a, b, _ uint64) uint64 { return bits64(f64(a) * f64(b)) }, two}
	operations["div.f64"] = operation{func(a, b, _ uint64) uint64 { return bits64(f64(a) / f64(b)) }, two}
	operations["fma.f64"] = operation{func(a, b, c uint64) uint64 { return bits64(math.FMA(f64(a), f64(b), f64(c))) },
		three}
	operations["mad.f64"] = operations["fma.f64"]
	operations["rcp.f64"] = operation{func(a, _, _ uint64) uint64 { return bits64(1 / f64(a)) }, one}
	operations["sqrt.f64"] = operation{func(a, _, _ uint64) uint64 { return bits64(math.Sqrt(f64(a))) }, one}
	operations["neg.f64"] = operation{func(a, _, _ uint64) uint64 { return a ^ 1<<63 }, one}
	operations["abs.f64"] = operation{func(a, _, _ uint64) uint64 { return a &^ (1 << 63) }, one}
	operations["copysign.f64"] = operation{func(a, b, _ uint64) uint64 { return a&(1<<63) | b&^(1<<63) }, two}
	operations["min.f64"] = operation{func(a, b, _ uint64) uint64 { return bits64(least(f64(a), f64(b))) }, two}
	operations["max.f64"] = operation{func(a, b, _ uint64) uint64 { return bits64(-least(-f64(a), -f64(b))) }, two}
	// The upper half of the bits, with subnormal numbers flushed to zero.
	operations["rcp.approx.f64"] = operation{func(a, _, _ uint64) uint64 { return upper(1 / f64(a)) }, one}
	operations["rsqrt.approx.f64"] = operation{func(a, _, _ uint64) uint64 { return upper(1 / math.Sqrt(f64(a))) }, one}

	for name, f := range map[string]func(a, b float64) bool{
		"eq": func(a, b float64) bool { return a == b }, "ne": func(a, b float64) bool { return a < b || a > b },
		"lt": func(a, b float64) bool { return a < b }, "le": func(a, b float64) bool { return a <= b },
		"gt": func(a, b float64) bool { return a > b }, "ge": func(a, b float64) bool { return a >= b },
		"equ": func(a, b float64) bool { return !(a < b || a > b) }, "neu": func(a, b float64) bool { return a != b },
		"ltu": func(a, b float64) bool { return !(a >= b) }, "leu": func(a, b float64) bool { return !(a > b) },
		"gtu": func(a, b float64) bool { return !(a <= b) }, "geu": func(a, b float64) bool { return !(a < b) },
		"num": func(a, b float64) bool { return a == a && b == b },
		"nan": func(a, b float64) bool { return a != a || b != b },
	} {
		operations["setp."+name+".f32"] = operation{func(a, b,
			_ uint64) uint64 {
			return truth(f(float64(f32(a)), float64(f32(b))))
		}, []int{4, 4}}
		operations["setp."+name+".f64"] = operation{func(a, b, _ uint64) uint64 { return truth(f(f64(a), f64(b))) },
			two}
	}
	operations["mov.f32"] = operation{func(a, _, _ uint64) uint64 { return a }, []int{4}}
	operations["mov.f64"] = operation{func(a, _, _ uint64) uint64 { return a }, one}
	operations["selp.f32"] = operation{choose, []int{4, 4, 1}}
	operations["selp.f64"] = operation{choose, []int{8, 8, 1}}
}

// upper clears the lower half of a number's bits and flushes subnormal numbers to zero.
func upper(x float64) uint64 { return flush64(math.Float64bits(x)) &^ 0xffffffff }

// least is the smaller number; a number is preferred to NaN, and -0 is less than +0.
func least(a, b float64) float64 {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	case a == 0 && b == 0 && math.Signbit(b), b < a:
		return b
	}
	return a
}

// flush32 and flush64 turn subnormal numbers into 0 with their sign.
func flush32(x uint64) uint64 {
	if x&0x7f800000 == 0 {
		x &= 1 << 31
	}
	return x
}
func flush64(x uint64) uint64 {
	if x&(0x7ff<<52) == 0 {
		x &= 1 << 63
	}
	return x
}

// saturate32 clamps a number to [0, 1]; NaN becomes 0.
func saturate32(x uint64) uint64 {
	switch v := f32(x); {
	case v >= 1:
		return bits32(1)
	case v > 0:
		return x
	}
	return 0
}

// arithmetic returns an instruction's function and the sizes of its sources in bytes.
func arithmetic(name string, o Options) (function, []int, error) {
	parts := strings.Split(name, ".")
	if parts[0] == "cvt" {
		return conversion(parts[1:])
	}
	var rest []string
	flushed, saturated, approximate := false, false, false
	for _, p := range parts {
		switch p {
		case "ftz":
			flushed = true
			continue
		case "sat":
			saturated = true
			continue
		case "rn":
			continue
		case "approx", "full":
			approximate = true
		}
		rest = append(rest, p)
	}
	op, ok := operations[strings.Join(rest, ".")]
	kind := rest[len(rest)-1]
	float := kind == "f32" || kind == "f64"
	rounded := slices.Contains(parts, "rn")
	if !ok || (flushed || saturated || rounded) && !float || saturated && kind != "f32" {
		return nil, nil, errUnknown
	}
	fn := op.fn
	if n := o.Beside; approximate && n != 0 {
		inner := fn
		fn = func(a, b, c uint64) uint64 { return beside(inner(a, b, c), kind, n) }
	}
	if flushed {
		inner, flush := fn, flush32
		if kind == "f64" {
			flush = flush64
		}
		if rest[0] == "setp" {
			fn = func(a, b, _ uint64) uint64 { return inner(flush(a), flush(b), 0) }
		} else {
			fn = func(a, b, c uint64) uint64 { return flush(inner(flush(a), flush(b), flush(c))) }
		}
	}
	if saturated {
		inner := fn
		fn = func(a, b, c uint64) uint64 { return saturate32(inner(a, b, c)) }
	}
	return fn, op.sources, nil
}

// beside moves a normal number n units in the last place away from zero. For float64 the last place is that of the
// upper half.
func beside(x uint64, kind string, n int) uint64 {
	if kind == "f32" {
		if e := x >> 23 & 0xff; e > 1 && e < 254 {
			x += uint64(n)
		}
		return x
	}
	if e := x >> 52 & 0x7ff; e > 1 && e < 2046 {
		x += uint64(n) << 32
	}
	return x
}
