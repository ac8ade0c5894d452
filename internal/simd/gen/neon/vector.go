package neon

import (
	"fmt"
	"math"
	"strings"
)

// Shape is the division of a register into lanes.
type Shape int

// The shapes: four of 32 bits, two of 64.
const (
	S4 Shape = iota
	D2
)

func (s Shape) manual() string { return [...]string{"4s", "2d"}[s] }
func (s Shape) golang() string { return [...]string{"S4", "D2"}[s] }

// lane is the letter of a lane.
func (s Shape) lane() string { return [...]string{"s", "d"}[s] }

// Bytes is the size of a register.
const Bytes = 16

// size is the size of a lane, in bytes.
func (s Shape) size() int { return [...]int{4, 8}[s] }

func vecs(vs ...Vec) (list []*register) {
	for _, v := range vs {
		list = append(list, v.r)
	}
	return list
}

// operation is an instruction of two or three registers of one shape.
type operation struct {
	code   [2]uint32 // by shape; 0 for none
	golang string    // its name in Go's assembler
	unary  bool
	bits   bool // lanes do not matter
	adds   bool // reads its destination too
}

func float(code uint32) operation { return operation{code: [2]uint32{code, code | 1<<22}} }

func unary(code uint32) operation { o := float(code); o.unary = true; return o }

func named(code uint32, golang string) operation {
	o := float(code)
	o.golang = golang
	return o
}

func logic(code uint32, golang string) operation {
	return operation{code: [2]uint32{code, code}, golang: golang, bits: true}
}

func (o operation) onto() operation { o.adds = true; return o }

// operations have the names of the manual.
var operations = map[string]operation{
	"fadd": float(0x4e20d400), "fsub": float(0x4ea0d400), "fmul": float(0x6e20dc00), "fdiv": float(0x6e20fc00),
	"fmax": float(0x4e20f400), "fmin": float(0x4ea0f400),
	"fmla": named(0x4e20cc00, "VFMLA").onto(), "fmls": named(0x4ea0cc00, "VFMLS").onto(),
	"fcmeq": float(0x4e20e400), "fcmge": float(0x6e20e400), "fcmgt": float(0x6ea0e400),
	"fsqrt": unary(0x6ea1f800), "fneg": unary(0x6ea0f800), "fabs": unary(0x4ea0f800),
	"ucvtf": unary(0x6e21d800), "frintn": unary(0x4e218800), "fcvtzs": unary(0x4ea1b800),
	"add": named(0x4ea08400, "VADD"), "sub": named(0x6ea08400, "VSUB"),
	"cmeq": named(0x6ea08c00, "VCMEQ"), "cmhi": float(0x6ea03400), "cmtst": named(0x4ea08c00, "VCMTST"),
	"umax": {code: [2]uint32{0x6ea06400, 0}, golang: "VUMAX"},
	"zip1": named(0x4e803800, "VZIP1"), "zip2": named(0x4e807800, "VZIP2"), "uzp1": named(0x4e801800, "VUZP1"),
	"uzp2": named(0x4e805800, "VUZP2"),
	"and":  logic(0x4e201c00, "VAND"), "orr": logic(0x4ea01c00, "VORR"), "eor": logic(0x6e201c00, "VEOR"),
	"bic": logic(0x4e601c00, ""), "bsl": logic(0x6e601c00, "VBSL").onto(), "bit": logic(0x6ea01c00, "VBIT").onto(),
}

// Op applies an operation, by the manual's name, to one or two registers and returns a new one.
func (k *Func) Op(name string, s Shape, from ...Vec) Vec {
	v := k.vec()
	k.Into(v, name, s, from...)
	return v
}

// Into is Op with the result in v. Operations such as fmla read v too.
func (k *Func) Into(v Vec, name string, s Shape, from ...Vec) {
	o, ok := operations[name]
	if !ok || o.code[s] == 0 || len(from) != 2 && !o.unary || o.unary && len(from) != 1 {
		panic(fmt.Sprintf("%s: %s of %d vectors of %s", k.name, name, len(from), s.manual()))
	}
	reads := vecs(from...)
	if o.adds {
		reads = append(reads, v.r)
	}
	manual, golang := s.manual(), s.golang()
	if o.bits {
		manual, golang = "16b", "B16"
	}
	k.put(vecs(v), reads, func() string {
		if o.unary {
			return word(o.code[s]|from[0].n()<<5|v.n(), "%s v%d.%s, v%d.%s", name, v.n(), manual, from[0].n(), manual)
		}
		a, b := from[0], from[1]
		if o.golang != "" {
			return fmt.Sprintf("%s %v.%s, %v.%s, %v.%s", o.golang, b, golang, a, golang, v, golang)
		}
		return word(o.code[s]|b.n()<<16|a.n()<<5|v.n(), "%s v%d.%s, v%d.%s, v%d.%s", name, v.n(), manual, a.n(), manual,
			b.n(), manual)
	})
}

// zeroCompares compare with 0.
var zeroCompares = map[string]uint32{"fcmle": 0x6ea0d800, "fcmlt": 0x4ea0e800}

// CompareZero returns lanes of ones where a compares with 0 as named, and of zeros elsewhere.
func (k *Func) CompareZero(name string, s Shape, a Vec) Vec {
	v := k.vec()
	code, ok := zeroCompares[name]
	if !ok {
		panic(fmt.Sprintf("%s: %s with 0", k.name, name))
	}
	code |= uint32(s) << 22
	k.put(vecs(v), vecs(a), func() string {
		return word(code|a.n()<<5|v.n(), "%s v%d.%s, v%d.%s, #0.0", name, v.n(), s.manual(), a.n(), s.manual())
	})
	return v
}

// element is the fields of an instruction that select lane i of b.
func element(s Shape, b Vec, i int) uint32 {
	if s == D2 {
		return b.n()<<16 | uint32(i)<<11
	}
	return b.n()<<16 | uint32(i&1)<<21 | uint32(i>>1)<<11
}

func (k *Func) byElement(name string, code uint32, s Shape, adds bool, v, a, b Vec, i int) {
	reads := vecs(a, b)
	if adds {
		reads = append(reads, v.r)
	}
	k.put(vecs(v), reads, func() string {
		return word(code|uint32(s)<<22|element(s, b, i)|a.n()<<5|v.n(), "%s v%d.%s, v%d.%s, v%d.%s[%d]",
			name, v.n(), s.manual(), a.n(), s.manual(), b.n(), s.lane(), i)
	})
}

// AddTimes adds a times lane i of b to v, SubTimes subtracts it, both with one rounding. Times is a times lane i of b.
func (k *Func) AddTimes(v Vec, s Shape, a, b Vec, i int) {
	k.byElement("fmla", 0x4f801000, s, true, v, a, b, i)
}
func (k *Func) SubTimes(v Vec, s Shape, a, b Vec, i int) {
	k.byElement("fmls", 0x4f805000, s, true, v, a, b, i)
}
func (k *Func) Times(s Shape, a, b Vec, i int) Vec {
	v := k.vec()
	k.byElement("fmul", 0x4f809000, s, false, v, a, b, i)
	return v
}

// plain is an instruction of two registers with separate shapes.
func (k *Func) plain(v Vec, adds bool, code uint32, manual string, a Vec) {
	reads := vecs(a)
	if adds {
		reads = append(reads, v.r)
	}
	k.put(vecs(v), reads, func() string { return word(code|a.n()<<5|v.n(), manual, v.n(), a.n()) })
}

// Doubles widens the lower and the upper half of four numbers.
func (k *Func) Doubles(a Vec) [2]Vec {
	lo, hi := k.vec(), k.vec()
	k.plain(lo, false, 0x0e617800, "fcvtl v%d.2d, v%d.2s", a)
	k.plain(hi, false, 0x4e617800, "fcvtl2 v%d.2d, v%d.4s", a)
	return [2]Vec{lo, hi}
}

// Double is the lower half of Doubles.
func (k *Func) Double(a Vec) Vec {
	v := k.vec()
	k.plain(v, false, 0x0e617800, "fcvtl v%d.2d, v%d.2s", a)
	return v
}

// Singles rounds two vectors of two numbers to one vector of four.
func (k *Func) Singles(lo, hi Vec) Vec {
	v := k.vec()
	k.plain(v, false, 0x0e616800, "fcvtn v%d.2s, v%d.2d", lo)
	k.plain(v, true, 0x4e616800, "fcvtn2 v%d.4s, v%d.2d", hi)
	return v
}

// Shifted is a with each lane shifted by n bits: up, or down with zeros.
func (k *Func) Shifted(s Shape, a Vec, n int) Vec {
	v := k.vec()
	bits := 8 * s.size()
	k.put(vecs(v), vecs(a), func() string {
		name, code := "shl", uint32(0x4f005400)|uint32(bits+n)<<16
		if n < 0 {
			name, code = "ushr", uint32(0x6f000400)|uint32(2*bits+n)<<16
		}
		return word(code|a.n()<<5|v.n(), "%s v%d.%s, v%d.%s, #%d", name, v.n(), s.manual(), a.n(), s.manual(), max(n, -n))
	})
	return v
}

// Products32 multiplies the unsigned 32-bit lanes 0 and 1 of a and b, or 2 and 3, to two of 64 bits.
func (k *Func) Products32(upper bool, a, b Vec) Vec {
	v := k.vec()
	k.put(vecs(v), vecs(a, b), func() string {
		name, code, from := "umull", uint32(0x2ea0c000), "2s"
		if upper {
			name, code, from = "umull2", 0x6ea0c000, "4s"
		}
		return word(code|b.n()<<16|a.n()<<5|v.n(), "%s v%d.2d, v%d.%s, v%d.%s", name, v.n(), a.n(), from, b.n(), from)
	})
	return v
}

// SumInts is the sum of four integers in lane 0, LargestInt the largest of them.
func (k *Func) SumInts(a Vec) Vec {
	v := k.vec()
	k.plain(v, false, 0x4eb1b800, "addv s%d, v%d.4s", a)
	return v
}

func (k *Func) LargestInt(a Vec) Vec {
	v := k.vec()
	k.plain(v, false, 0x6eb0a800, "umaxv s%d, v%d.4s", a)
	return v
}

// Pair is the sum of both lanes of a, in lane 0.
func (k *Func) Pair(a Vec) Vec {
	v := k.vec()
	k.plain(v, false, 0x7e70d800, "faddp d%d, v%d.2d", a)
	return v
}

// Same is another register with the value of a.
func (k *Func) Same(a Vec) Vec { v := k.vec(); k.Move(v, a); return v }

// Move sets v to a.
func (k *Func) Move(v, a Vec) { k.Into(v, "orr", S4, a, a) }

// Zero is a vector of zeros.
func (k *Func) Zero() Vec {
	v := k.vec()
	k.put(vecs(v), nil, func() string { return word(0x6f00e400|v.n(), "movi v%d.2d, #0", v.n()) })
	return v
}

// Ones is a vector whose bits are all set.
func (k *Func) Ones() Vec {
	v := k.vec()
	k.put(vecs(v), nil, func() string { return word(0x6f07e7e0|v.n(), "movi v%d.2d, #0xffffffffffffffff", v.n()) })
	return v
}

// All copies lane i of a to all lanes, AllOf a general register.
func (k *Func) All(s Shape, a Vec, i int) Vec {
	v := k.vec()
	k.put(vecs(v), vecs(a), func() string {
		return fmt.Sprintf("VDUP %v.%s[%d], %v.%s", a, strings.ToUpper(s.lane()), i, v, s.golang())
	})
	return v
}

func (k *Func) AllOf(s Shape, g GP) Vec {
	v := k.vec()
	k.put(vecs(v), regs(g), func() string { return fmt.Sprintf("VDUP %v, %v.%s", g, v, s.golang()) })
	return v
}

// Bits is a vector full of a constant.
func (k *Func) Bits(s Shape, bits uint64) Vec { return k.AllOf(s, k.Int(int(bits))) }

// Number is a vector full of x.
func (k *Func) Number(s Shape, x float64) Vec {
	if s == S4 {
		return k.Bits(s, uint64(math.Float32bits(float32(x))))
	}
	return k.Bits(s, math.Float64bits(x))
}

// Word is the lowest 32 bits of a.
func (k *Func) Word(a Vec) GP {
	g := k.gp()
	k.put(regs(g), vecs(a), func() string { return fmt.Sprintf("FMOVS %s, %v", a.f(), g) })
	return g
}

// SetLane sets lane i of v to lane 0 of a.
func (k *Func) SetLane(s Shape, v Vec, i int, a Vec) {
	k.put(vecs(v), vecs(v, a), func() string {
		return fmt.Sprintf("VMOV %v.%s[0], %v.%s[%d]", a, upper(s), v, upper(s), i)
	})
}

// TimesInto sets v to a times lane i of b.
func (k *Func) TimesInto(v Vec, s Shape, a, b Vec, i int) {
	k.byElement("fmul", 0x4f809000, s, false, v, a, b, i)
}

// Negative returns lanes of ones for negative integers, and of zeros for others.
func (k *Func) Negative(a Vec) Vec {
	v := k.vec()
	k.plain(v, false, 0x4ea0a800, "cmlt v%d.4s, v%d.4s, #0", a)
	return v
}

// Halves widens four numbers of 16 bits in the lower half of a to 32 bits; HalvesOf rounds four numbers to 16 bits, in
// the lower half.
func (k *Func) Halves(a Vec) Vec {
	v := k.vec()
	k.plain(v, false, 0x0e217800, "fcvtl v%d.4s, v%d.4h", a)
	return v
}

func (k *Func) HalvesOf(a Vec) Vec {
	v := k.vec()
	k.plain(v, false, 0x0e216800, "fcvtn v%d.4h, v%d.4s", a)
	return v
}

// Raised moves four integers of 16 bits in the lower half of a to the upper halves of 32-bit lanes; Lowered is the
// reverse.
func (k *Func) Raised(a Vec) Vec {
	v := k.vec()
	k.plain(v, false, 0x2e613800, "shll v%d.4s, v%d.4h, #16", a)
	return v
}

func (k *Func) Lowered(a Vec) Vec {
	v := k.vec()
	k.plain(v, false, 0x0f108400, "shrn v%d.4h, v%d.4s, #16", a)
	return v
}

// OddSingles is Singles that rounds to odd: another rounding to fewer bits then gives the result of a single rounding.
func (k *Func) OddSingles(lo, hi Vec) Vec {
	v := k.vec()
	k.plain(v, false, 0x2e616800, "fcvtxn v%d.2s, v%d.2d", lo)
	k.plain(v, true, 0x6e616800, "fcvtxn2 v%d.4s, v%d.2d", hi)
	return v
}
