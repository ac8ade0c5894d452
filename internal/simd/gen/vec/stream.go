package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	line = 64 // bytes of a cache line
	// ahead is the prefetch distance in bytes: a page, since processors do not prefetch across pages by themselves.
	ahead = 4 << 10
)

// stream is a kernel with one pass over slices of equal length. Some have a row of parameters beside them that is
// repeated.
type stream struct {
	isa
	past       bool          // whether results go past the caches
	stored     bool          // whether the slices are stored as bfloat16
	at, column reg.GPVirtual // bytes, in the slices and in the row
	base       map[string]reg.Register
	row        map[string]bool

	// The current vectors of the body: their number from at, and the used lanes.
	unit int
	mask *mask

	zero, a reg.VecVirtual   // of kernels that have them
	c       reg.Register     // address of the coefficients
	kept    []reg.VecVirtual // coefficients in registers
}

// in loads the current part of a slice or row.
func (k *stream) in(name string) reg.VecVirtual {
	from := k.mem(name)
	if !k.row[name] && k.mask == nil && from.Disp%line == 0 {
		far := from
		far.Disp += ahead
		PREFETCHT0(far)
	}
	if k.stored && !k.row[name] {
		return k.LoadStored(from, k.mask)
	}
	return k.Load(from, k.mask)
}

// out stores the current part of a slice.
func (k *stream) out(name string, x reg.VecVirtual) {
	if k.stored {
		k.StoreRounded(x, k.mem(name), k.mask)
		return
	}
	if k.past && k.mask == nil {
		VMOVNTPS(x, k.mem(name))
		return
	}
	k.Store(x, k.mem(name), k.mask)
}

func (k *stream) mem(name string) Mem {
	if k.row[name] {
		return Mem{Base: k.base[name], Index: k.column, Scale: 1, Disp: k.unit * k.Bytes()}
	}
	return Mem{Base: k.base[name], Index: k.at, Scale: 1, Disp: k.unit * k.bytes()}
}

// bytes is the size of a vector of the slices.
func (k *stream) bytes() int {
	if k.stored {
		return k.Bytes() / 2
	}
	return k.Bytes()
}

// stream generates a kernel with the given slices and rows. more spells out other arguments and the result. Results of
// a kernel whose name ends in Past go past the caches; if it ends in Stored, slices are stored as bfloat16. setup
// prepares the operands of the body and returns its code; finish runs at the end.
func (s isa) stream(name, slices, rows, more string, setup func(k *stream) (body, finish func())) {
	k := &stream{isa: s, past: strings.HasSuffix(name, "Past"), stored: strings.HasSuffix(name, storedWay),
		base: make(map[string]reg.Register), row: make(map[string]bool)}
	names := strings.Fields(slices)
	params := strings.Fields(rows)
	all := strings.Join(append(names, params...), ", ") + " []float32"
	if k.stored {
		all = strings.Join(names, ", ") + " []uint16"
		if len(params) > 0 {
			all += ", " + strings.Join(params, ", ") + " []float32"
		}
	}
	if !strings.HasPrefix(more, ")") {
		more = ", " + more
	}
	TEXT(name+s.Suffix, NOSPLIT, fmt.Sprintf("func(%s%s", all, more))
	Pragma("noescape")
	for _, n := range names {
		k.base[n] = Load(Param(n).Base(), GP64())
	}
	for _, n := range params {
		k.base[n] = Load(Param(n).Base(), GP64())
		k.row[n] = true
	}
	total := Load(Param(names[0]).Len(), GP64()).(reg.GPVirtual)
	body, finish := setup(k)

	const unroll = 2
	k.at, k.column = GP64(), GP64()
	XORQ(k.at, k.at)
	n := total
	if len(params) > 0 {
		n = GP64()
		Label("row")
		XORQ(k.column, k.column)
		MOVQ(total, n)
		width := Load(Param(params[0]).Len(), GP64())
		CMPQ(n, width)
		CMOVQGT(width, n)
		SUBQ(n, total)
	}
	advance := func(vectors int) {
		ADDQ(U32(uint32(vectors*k.bytes())), k.at)
		if len(params) > 0 {
			ADDQ(U32(uint32(vectors*s.Bytes())), k.column)
		}
		SUBQ(Imm(uint64(vectors*s.Lanes)), n)
	}
	SUBQ(Imm(uint64(unroll*s.Lanes)), n)
	JL(LabelRef("rest"))
	Label("loop")
	for k.unit = range unroll {
		body()
	}
	advance(unroll)
	JGE(LabelRef("loop"))
	Label("rest")
	k.unit = 0
	ADDQ(Imm(uint64(unroll*s.Lanes)), n)
	JLE(LabelRef("done"))
	Label("tail")
	k.mask = s.First(n)
	body()
	advance(1)
	JG(LabelRef("tail"))
	Label("done")
	if len(params) > 0 {
		// The last vector was partial: n is minus the number of missing elements.
		LEAQ(Mem{Base: k.at, Index: n, Scale: uint8(k.bytes() / s.Lanes)}, k.at)
		TESTQ(total, total)
		JG(LabelRef("row"))
	}
	if finish != nil {
		finish()
	}
	if k.past {
		SFENCE() // makes the results visible to other threads
	}
	VZEROUPPER()
	RET()
}

// ways are the endings of the names of kernels that exist with and without results that go past the caches.
var ways = []string{"", "Past"}

// storedWay is the ending of the names of kernels of slices that are stored as bfloat16.
const storedWay = "Stored"

// kernels generates kernels that apply the same function to all elements.
func (s isa) kernels(list []kernel[reg.VecVirtual]) {
	for _, g := range list {
		s.stream(g.name, g.slices, g.rows, g.arguments(), func(k *stream) (body, finish func()) {
			if g.zero {
				k.zero = s.Zero()
			}
			if g.scalar {
				k.a = s.Scalar("a")
			}
			return func() { g.body(k) }, nil
		})
	}
}

func (k *stream) scalar() reg.VecVirtual                     { return k.a }
func (k *stream) positive(x reg.VecVirtual) reg.VecVirtual   { return k.isa.Positive(x, k.zero) }
func (k *stream) passed(y, dy reg.VecVirtual) reg.VecVirtual { return k.isa.Passed(y, dy, k.zero) }

// vectors generates the kernels that reduce a vector.
func vectors(s isa) {
	// x − x is 0, and NaN if x is not finite.
	s.stream("strange", "x", "", ") uint32", func(k *stream) (body, finish func()) {
		bits := s.Zero()
		return func() {
				x := k.in("x")
				VSUBPS(x, x, x)
				if s.Masks {
					VPORD(x, bits, bits)
				} else {
					VORPS(x, bits, bits)
				}
			}, func() {
				some := GP32()
				if s.Masks {
					k := K()
					VPTESTMD(bits, bits, k)
					KMOVW(k, some)
				} else {
					VPTEST(bits, bits)
					SETNE(some.As8())
					MOVBLZX(some.As8(), some)
				}
				Store(some, ReturnIndex(0))
			}
	})
	// Element i is added to sum i%8 for any vector length.
	s.stream("squares", "x", "", "sums *[8]float64)", func(k *stream) (body, finish func()) {
		acc := make([]reg.VecVirtual, 16/s.Lanes)
		for i := range acc {
			acc[i] = s.Zero()
		}
		return func() {
				for i, d := range s.Doubles(k.in("x")) {
					VFMADD231PD(d, d, acc[i%len(acc)])
				}
			}, func() {
				sums := Load(Param("sums"), GP64())
				for i, a := range acc {
					VMOVUPD(a, Mem{Base: sums, Disp: i * s.Bytes()})
				}
			}
	})
}
