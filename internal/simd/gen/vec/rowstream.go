package main

import (
	"fmt"
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/simd/gen/avx"
)

// rowLanes is the number of sums that a sum along a row runs in.
const rowLanes = 16

// A group has rowGroup rows, or one of more than rowWide elements, so that it stays in the first level cache.
const (
	rowGroup = 4
	rowWide  = 1024
)

// rowStream is a kernel that computes rows one by one: bodies of passes run for rowLanes elements at a time.
type rowStream struct {
	isa
	base        map[string]reg.Register
	start       reg.GPVirtual // bytes from the matrices' first row to the current one
	at, column  reg.GPVirtual // bytes to the current elements, from the first row and from the current one
	paddedStart reg.GPVirtual // likewise for matrices with padding, if there are any
	paddedAt    reg.GPVirtual
	padded      map[string]bool
	width, left reg.GPVirtual // elements of a row, and those behind the current ones
	labels      int

	tally
	mask *mask
	top  []reg.VecVirtual // by unit

	// A group of rows: the bytes to its first one, its rows, the current one of them and its numbers.
	group, paddedGroup, size Mem
	slot                     reg.GPVirtual
	numbers                  map[string]Mem
}

func (k *rowStream) label(stem string) string {
	k.labels++
	return fmt.Sprintf("%s%d", stem, k.labels)
}

func (k *rowStream) units() int { return rowLanes / k.Lanes }

func (k *rowStream) pass(body func()) {
	MOVQ(k.start, k.at)
	if len(k.padded) > 0 {
		MOVQ(k.paddedStart, k.paddedAt)
	}
	XORQ(k.column, k.column)
	MOVQ(k.width, k.left)
	loop, rest, done := k.label("loop"), k.label("rest"), k.label("done")
	SUBQ(Imm(rowLanes), k.left)
	JL(LabelRef(rest))
	Label(loop)
	k.mask = nil
	for k.unit = range k.units() {
		body()
	}
	ADDQ(Imm(4*rowLanes), k.at)
	if len(k.padded) > 0 {
		ADDQ(Imm(4*rowLanes), k.paddedAt)
	}
	ADDQ(Imm(4*rowLanes), k.column)
	SUBQ(Imm(rowLanes), k.left)
	JGE(LabelRef(loop))
	Label(rest)
	ADDQ(Imm(rowLanes), k.left)
	for k.unit = range k.units() {
		JLE(LabelRef(done))
		k.mask = k.First(k.left)
		body()
		if k.unit+1 < k.units() {
			SUBQ(Imm(uint64(k.Lanes)), k.left)
		}
	}
	Label(done)
}

func (k *rowStream) given(slice string, then, otherwise func()) {
	no, end := k.label("no"), k.label("end")
	TESTQ(k.base[slice], k.base[slice])
	JZ(LabelRef(no))
	then()
	if otherwise != nil {
		JMP(LabelRef(end))
	}
	Label(no)
	if otherwise != nil {
		otherwise()
		Label(end)
	}
}

func (k *rowStream) mem(name string, at reg.GPVirtual) Mem {
	return Mem{Base: k.base[name], Index: at, Scale: 1, Disp: k.unit * k.Bytes()}
}

func (k *rowStream) in(name string) reg.VecVirtual {
	if k.padded[name] {
		return k.Load(k.mem(name, k.paddedAt), nil)
	}
	return k.Load(k.mem(name, k.at), k.mask)
}

func (k *rowStream) parameter(name string) reg.VecVirtual {
	return k.Load(k.mem(name, k.column), k.mask)
}

func (k *rowStream) out(name string, x reg.VecVirtual) {
	if k.padded[name] {
		k.Store(k.some(x, k.mask), k.mem(name, k.paddedAt), nil)
		return
	}
	k.Store(x, k.mem(name, k.at), k.mask)
}

func (k *rowStream) scalar(name string) reg.VecVirtual { return k.Scalar(name) }

func (k *rowStream) exp(x reg.VecVirtual) reg.VecVirtual {
	return exponential[Op](single{k.isa}, x).(reg.VecVirtual)
}

func (k *rowStream) withoutSmall(x reg.VecVirtual) reg.VecVirtual {
	limit := k.Vector()
	VMOVUPS(k.constant("small", func(int) uint32 { return math.Float32bits(0x1p-100) }), limit)
	return k.Passed(x, x, limit)
}

func (k *rowStream) lowest() {
	k.top = nil
	for range k.units() {
		x := k.Vector()
		VMOVUPS(k.constant("lowest", func(int) uint32 { return 0xff800000 }), x)
		k.top = append(k.top, x)
	}
}

func (k *rowStream) raise(x reg.VecVirtual) {
	top := k.top[k.unit]
	switch {
	case k.mask == nil:
		VMAXPS(top, x, top)
	case k.Masks:
		VMAXPS(top, x, k.mask.Opmask(), top)
	default:
		larger := k.Vector()
		VMAXPS(top, x, larger)
		VBLENDVPS(k.mask.Vector(), larger, top, top)
	}
}

func (k *rowStream) highest() reg.VecVirtual {
	x := k.top[0]
	if len(k.top) > 1 {
		VMAXPS(k.top[1], x, x)
	}
	high := XMM()
	if k.Masks {
		y := YMM()
		VEXTRACTF64X4(Imm(1), x, y)
		VMAXPS(x.AsY(), y, y)
		VEXTRACTF128(Imm(1), y, high)
		VMAXPS(y.AsX(), high, high)
	} else {
		VEXTRACTF128(Imm(1), x, high)
		VMAXPS(x.AsX(), high, high)
	}
	for _, order := range []uint64{0x4e, 0xb1} { // by two lanes, and by one
		other := XMM()
		VPERMILPS(Imm(order), high, other)
		VMAXPS(other, high, high)
	}
	VCVTSS2SD(high, high, high)
	return high
}

func (k *rowStream) clear(sums ...string) {
	for _, name := range sums {
		k.sums[name] = make([][2]reg.VecVirtual, k.units())
		for i := range k.sums[name] {
			k.sums[name][i] = [2]reg.VecVirtual{k.Zero(), k.Zero()}
		}
	}
}

func (k *rowStream) doubles(x reg.VecVirtual) [2]reg.VecVirtual {
	return k.isa.doubles(k.some(x, k.mask))
}

func (k *rowStream) total(name string) reg.VecVirtual {
	var sums []reg.VecVirtual // in the order of their lanes
	for _, s := range k.sums[name] {
		sums = append(sums, s[:]...)
	}
	for n := len(sums) / 2; n > 0; n /= 2 {
		for i := range n {
			VADDPD(sums[i+n], sums[i], sums[i])
		}
	}
	return k.Sum(sums[0])
}

func (k *rowStream) addColumns(to string, d [2]reg.VecVirtual) {
	for i, x := range d {
		m := Mem{Base: k.base[to], Index: k.column, Scale: 2, Disp: (2*k.unit + i) * k.Bytes()}
		VADDPD(m, x, x)
		VMOVUPD(x, m)
	}
}

func (k *rowStream) number(name string) reg.VecVirtual {
	x := XMM()
	a, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	VMOVSD(a.Addr, x)
	return x
}

func (k *rowStream) count() reg.VecVirtual {
	x := XMM()
	VXORPD(x, x, x)
	VCVTSI2SDQ(k.width, x, x)
	return x
}

func (k *rowStream) one() reg.VecVirtual {
	x := XMM()
	VMOVSD(avx.AVX2(8).Number("one", 1), x)
	return x
}

func (k *rowStream) calculate(op string, a, b reg.VecVirtual) reg.VecVirtual {
	of := map[string]func(...Op){"+": VADDSD, "-": VSUBSD, "*": VMULSD, "/": VDIVSD, "max": VMAXSD}[op]
	x := XMM()
	of(b, a, x)
	return x
}

func (k *rowStream) root(n reg.VecVirtual) reg.VecVirtual {
	x := XMM()
	VSQRTSD(n, n, x)
	return x
}

func (k *rowStream) single(n reg.VecVirtual) reg.VecVirtual {
	x := XMM()
	VCVTSD2SS(n, n, x)
	VCVTSS2SD(x, x, x)
	return x
}

func (k *rowStream) all(n reg.VecVirtual) reg.VecVirtual {
	x, y := XMM(), k.Vector()
	VCVTSD2SS(n, n, x)
	VBROADCASTSS(x, y)
	return y
}

// phase counts the group's rows up in k.slot.
func (k *rowStream) phase(body func()) {
	MOVQ(k.group, k.start)
	if len(k.padded) > 0 {
		MOVQ(k.paddedGroup, k.paddedStart)
	}
	XORQ(k.slot, k.slot)
	row := k.label("row")
	Label(row)
	body()
	LEAQ(Mem{Base: k.start, Index: k.width, Scale: 4}, k.start)
	if len(k.padded) > 0 {
		LEAQ(Mem{Base: k.width, Disp: rowLanes - 1}, k.left)
		ANDQ(I32(-rowLanes), k.left)
		LEAQ(Mem{Base: k.paddedStart, Index: k.left, Scale: 4}, k.paddedStart)
	}
	ADDQ(Imm(1), k.slot)
	CMPQ(k.slot, k.size)
	JL(LabelRef(row))
}

// place is the memory of a number of the current row.
func (k *rowStream) place(name string) Mem {
	m, ok := k.numbers[name]
	if !ok {
		m = AllocLocal(8 * rowGroup)
		k.numbers[name] = m
	}
	return m.Idx(k.slot, 8)
}

func (k *rowStream) keep(name string, x reg.VecVirtual) { VMOVSD(x, k.place(name)) }

func (k *rowStream) kept(name string) reg.VecVirtual {
	x := XMM()
	VMOVSD(k.place(name), x)
	return x
}

// rows generates the kernels that run along rows.
func rows(s isa) {
	for _, g := range rowKernels[reg.VecVirtual, [2]reg.VecVirtual, reg.VecVirtual]() {
		k := &rowStream{isa: s, base: make(map[string]reg.Register), padded: make(map[string]bool),
			tally: newTally(), numbers: make(map[string]Mem)}
		TEXT(g.name+s.Suffix, NOSPLIT, "func"+g.signature())
		Pragma("noescape")
		for _, name := range strings.Fields(g.padded + " " + g.matrices + " " + g.parameters + " " + g.sums) {
			k.base[name] = Load(Param(name).Base(), GP64())
		}
		for _, name := range strings.Fields(g.padded) {
			k.padded[name] = true
		}
		k.start, k.at, k.column, k.left, k.slot = GP64(), GP64(), GP64(), GP64(), GP64()
		k.width = Load(Param("width"), GP64()).(reg.GPVirtual)
		k.group, k.size, k.paddedGroup = AllocLocal(8), AllocLocal(8), AllocLocal(8)
		rows := AllocLocal(8)
		MOVQ(Load(Param("rows"), GP64()), rows)
		MOVQ(U32(0), k.group)
		if len(k.padded) > 0 {
			k.paddedStart, k.paddedAt = GP64(), GP64()
			MOVQ(U32(0), k.paddedGroup)
		}
		Label("group")
		// The last group may be smaller, those of wide rows have one row.
		MOVQ(U32(rowGroup), k.slot)
		CMPQ(k.width, U32(rowWide))
		JLE(LabelRef("narrow"))
		MOVQ(U32(1), k.slot)
		Label("narrow")
		CMPQ(k.slot, rows)
		CMOVQGT(rows, k.slot)
		MOVQ(k.slot, k.size)
		g.body(k)
		MOVQ(k.start, k.group)
		if len(k.padded) > 0 {
			MOVQ(k.paddedStart, k.paddedGroup)
		}
		SUBQ(k.slot, rows)
		JG(LabelRef("group"))
		VZEROUPPER()
		RET()
	}
}
