package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of kern.Args.
const (
	argA          = 8 * iota // *float32
	argB                     // *float32
	argC                     // *float32
	argInit                  // *float32
	argMask                  // *int32
	argOffs                  // *int
	argTaps                  // int
	argDepth                 // int
	argStepA                 // int
	argJumpA                 // int
	argStepC                 // int
	argJumpC                 // int
	argFrom                  // *float32
	argReLU                  // int
	argAhead                 // *byte
	argAheadStep             // int
	argAheadLines            // int
	argZero                  // int
)

// half is the row from which rows are counted from a second base.
const half = 7

// unroll is the number of steps along the depth in one turn of the loop.
const unroll = 4

// kind is the way in which a kernel reads its operands.
type kind int

const (
	products kind = iota // A along the channels
	sums                 // A along the pixels
	pairs                // A along the channels, two at a time
)

// tile is a kernel that keeps rows × vectors accumulators in registers.
type tile struct {
	isa
	rows, vectors int
	kind
}

func (t tile) acc(m, j int) reg.VecPhysical { return t.regs[m*t.vectors+j] }
func (t tile) b(j int) reg.VecPhysical      { return t.regs[t.rows*t.vectors+j] }

// fetches is the number of cache lines of Ahead that a turn of the loop fetches. The largest tiles fetch one for about
// 400 multiply-adds.
func (t tile) fetches() int {
	if t.masks {
		return unroll
	}
	return 1
}

// columns is the number of vectors of C of the tile. Pairs keep two partial sums of each column.
func (t tile) columns() int {
	if t.kind == pairs {
		return 1
	}
	return t.vectors
}

// broadcast is a register for an element of A. It alternates between the free registers.
func (t tile) broadcast(m int) reg.VecPhysical {
	used := (t.rows + 1) * t.vectors
	return t.regs[used+m%min(len(t.regs)-used, 4)]
}

// generate writes the kernel.
func (t tile) generate(name string) {
	TEXT(name, NOSPLIT, "func(a *int)")
	args := Load(Param("a"), GP64())
	t.begin(args)
	step := field(args, argStepA)
	step3 := GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step3)
	b, offs, taps := field(args, argB), field(args, argOffs), field(args, argTaps)
	ahead, aheadStep := field(args, argAhead), field(args, argAheadStep)
	TESTQ(ahead, ahead)
	CMOVQEQ(args, ahead) // a line at hand

	var read func(m, u int) Mem
	var enter, advance func()
	if t.kind == sums {
		read, enter, advance = t.alongPixels(args, offs, step, step3)
	} else {
		read, enter, advance = t.alongChannels(args, offs, step, step3)
	}
	multiply := func(u int) {
		for j := range t.vectors {
			VMOVUPS(Mem{Base: b, Disp: (u*t.vectors + j) * t.bytes}, t.b(j))
		}
		for at := 0; at < t.vectors*t.bytes; at += 64 {
			PREFETCHT0(Mem{Base: b, Disp: t.ahead + u*t.vectors*t.bytes + at})
		}
		for m := range t.rows {
			if t.kind == pairs {
				VBROADCASTSD(read(m, u), t.broadcast(m))
			} else {
				VBROADCASTSS(read(m, u), t.broadcast(m))
			}
			for j := range t.vectors {
				if t.dots {
					dot(t.broadcast(m), t.b(j), t.acc(m, j))
				} else {
					VFMADD231PS(t.broadcast(m), t.b(j), t.acc(m, j))
				}
			}
		}
	}

	Label("tap")
	enter()
	ADDQ(Imm(8), offs)
	depth := field(args, argDepth)
	SUBQ(Imm(unroll), depth)
	JL(LabelRef("rest"))
	Label("loop")
	for u := range unroll {
		if u < t.fetches() {
			PREFETCHT1(Mem{Base: ahead})
			ADDQ(aheadStep, ahead)
		}
		multiply(u)
	}
	ADDQ(U32(unroll*t.vectors*t.bytes), b)
	for range unroll {
		advance()
	}
	SUBQ(Imm(uint64(t.fetches())), Mem{Base: args, Disp: argAheadLines})
	CMOVQLE(Mem{Base: args, Disp: argZero}, aheadStep)
	SUBQ(Imm(unroll), depth)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(unroll), depth)
	JZ(LabelRef("next"))
	Label("single")
	multiply(0)
	ADDQ(U32(uint32(t.vectors*t.bytes)), b)
	advance()
	DECQ(depth)
	JNZ(LabelRef("single"))
	Label("next")
	DECQ(taps)
	JNZ(LabelRef("tap"))
	if t.kind == pairs {
		t.combine(args)
	}
	t.store(args)
}

// combine adds the two sums of each column: in each accumulator, lanes of four hold the even sums of two columns beside
// the odd ones.
func (t tile) combine(args reg.Register) {
	init, odd := t.b(1), t.broadcast(0)
	VMOVUPS(Mem{Base: field(args, argInit)}, init)
	for m := range t.rows {
		first, second := t.acc(m, 0), t.acc(m, 1)
		VSHUFPS(Imm(0b11_01_11_01), second, first, odd)
		VSHUFPS(Imm(0b10_00_10_00), second, first, first)
		VADDPS(odd, first, first)
		VADDPS(init, first, first)
	}
}

func field(args reg.Register, at int) reg.GPVirtual {
	r := GP64()
	MOVQ(Mem{Base: args, Disp: at}, r)
	return r
}

// alongChannels reads row m of A at step·m and depth u at 4u, or at 8u for pairs.
func (t tile) alongChannels(args reg.Register, offs, step, step3 reg.GPVirtual) (read func(m, u int) Mem, enter,
	advance func()) {
	size := 4
	if t.kind == pairs {
		size = 8
	}
	var base [4]reg.GPVirtual // of rows 0, 5, 7 and 12
	first := [4]int{0, 5, half, half + 5}
	used := 0
	for i := range base {
		base[i] = GP64()
		if t.rows > first[i] {
			used = i + 1
		}
	}
	read = func(m, u int) Mem {
		i := used - 1
		for first[i] > m {
			i--
		}
		a := Mem{Base: base[i], Disp: size * u}
		switch m - first[i] {
		case 1:
			a.Index, a.Scale = step, 1
		case 2:
			a.Index, a.Scale = step, 2
		case 3:
			a.Index, a.Scale = step3, 1
		case 4:
			a.Index, a.Scale = step, 4
		}
		return a
	}
	enter = func() {
		MOVQ(Mem{Base: args, Disp: argA}, base[0])
		ADDQ(Mem{Base: offs}, base[0])
		for i := 1; i < used; i++ {
			if first[i] == half {
				MOVQ(Mem{Base: args, Disp: argJumpA}, base[i])
				ADDQ(base[0], base[i])
				continue
			}
			LEAQ(Mem{Base: base[i-1], Index: step, Scale: 4}, base[i])
			ADDQ(step, base[i])
		}
	}
	advance = func() {
		for i := range used {
			ADDQ(Imm(uint64(size)), base[i])
		}
	}
	return read, enter, advance
}

// alongPixels reads row m of A at 4m and depth u at step·u.
func (t tile) alongPixels(args reg.Register, offs, step, step3 reg.GPVirtual) (read func(m, u int) Mem, enter,
	advance func()) {
	base := GP64()
	read = func(m, u int) Mem {
		a := Mem{Base: base, Disp: 4 * m}
		switch u {
		case 1:
			a.Index, a.Scale = step, 1
		case 2:
			a.Index, a.Scale = step, 2
		case 3:
			a.Index, a.Scale = step3, 1
		}
		return a
	}
	enter = func() {
		MOVQ(Mem{Base: args, Disp: argA}, base)
		ADDQ(Mem{Base: offs}, base)
	}
	advance = func() { ADDQ(step, base) }
	return read, enter, advance
}

// walk visits the rows of C.
func (t tile) walk(args reg.Register, visit func(m int, c reg.GPVirtual)) {
	t.rowsFrom(args, field(args, argC), visit)
}

// rowsFrom visits rows with the steps of C, from c on.
func (t tile) rowsFrom(args reg.Register, c reg.GPVirtual, visit func(m int, c reg.GPVirtual)) {
	step := field(args, argStepC)
	second := GP64()
	if t.rows > half {
		MOVQ(c, second)
		ADDQ(Mem{Base: args, Disp: argJumpC}, second)
	}
	for m := range t.rows {
		switch m {
		case 0:
		case half:
			c = second
		default:
			ADDQ(step, c)
		}
		visit(m, c)
	}
}

// begin prefetches C and, except for sums, From, and sets the accumulators: those of pairs to 0.
func (t tile) begin(args reg.Register) {
	init := field(args, argInit)
	for j := range t.vectors {
		if t.kind == pairs {
			VXORPS(t.b(j), t.b(j), t.b(j))
			continue
		}
		VMOVUPS(Mem{Base: init, Disp: j * t.bytes}, t.b(j))
	}
	prefetch := func(c reg.GPVirtual) {
		for at := 0; at < t.columns()*t.bytes; at += 64 {
			PREFETCHT0(Mem{Base: c, Disp: at})
		}
	}
	t.walk(args, func(m int, c reg.GPVirtual) {
		prefetch(c)
		for j := range t.vectors {
			VMOVAPS(t.b(j), t.acc(m, j))
		}
	})
	if t.kind == sums { // their From is C
		return
	}
	from := field(args, argFrom)
	TESTQ(from, from)
	JZ(LabelRef("begun"))
	CMPQ(from, Mem{Base: args, Disp: argC})
	JE(LabelRef("begun"))
	t.rowsFrom(args, from, func(_ int, c reg.GPVirtual) { prefetch(c) })
	Label("begun")
}

// store writes the columns under the mask. It adds argFrom unless that is nil, and clips negative results to 0 if
// argReLU is set.
func (t tile) store(args reg.Register) {
	mask, from, relu := field(args, argMask), field(args, argFrom), field(args, argReLU)
	k := []reg.OpmaskPhysical{reg.K1, reg.K2}
	for j := range t.columns() {
		VMOVUPS(Mem{Base: mask, Disp: j * t.bytes}, t.b(j))
		if t.masks {
			VPMOVD2M(t.b(j), k[j])
		}
	}
	scratch := t.broadcast(0)

	TESTQ(from, from)
	JZ(LabelRef("clip"))
	t.rowsFrom(args, from, func(m int, c reg.GPVirtual) {
		for j := range t.columns() {
			at := Mem{Base: c, Disp: j * t.bytes}
			if t.masks {
				VADDPS_Z(at, t.acc(m, j), k[j], t.acc(m, j))
				continue
			}
			VMASKMOVPS(at, t.b(j), scratch)
			VADDPS(scratch, t.acc(m, j), t.acc(m, j))
		}
	})

	Label("clip")
	TESTQ(relu, relu)
	JZ(LabelRef("set"))
	VXORPS(scratch, scratch, scratch)
	for m := range t.rows {
		for j := range t.columns() {
			VMAXPS(t.acc(m, j), scratch, t.acc(m, j)) // NaN and −0 stay
		}
	}

	Label("set")
	if t.masks {
		t.walk(args, func(m int, c reg.GPVirtual) {
			for j := range t.columns() {
				VMOVUPS(t.acc(m, j), k[j], Mem{Base: c, Disp: j * t.bytes})
			}
		})
		VZEROUPPER()
		RET()
		return
	}
	// The last lane of the mask tells whether all columns are written.
	full := GP32()
	MOVL(Mem{Base: mask, Disp: t.columns()*t.bytes - 4}, full)
	TESTL(full, full)
	JZ(LabelRef("some"))
	t.walk(args, func(m int, c reg.GPVirtual) {
		for j := range t.columns() {
			VMOVUPS(t.acc(m, j), Mem{Base: c, Disp: j * t.bytes})
		}
	})
	VZEROUPPER()
	RET()
	Label("some")
	t.walk(args, func(m int, c reg.GPVirtual) {
		for j := range t.columns() {
			VMASKMOVPS(t.acc(m, j), t.b(j), Mem{Base: c, Disp: j * t.bytes})
		}
	})
	VZEROUPPER()
	RET()
}
