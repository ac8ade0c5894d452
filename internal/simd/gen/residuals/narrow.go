package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// narrow generates the kernels that round a row to elements. The kernels of 16-bit formats stop before a group outside
// the plain range; all return the number of written elements. The others have variants that store past the caches.
func narrow(s isa, f format) {
	if f.size == 2 {
		round16(s, f)
		return
	}
	for _, past := range []bool{false, true} {
		name := "narrow"
		if past {
			name += "Past"
		} else if f.size == 8 {
			continue // a copy
		}
		row, n, dst := s.rounding(name+f.name, func() {})
		for at := 0; at < group*f.size; at += s.Bytes() {
			x := s.Vector()
			if f.size == 8 {
				VMOVUPD(Mem{Base: row, Disp: at}, x)
			} else {
				x = s.singles(s.widen(formats[1], Mem{Base: row, Disp: 2 * at}),
					s.widen(formats[1], Mem{Base: row, Disp: 2*at + s.Bytes()}))
			}
			if past {
				VMOVNTPD(x, Mem{Base: dst, Disp: at})
			} else {
				VMOVUPD(x, Mem{Base: dst, Disp: at})
			}
		}
		s.rounded(f, row, n, dst, past)
	}
}

// rounding begins a kernel of narrow.
func (s isa) rounding(name string, setup func()) (row, n, dst reg.Register) {
	TEXT(name+s.Suffix, NOSPLIT, "func(dst *byte, row []float64) int")
	Pragma("noescape")
	dst = Load(Param("dst"), GP64())
	row, n = Load(Param("row").Base(), GP64()), Load(Param("row").Len(), GP64())
	setup()
	SUBQ(Imm(group), n)
	JL(LabelRef("done"))
	Label("loop")
	return row, n, dst
}

func (s isa) rounded(f format, row, n, dst reg.Register, past bool) {
	ADDQ(Imm(8*group), row)
	ADDQ(Imm(uint64(f.size*group)), dst)
	SUBQ(Imm(group), n)
	JGE(LabelRef("loop"))
	Label("done")
	if past {
		SFENCE()
	}
	ADDQ(Imm(group), n)
	count := Load(Param("row").Len(), GP64())
	SUBQ(n, count)
	Store(count, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// singles rounds two vectors of float64 to one of float32.
func (s isa) singles(lo, hi reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	if s.Masks {
		VCVTPD2PS(lo, lo.AsY())
		VCVTPD2PS(hi, hi.AsY())
		VINSERTF64X4(Imm(1), hi.AsY(), lo, x)
	} else {
		VCVTPD2PSY(lo, lo.AsX())
		VCVTPD2PSY(hi, hi.AsX())
		VINSERTF128(Imm(1), hi.AsX(), lo, x)
	}
	return x
}

// round16 rounds to 16 bits with the result of a single rounding. It first rounds float64 to a number that float32
// holds exactly. For BFloat16 that number is the result. For Float16 it is odd if bits were lost, so that the second
// rounding gives the result of a single one.
func round16(s isa, f format) {
	brain := f.name == "BFloat16"
	limit, drop := math.Float64bits(65520), 29
	if brain {
		limit, drop = math.Float64bits(0x1.ffp127), 45
	}
	var magnitude, below, dropped, unit, least reg.VecVirtual
	row, n, dst := s.rounding("narrow"+f.name, func() {
		magnitude = s.Full(1<<63 - 1)
		below = s.Full(limit - 1)
		dropped = s.Full(1<<drop - 1)
		if !brain {
			unit = s.Full(1 << drop)
			return
		}
		unit, least = s.Full(1), s.Full(math.Float64bits(0x1p-126))
	})
	half := dropped
	if brain {
		half = s.Vector()
		VPSRLQ(Imm(1), dropped, half)
	}
	var values []reg.VecVirtual
	special := s.strange()
	for i := range group / s.Lanes {
		v := s.Vector()
		VMOVUPD(Mem{Base: row, Disp: i * s.Bytes()}, v)
		size := s.AndBits(magnitude, v)
		special.above(size, below)
		if brain {
			special.between(size, least)
			odd := s.Vector()
			VPSRLQ(Imm(uint64(drop)), v, odd)
			VPADDQ(s.AndBits(unit, odd), v, v)
			VPADDQ(half, v, v)
			v = s.AndNotBits(dropped, v)
		} else {
			lost := s.AndBits(dropped, v)
			VPADDQ(half, lost, lost)
			v = s.OrBits(s.AndNotBits(dropped, v), s.AndBits(unit, lost))
		}
		values = append(values, v)
	}
	special.jump("done")
	var words []reg.VecVirtual
	for i := 0; i < len(values); i += 2 {
		x := s.singles(values[i], values[i+1])
		if brain {
			VPSRLD(Imm(16), x, x)
		}
		words = append(words, x)
	}
	switch {
	case brain && s.Masks:
		VPMOVDW(words[0], Mem{Base: dst})
	case brain:
		VPACKUSDW(words[1], words[0], words[0])
		VPERMQ(Imm(0xd8), words[0], words[0])
		VMOVUPD(words[0], Mem{Base: dst})
	default:
		for i, x := range words {
			VCVTPS2PH(Imm(0), x, Mem{Base: dst, Disp: i * s.Bytes() / 2})
		}
	}
	s.rounded(f, row, n, dst, false)
}

// strange records whether a lane is out of the plain range.
type strange struct {
	isa
	mask reg.OpmaskVirtual
	bits reg.VecVirtual
}

func (s isa) strange() *strange {
	k := &strange{isa: s}
	if s.Masks {
		k.mask = K()
		KXORW(k.mask, k.mask, k.mask)
	} else {
		k.bits = s.ZeroBits()
	}
	return k
}

// above records lanes of x that exceed limit.
func (k *strange) above(x, limit reg.VecVirtual) {
	if k.Masks {
		m := K()
		VPCMPQ(Imm(6), limit, x, m)
		KORW(m, k.mask, k.mask)
		return
	}
	m := k.Vector()
	VPCMPGTQ(limit, x, m)
	VPOR(m, k.bits, k.bits)
}

// between records lanes of x that are not 0 but below least.
func (k *strange) between(x, least reg.VecVirtual) {
	if k.Masks {
		m := K()
		VPCMPQ(Imm(1), least, x, m)
		VPTESTMQ(x, x, m, m)
		KORW(m, k.mask, k.mask)
		return
	}
	m, nonzero := k.Vector(), k.Vector()
	VPCMPGTQ(x, least, m)
	VPCMPGTQ(k.ZeroBits(), x, nonzero)
	VPAND(m, nonzero, m)
	VPOR(m, k.bits, k.bits)
}

func (k *strange) jump(label string) {
	if k.Masks {
		KORTESTW(k.mask, k.mask)
	} else {
		VPTEST(k.bits, k.bits)
	}
	JNZ(LabelRef(label))
}

// largest generates the kernels that find the largest bits of elements without their signs. One of them also copies the
// elements past the caches.
func largest(s isa, f format) {
	const ahead = 4 << 10
	for _, past := range []bool{false, true} {
		name, args := "largest", "top *[8]uint64, x *byte, n int"
		if past {
			name, args = "copyLargest", "top *[8]uint64, dst, x *byte, n int"
		}
		TEXT(name+f.name+s.Suffix, NOSPLIT, "func("+args+")")
		Pragma("noescape")
		top, x, n := Load(Param("top"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
		var dst reg.Register
		if past {
			dst = Load(Param("dst"), GP64())
		}
		bits := uint64(1<<63 - 1)
		if f.size == 4 {
			bits = 0x7fffffff7fffffff
		}
		magnitude := s.Full(bits)
		var most []reg.VecVirtual
		for i := range line / s.Bytes() {
			most = append(most, s.Vector())
			VMOVUPD(Mem{Base: top, Disp: i * s.Bytes()}, most[i])
		}
		SUBQ(Imm(group), n)
		JL(LabelRef("done"))
		Label("loop")
		for at := 0; at < group*f.size; at += s.Bytes() {
			if at%line == 0 {
				PREFETCHT0(Mem{Base: x, Disp: at + ahead})
			}
			v, m := s.Vector(), most[at/s.Bytes()%len(most)]
			VMOVUPD(Mem{Base: x, Disp: at}, v)
			if past {
				VMOVNTPD(v, Mem{Base: dst, Disp: at})
			}
			v = s.AndBits(magnitude, v)
			switch {
			case f.size == 4:
				VPMAXUD(v, m, m)
			case s.Masks:
				VPMAXUQ(v, m, m)
			default:
				larger := s.Vector()
				VPCMPGTQ(m, v, larger)
				VBLENDVPD(larger, v, m, m)
			}
		}
		ADDQ(U32(uint32(group*f.size)), x)
		if past {
			ADDQ(U32(uint32(group*f.size)), dst)
		}
		SUBQ(Imm(group), n)
		JGE(LabelRef("loop"))
		Label("done")
		for i, m := range most {
			VMOVUPD(m, Mem{Base: top, Disp: i * s.Bytes()})
		}
		if past {
			SFENCE()
		}
		VZEROUPPER()
		RET()
	}
}
