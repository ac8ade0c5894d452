package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	most = 4  // vectors that a kernel goes over rows with
	line = 64 // bytes of cache
)

// together is the number of rows that a kernel works on at a time with n vectors: as the registers allow.
func (s isa) together(n int) int {
	if !s.masks && n > 2 {
		return 2
	}
	return 4
}

// rows are pointers to some rows of a matrix, at the same column.
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

// beside are pointers to vectors one beside the other.
type beside struct{ at, pitch, three reg.GPVirtual }

func besides(name, pitch string) *beside {
	b := &beside{Load(Param(name), GP64()).(reg.GPVirtual), elements(pitch), GP64()}
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

func elements(name string) reg.GPVirtual {
	n := Load(Param(name), GP64()).(reg.GPVirtual)
	SHLQ(Imm(3), n)
	return n
}

// along goes over the columns of rows: body for steps of unroll vectors, of one, and of the masked rest. It moves the
// pointers, and back.
func (s isa) along(label string, unroll int, pointers []reg.GPVirtual, rest *mask, body func(units int, m *mask)) {
	left := Load(Param("d"), GP64()).(reg.GPVirtual)
	loop := func(label string, units int) {
		Label(label)
		SUBQ(U32(uint32(units*s.lanes)), left)
		JL(LabelRef(label + "End"))
		body(units, nil)
		for _, p := range pointers {
			ADDQ(U32(uint32(units*s.bytes())), p)
		}
		JMP(LabelRef(label))
		Label(label + "End")
		ADDQ(U32(uint32(units*s.lanes)), left)
	}
	if unroll > 1 {
		loop(label+"Wide", unroll)
	}
	loop(label+"One", 1)
	JZ(LabelRef(label + "Back"))
	body(1, rest)
	Label(label + "Back")
	Load(Param("d"), left)
	ANDQ(I32(int32(-s.lanes)), left)
	SHLQ(Imm(3), left)
	for _, p := range pointers {
		SUBQ(left, p)
	}
}

// tail is the mask of the columns that fill no vector.
func (s isa) tail() *mask {
	n := Load(Param("d"), GP64()).(reg.GPVirtual)
	ANDQ(I32(int32(s.lanes-1)), n)
	return s.first(n)
}

// dots makes the kernel of products of rows with n vectors.
func (s isa) dots(n int) {
	TEXT(fmt.Sprintf("dots%d%s", n, s.suffix), NOSPLIT, "func(out, x, w *float64, d, stride, rows, width, pitch int)")
	Pragma("noescape")
	m := s.tail()
	x := &rows{Load(Param("x"), GP64()).(reg.GPVirtual), elements("stride"), GP64()}
	LEAQ(Mem{Base: x.stride, Index: x.stride, Scale: 2}, x.three)
	w := besides("w", "width")
	out := besides("out", "pitch")
	count := Load(Param("rows"), GP64()).(reg.GPVirtual)
	block := func(label string, together int) {
		unroll := 1
		if together*n <= 4 {
			unroll = 2
		}
		Label(label)
		SUBQ(Imm(uint64(together)), count)
		JL(LabelRef(label + "End"))
		sums := make([][]reg.VecVirtual, unroll*n)
		for i := range sums {
			sums[i] = make([]reg.VecVirtual, together)
			for r := range together {
				sums[i][r] = s.zero()
			}
		}
		s.along(label, unroll, []reg.GPVirtual{x.at, w.at}, m, func(units int, m *mask) {
			for u := range units {
				ws := make([]reg.VecVirtual, n)
				for i := range n {
					ws[i] = s.load(w.vector(i, u*s.bytes()), nil)
				}
				for r := range together {
					v := s.load(x.row(r, u*s.bytes()), m)
					for i := range n {
						VFMADD231PD(v, ws[i], sums[u*n+i][r])
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
	block("rows", s.together(n))
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
			VMOVSD(s.sum(x).AsX(), at)
		}
		return
	}
	y := make([]reg.VecVirtual, 4)
	for i, x := range v {
		y[i] = YMM()
		if s.masks {
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
	if s.masks {
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
func (s isa) addRows(n int) {
	TEXT(fmt.Sprintf("addRows%d%s", n, s.suffix), NOSPLIT, "func(dst, x, a *float64, d, stride, rows, width, pitch, ahead int)")
	Pragma("noescape")
	m := s.tail()
	x := &rows{Load(Param("x"), GP64()).(reg.GPVirtual), elements("stride"), GP64()}
	LEAQ(Mem{Base: x.stride, Index: x.stride, Scale: 2}, x.three)
	dst := besides("dst", "width")
	a := besides("a", "pitch")
	ahead := elements("ahead")
	count := Load(Param("rows"), GP64()).(reg.GPVirtual)
	block := func(label string, together int) {
		Label(label)
		SUBQ(Imm(uint64(together)), count)
		JL(LabelRef(label + "End"))
		scale := make([][]reg.VecVirtual, n)
		for i := range n {
			scale[i] = make([]reg.VecVirtual, together)
			for r := range together {
				scale[i][r] = s.broadcast(a.vector(i, 8*r))
			}
		}
		far := GP64()
		LEAQ(Mem{Base: x.at, Index: ahead, Scale: 1}, far)
		next := &rows{far, x.stride, x.three}
		s.along(label, 1, []reg.GPVirtual{x.at, dst.at, far}, m, func(units int, m *mask) {
			sums := make([]reg.VecVirtual, n)
			for i := range n {
				sums[i] = s.load(dst.vector(i, 0), nil)
			}
			for r := range together {
				if m == nil {
					PREFETCHT0(next.row(r, 0))
				}
				v := s.load(x.row(r, 0), m)
				for i := range n {
					VFMADD231PD(v, scale[i][r], sums[i])
				}
			}
			for i := range n {
				s.store(sums[i], dst.vector(i, 0), nil)
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
	block("rows", s.together(n))
	block("row", 1)
	VZEROUPPER()
	RET()
}
