package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	most = 4  // the largest number of vectors of a kernel over rows
	line = 64 // bytes of a cache line
)

// An element is a type of numbers in a matrix.
type element struct {
	prefix, kind string
	size         int // bytes
}

var (
	floats = element{"", "float64", 8}
	coded  = element{"coded", "uint16", 2}
)

func (e element) coded() bool { return e.size == 2 }

// name is the name of a kernel.
func (e element) name(kernel string, n int, s isa) string {
	if e.prefix != "" {
		kernel = e.prefix + strings.ToUpper(kernel[:1]) + kernel[1:]
	}
	return fmt.Sprintf("%s%d%s", kernel, n, s.Suffix)
}

// together is the number of rows that a kernel processes at a time with n vectors; the number of registers limits it.
func (s isa) together(n int, e element) int {
	if !s.Masks && n > 2 || e.coded() && n > 3 {
		return 2
	}
	return 4
}

// rows are pointers to several rows of a matrix, at the same column.
type rows struct {
	at            reg.GPVirtual
	stride, three reg.GPVirtual // bytes to the next row, and three times that
}

func (r *rows) row(i, disp int) Mem {
	switch i {
	case 0:
		return Mem{Base: r.at, Disp: disp}
	case 3:
		return Mem{Base: r.at, Index: r.three, Scale: 1, Disp: disp}
	}
	return Mem{Base: r.at, Index: r.stride, Scale: uint8(i), Disp: disp}
}

// beside are pointers to adjacent vectors.
type beside struct{ at, pitch, three reg.GPVirtual }

func besides(name, pitch string) *beside {
	b := &beside{Load(Param(name), GP64()).(reg.GPVirtual), elements(pitch, 8), GP64()}
	LEAQ(Mem{Base: b.pitch, Index: b.pitch, Scale: 2}, b.three)
	return b
}

func (b *beside) vector(i, disp int) Mem {
	switch i {
	case 0:
		return Mem{Base: b.at, Disp: disp}
	case 3:
		return Mem{Base: b.at, Index: b.three, Scale: 1, Disp: disp}
	}
	return Mem{Base: b.at, Index: b.pitch, Scale: uint8(i), Disp: disp}
}

// elements loads a number of elements of the given size, and returns it in bytes.
func elements(name string, size int) reg.GPVirtual {
	n := Load(Param(name), GP64()).(reg.GPVirtual)
	IMUL3Q(U32(uint32(size)), n, n)
	return n
}

// A pointer moves along elements of the given size.
type pointer struct {
	reg.GPVirtual
	size int
}

// along loops over the columns of rows: it runs body for steps of unroll vectors, of one vector, and of the masked
// rest. It moves the pointers, and back.
func (s isa) along(label string, unroll int, pointers []pointer, rest *mask, body func(units int, m *mask)) {
	left := Load(Param("d"), GP64()).(reg.GPVirtual)
	loop := func(label string, units int) {
		Label(label)
		SUBQ(U32(uint32(units*s.Lanes)), left)
		JL(LabelRef(label + "End"))
		body(units, nil)
		for _, p := range pointers {
			ADDQ(U32(uint32(units*s.Lanes*p.size)), p.GPVirtual)
		}
		JMP(LabelRef(label))
		Label(label + "End")
		ADDQ(U32(uint32(units*s.Lanes)), left)
	}
	if unroll > 1 {
		loop(label+"Wide", unroll)
	}
	if rest != nil {
		loop(label+"One", 1)
		JZ(LabelRef(label + "Back"))
		body(1, rest)
		Label(label + "Back")
	}
	Load(Param("d"), left)
	if rest != nil {
		ANDQ(I32(int32(-s.Lanes)), left)
	}
	for _, p := range pointers {
		bytes := GP64()
		IMUL3Q(U32(uint32(p.size)), left, bytes)
		SUBQ(bytes, p.GPVirtual)
	}
}

// tail is the mask of the columns behind the last whole vector. Codes have no such columns.
func (s isa) tail(e element) *mask {
	if e.coded() {
		return nil
	}
	n := Load(Param("d"), GP64()).(reg.GPVirtual)
	ANDQ(I32(int32(s.Lanes-1)), n)
	return s.First(n)
}

// dots makes the kernel that multiplies rows by n vectors.
func (s isa) dots(n int, e element) {
	TEXT(e.name("dots", n, s), NOSPLIT, fmt.Sprintf(
		"func(out *float64, x *%s, w *float64, d, stride, rows, width, pitch int)", e.kind))
	Pragma("noescape")
	m := s.tail(e)
	x := &rows{Load(Param("x"), GP64()).(reg.GPVirtual), elements("stride", e.size), GP64()}
	LEAQ(Mem{Base: x.stride, Index: x.stride, Scale: 2}, x.three)
	from := s.reader(e, x)
	w := besides("w", "width")
	out := besides("out", "pitch")
	count := Load(Param("rows"), GP64()).(reg.GPVirtual)
	block := func(label string, together int) {
		unroll := 1
		if together*n <= 4 {
			unroll = 2
		}
		step := unroll
		if e.coded() {
			step = codeBlock / s.Lanes
		}
		Label(label)
		SUBQ(Imm(uint64(together)), count)
		JL(LabelRef(label + "End"))
		sums := make([][]reg.VecVirtual, unroll*n)
		for i := range sums {
			sums[i] = make([]reg.VecVirtual, together)
			for r := range together {
				sums[i][r] = s.Zero()
			}
		}
		s.along(label, step, []pointer{{x.at, e.size}, {w.at, 8}}, m, func(units int, m *mask) {
			load := from.columns(together, m)
			for u := range units {
				column := e.column(s, u)
				ws := make([]reg.VecVirtual, n)
				for i := range n {
					ws[i] = s.Load(w.vector(i, 8*column), nil)
				}
				for r := range together {
					v := load(r, u)
					for i := range n {
						VFMADD231PD(v, ws[i], sums[u%unroll*n+i][r])
					}
				}
			}
		})
		for i := range n {
			for u := 1; u < unroll; u++ {
				for r := range together {
					VADDPD(sums[u*n+i][r], sums[i][r], sums[i][r])
				}
			}
			s.storeSums(sums[i], out.vector(i, 0))
		}
		ADDQ(Imm(uint64(8*together)), out.at)
		for range together {
			ADDQ(x.stride, x.at)
		}
		JMP(LabelRef(label))
		Label(label + "End")
		ADDQ(Imm(uint64(together)), count)
	}
	block("rows", s.together(n, e))
	block("row", 1)
	VZEROUPPER()
	RET()
}

// storeSums stores the sum of the lanes of each vector.
func (s isa) storeSums(v []reg.VecVirtual, to Mem) {
	if len(v) != 4 {
		for i, x := range v {
			at := to
			at.Disp += 8 * i
			VMOVSD(s.Sum(x).AsX(), at)
		}
		return
	}
	y := make([]reg.VecVirtual, 4)
	for i, x := range v {
		y[i] = YMM()
		if s.Masks {
			VEXTRACTF64X4(Imm(1), x, y[i])
			VADDPD(x.AsY(), y[i], y[i])
		} else {
			y[i] = x
		}
	}
	pairs := make([]reg.VecVirtual, 2) // lanes are halves of two sums, then the other halves
	for i := range pairs {
		low, high := YMM(), YMM()
		VUNPCKLPD(y[2*i+1], y[2*i], low)
		VUNPCKHPD(y[2*i+1], y[2*i], high)
		VADDPD(low, high, high)
		pairs[i] = high
	}
	low, high := YMM(), YMM()
	if s.Masks {
		VSHUFF64X2(Imm(0), pairs[1], pairs[0], low)
		VSHUFF64X2(Imm(3), pairs[1], pairs[0], high)
	} else {
		VPERM2F128(Imm(0x20), pairs[1], pairs[0], low)
		VPERM2F128(Imm(0x31), pairs[1], pairs[0], high)
	}
	VADDPD(low, high, high)
	VMOVUPD(high, to)
}

// addRows makes the kernel that adds rows, scaled, to n vectors.
func (s isa) addRows(n int, e element) {
	last := ", ahead"
	if e.coded() {
		last = ""
	}
	TEXT(e.name("addRows", n, s), NOSPLIT, fmt.Sprintf(
		"func(dst *float64, x *%s, a *float64, d, stride, rows, width, pitch%s int)", e.kind, last))
	Pragma("noescape")
	m := s.tail(e)
	x := &rows{Load(Param("x"), GP64()).(reg.GPVirtual), elements("stride", e.size), GP64()}
	LEAQ(Mem{Base: x.stride, Index: x.stride, Scale: 2}, x.three)
	from := s.reader(e, x)
	dst := besides("dst", "width")
	a := besides("a", "pitch")
	var ahead reg.GPVirtual
	if !e.coded() {
		ahead = elements("ahead", e.size)
	}
	count := Load(Param("rows"), GP64()).(reg.GPVirtual)
	block := func(label string, together int) {
		Label(label)
		SUBQ(Imm(uint64(together)), count)
		JL(LabelRef(label + "End"))
		scale := make([][]reg.VecVirtual, n)
		for i := range n {
			scale[i] = make([]reg.VecVirtual, together)
			for r := range together {
				scale[i][r] = s.Broadcast(a.vector(i, 8*r))
			}
		}
		step, pointers := 1, []pointer{{x.at, e.size}, {dst.at, 8}}
		var next *rows
		if e.coded() {
			step = codeBlock / s.Lanes
		} else {
			far := GP64()
			LEAQ(Mem{Base: x.at, Index: ahead, Scale: 1}, far)
			next = &rows{far, x.stride, x.three}
			pointers = append(pointers, pointer{far, e.size})
		}
		s.along(label, step, pointers, m, func(units int, m *mask) {
			load := from.columns(together, m)
			for u := range units {
				column := e.column(s, u)
				sums := make([]reg.VecVirtual, n)
				for i := range n {
					sums[i] = s.Load(dst.vector(i, 8*column), nil)
				}
				for r := range together {
					if m == nil && !e.coded() {
						PREFETCHT0(next.row(r, 0))
					}
					v := load(r, u)
					for i := range n {
						VFMADD231PD(v, scale[i][r], sums[i])
					}
				}
				for i := range n {
					s.Store(sums[i], dst.vector(i, 8*column), nil)
				}
			}
		})
		ADDQ(Imm(uint64(8*together)), a.at)
		for range together {
			ADDQ(x.stride, x.at)
		}
		JMP(LabelRef(label))
		Label(label + "End")
		ADDQ(Imm(uint64(together)), count)
	}
	block("rows", s.together(n, e))
	block("row", 1)
	VZEROUPPER()
	RET()
}
