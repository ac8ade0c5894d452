package ptx

import (
	"math/bits"
	"strconv"
	"unsafe"
)

// An operation is arithmetic with the sizes of its sources in bytes.
type operation struct {
	fn      function
	sources []int
}

// operations are those that their name defines fully. Names omit .rn, .ftz and .sat, which arithmetic decodes.
var operations = map[string]operation{}

type unsigned interface{ uint16 | uint32 | uint64 }
type signed interface{ int16 | int32 | int64 }

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func init() {
	integers[uint16, int16]()
	integers[uint32, int32]()
	integers[uint64, int64]()
	wide[uint16, int16, uint32, int32]()
	wide[uint32, int32, uint64, int64]()
	mulHigh()
	predicates()
}

// integers adds the operations on unsigned, signed and untyped integers of one width.
func integers[U unsigned, S signed]() {
	size := int(unsafe.Sizeof(U(0)))
	width := uint64(8 * size)
	n := strconv.Itoa(8 * size)
	u, s, b := ".u"+n, ".s"+n, ".b"+n
	one, two, three := []int{size}, []int{size, size}, []int{size, size, size}
	both := func(name string, sources []int, f function) {
		operations[name+u], operations[name+s] = operation{f, sources}, operation{f, sources}
	}
	both("add", two, func(a, b, _ uint64) uint64 { return uint64(U(a) + U(b)) })
	both("sub", two, func(a, b, _ uint64) uint64 { return uint64(U(a) - U(b)) })
	both("mul.lo", two, func(a, b, _ uint64) uint64 { return uint64(U(a) * U(b)) })
	both("mad.lo", three, func(a, b, c uint64) uint64 { return uint64(U(a)*U(b) + U(c)) })
	operations["div"+u] = operation{func(a, b, _ uint64) uint64 { return uint64(U(a) / divisor(U(b))) }, two}
	operations["rem"+u] = operation{func(a, b, _ uint64) uint64 { return uint64(U(a) % divisor(U(b))) }, two}
	operations["div"+s] = operation{func(a, b, _ uint64) uint64 { return uint64(U(S(a) / divisor(S(b)))) }, two}
	operations["rem"+s] = operation{func(a, b, _ uint64) uint64 { return uint64(U(S(a) % divisor(S(b)))) }, two}
	operations["min"+u] = operation{func(a, b, _ uint64) uint64 { return uint64(min(U(a), U(b))) }, two}
	operations["max"+u] = operation{func(a, b, _ uint64) uint64 { return uint64(max(U(a), U(b))) }, two}
	operations["min"+s] = operation{func(a, b, _ uint64) uint64 { return uint64(U(min(S(a), S(b)))) }, two}
	operations["max"+s] = operation{func(a, b, _ uint64) uint64 { return uint64(U(max(S(a), S(b)))) }, two}
	operations["neg"+s] = operation{func(a, _, _ uint64) uint64 { return uint64(-U(a)) }, one}
	operations["abs"+s] = operation{func(a, _, _ uint64) uint64 {
		if S(a) < 0 {
			return uint64(-U(a))
		}
		return uint64(U(a))
	}, one}

	operations["and"+b] = operation{func(a, b, _ uint64) uint64 { return a & b }, two}
	operations["or"+b] = operation{func(a, b, _ uint64) uint64 { return a | b }, two}
	operations["xor"+b] = operation{func(a, b, _ uint64) uint64 { return a ^ b }, two}
	operations["not"+b] = operation{func(a, _, _ uint64) uint64 { return uint64(^U(a)) }, one}
	operations["popc"+b] = operation{func(a, _, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) }, one}
	operations["clz"+b] = operation{func(a, _, _ uint64) uint64 {
		return uint64(bits.LeadingZeros64(a)) -
			(64 - width)
	}, one}
	operations["brev"+b] = operation{func(a, _, _ uint64) uint64 { return bits.Reverse64(a) >> (64 - width) }, one}
	// Shift counts are clamped to the width.
	shift := []int{size, 4}
	operations["shl"+b] = operation{func(a, b, _ uint64) uint64 { return uint64(U(a) << min(b, width)) }, shift}
	operations["shr"+u] = operation{func(a, b, _ uint64) uint64 { return uint64(U(a) >> min(b, width)) }, shift}
	operations["shr"+b] = operations["shr"+u]
	operations["shr"+s] = operation{func(a, b, _ uint64) uint64 { return uint64(U(S(a) >> min(b, width))) }, shift}
	field := []int{size, 4, 4}
	operations["bfe"+u] = operation{func(a, b, c uint64) uint64 {
		from, n := min(b&0xff, width), c&0xff
		if n >= 64 {
			return uint64(U(a) >> from)
		}
		return uint64(U(a)>>from) & (1<<n - 1)
	}, field}
	operations["bfe"+s] = operation{func(a, b, c uint64) uint64 {
		from, n := b&0xff, c&0xff
		if n == 0 {
			return 0
		}
		sign := S(a) >> min(from+n-1, width-1) & 1
		v := uint64(U(a) >> min(from, width))
		if have := min(n, width); n < width || from > 0 {
			// Above the field, and beyond the number's bits, comes the sign.
			have = min(have, width-min(from, width))
			if v &= 1<<have - 1; sign != 0 {
				v |= ^uint64(0) << have
			}
		}
		return uint64(U(v))
	}, field}

	for _, t := range []string{u, s, b} {
		operations["mov"+t] = operation{func(a, _, _ uint64) uint64 { return a }, one}
		operations["selp"+t] = operation{choose, []int{size, size, 1}}
		operations["setp.eq"+t] = operation{func(a, b, _ uint64) uint64 { return truth(U(a) == U(b)) }, two}
		operations["setp.ne"+t] = operation{func(a, b, _ uint64) uint64 { return truth(U(a) != U(b)) }, two}
	}
	operations["setp.lt"+u] = operation{func(a, b, _ uint64) uint64 { return truth(U(a) < U(b)) }, two}
	operations["setp.le"+u] = operation{func(a, b, _ uint64) uint64 { return truth(U(a) <= U(b)) }, two}
	operations["setp.gt"+u] = operation{func(a, b, _ uint64) uint64 { return truth(U(a) > U(b)) }, two}
	operations["setp.ge"+u] = operation{func(a, b, _ uint64) uint64 { return truth(U(a) >= U(b)) }, two}
	operations["setp.lt"+s] = operation{func(a, b, _ uint64) uint64 { return truth(S(a) < S(b)) }, two}
	operations["setp.le"+s] = operation{func(a, b, _ uint64) uint64 { return truth(S(a) <= S(b)) }, two}
	operations["setp.gt"+s] = operation{func(a, b, _ uint64) uint64 { return truth(S(a) > S(b)) }, two}
	operations["setp.ge"+s] = operation{func(a, b, _ uint64) uint64 { return truth(S(a) >= S(b)) }, two}
}

func choose(a, b, c uint64) uint64 {
	if c != 0 {
		return a
	}
	return b
}

// divisor refuses 0, for which PTX defines no result.
func divisor[T unsigned | signed](x T) T {
	if x == 0 {
		panic(&Fault{Why: "an integer division by zero"})
	}
	return x
}

// wide adds products of twice the width.
func wide[U unsigned, S signed, U2 unsigned, S2 signed]() {
	size := int(unsafe.Sizeof(U(0)))
	n := strconv.Itoa(8 * size)
	operations["mul.wide.u"+n] = operation{func(a, b, _ uint64) uint64 { return uint64(U2(U(a)) * U2(U(b))) },
		[]int{size, size}}
	operations["mul.wide.s"+n] = operation{func(a, b, _ uint64) uint64 { return uint64(U2(S2(S(a)) * S2(S(b)))) },
		[]int{size, size}}
	operations["mad.wide.u"+n] = operation{func(a, b, c uint64) uint64 { return uint64(U2(U(a))*U2(U(b)) + U2(c)) },
		[]int{size, size, 2 * size}}
	operations["mad.wide.s"+n] = operation{func(a, b, c uint64) uint64 { return uint64(U2(S2(S(a))*S2(S(b))) + U2(c)) },
		[]int{size, size, 2 * size}}
}

func mulHigh() {
	operations["mul.hi.u16"] = operation{func(a, b, _ uint64) uint64 { return a * b >> 16 }, []int{2, 2}}
	operations["mul.hi.s16"] = operation{func(a, b, _ uint64) uint64 {
		return uint64(uint16(int32(int16(a)) * int32(int16(b)) >> 16))
	}, []int{2, 2}}
	operations["mul.hi.u32"] = operation{func(a, b, _ uint64) uint64 { return a * b >> 32 }, []int{4, 4}}
	operations["mul.hi.s32"] = operation{func(a, b, _ uint64) uint64 {
		return uint64(uint32(int64(int32(a)) *
			int64(int32(b)) >> 32))
	}, []int{4, 4}}
	operations["mul.hi.u64"] = operation{func(a, b, _ uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi },
		[]int{8, 8}}
	operations["mul.hi.s64"] = operation{func(a, b, _ uint64) uint64 {
		hi, _ := bits.Mul64(a, b)
		return hi - uint64(int64(a)>>63)&b - uint64(int64(b)>>63)&a
	}, []int{8, 8}}
	operations["prmt.b32"] = operation{permute, []int{4, 4, 4}}
}

// permute selects four of the eight bytes of b and a; a selector's highest bit fills the byte with its sign.
func permute(a, b, c uint64) uint64 {
	all := b<<32 | a
	var v uint64
	for i := 0; i < 32; i += 8 {
		s := c >> (i / 2)
		x := all >> (8 * (s & 7)) & 0xff
		if s&8 != 0 {
			x = 0xff * (x >> 7)
		}
		v |= x << i
	}
	return v
}

func predicates() {
	two := []int{1, 1}
	operations["and.pred"] = operation{func(a, b, _ uint64) uint64 { return a & b }, two}
	operations["or.pred"] = operation{func(a, b, _ uint64) uint64 { return a | b }, two}
	operations["xor.pred"] = operation{func(a, b, _ uint64) uint64 { return a ^ b }, two}
	operations["not.pred"] = operation{func(a, _, _ uint64) uint64 { return a ^ 1 }, []int{1}}
	operations["mov.pred"] = operation{func(a, _, _ uint64) uint64 { return truth(a != 0) }, []int{1}}
}

// lookup is lop3: the bits of a, b and c select each result bit from the table.
func lookup(table uint64) function {
	return func(a, b, c uint64) uint64 {
		var v uint64
		for i := range uint64(8) {
			if table>>i&1 == 0 {
				continue
			}
			x := uint64(0xffffffff)
			for j, o := range [3]uint64{c, b, a} {
				if i>>j&1 == 0 {
					o = ^o
				}
				x &= o
			}
			v |= x
		}
		return v
	}
}

// insert is bfi: n bits of a replace those of b, starting at bit from.
func insert(from, n, width uint64) function {
	var field uint64
	if from < width {
		field = ^uint64(0)
		if n < 64 {
			field = 1<<n - 1
		}
		field = field << from & (^uint64(0) >> (64 - width))
	}
	return func(a, b, _ uint64) uint64 { return b&^field | a<<from&field }
}
