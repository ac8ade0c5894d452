package main

import (
	"bytes"
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The fields of kern.TapArgs.
const (
	tapDst = 8 * iota
	tapSrc
	tapWeights
	tapInit
	tapOffs
	tapTaps
	tapPixels
	tapChannels
	tapStepDst
	tapStepSrc
	tapAt
	tapNext
	tapNexts
	tapSave
)

// mostTaps is the number of taps up to which the kernels of sums keep the sums in registers.
const mostTaps = 9

// taps writes the kernels of products and sums channel by channel.
func taps(decl *bytes.Buffer, s isa) {
	tapProducts(s.name+"TapProducts", s)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc %sTapProducts(a *TapArgs)\n", s.name)
	value := fmt.Sprintf("\tProducts: %sTapProducts,\n\tSums: []func(*TapArgs){nil,\n", s.name)
	for n := 1; n <= mostTaps; n++ {
		name := fmt.Sprintf("%sTapSums%d", s.name, n)
		tapSums(name, s, n)
		fmt.Fprintf(decl, "\n//go:noescape\nfunc %s(a *TapArgs)\n", name)
		value += "\t\t" + name + ",\n"
	}
	value += "\t},\n\tAlong: [][]func(*TapArgs){nil,\n"
	for step := 1; step <= 2; step++ {
		value += "\t\t{nil"
		for lines := 1; lines <= 3; lines++ {
			name := fmt.Sprintf("%sTapSumsAlong%dx%d", s.name, lines, step)
			tapSumsAlong(name, s, lines, step)
			fmt.Fprintf(decl, "\n//go:noescape\nfunc %s(a *TapArgs)\n", name)
			value += ", " + name
		}
		value += "},\n"
	}
	fmt.Fprintf(decl, "\nvar %sTaps = Taps{\n%s\t},\n}\n", s.name, value)
}

// channels loops over the channels: units vectors at a time, then one vector, then the first lanes of one. at counts
// bytes.
func channels(s isa, label string, args, at reg.GPVirtual, units int, mask reg.VecPhysical,
	body func(label string, units int, masked bool)) {
	lanes := s.bytes / 4
	left := func() reg.GPVirtual {
		n, done := field(args, tapChannels), GP64()
		MOVQ(at, done)
		SHRQ(Imm(2), done)
		SUBQ(done, n)
		return n
	}
	XORQ(at, at)
	for _, u := range []int{units, 1} {
		name := fmt.Sprintf("%sBy%d", label, u)
		Label(name)
		CMPQ(left(), I32(u*lanes))
		JL(LabelRef(name + "End"))
		body(name, u, false)
		ADDQ(I32(u*s.bytes), at)
		JMP(LabelRef(name))
		Label(name + "End")
		if units == 1 {
			break
		}
	}
	n := left()
	TESTQ(n, n)
	JZ(LabelRef(label + "Done"))
	tail(n, s, mask)
	body(label+"Last", 1, true)
	Label(label + "Done")
}

// load reads a vector, or its first lanes.
func load(from Mem, s isa, mask, x reg.VecPhysical, masked bool) {
	if masked {
		loadTail(from, s, mask, x)
	} else {
		VMOVUPS(from, x)
	}
}

func store(to Mem, s isa, mask, x reg.VecPhysical, masked bool) {
	if masked {
		storeTail(to, s, mask, x)
	} else {
		VMOVUPS(x, to)
	}
}

// tapProducts writes the kernel of products: seven pixels at a time, five, three, then one.
func tapProducts(name string, s isa) {
	TEXT(name, NOSPLIT, "func(a *int)")
	args := Load(Param("a"), GP64()).(reg.GPVirtual)
	dst, src, pixels := field(args, tapDst), field(args, tapSrc), field(args, tapPixels)
	step, step3, step5, at := field(args, tapStepSrc), GP64(), GP64(), GP64()
	ADDQ(Mem{Base: args, Disp: tapAt}, src)
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step3)
	LEAQ(Mem{Base: step, Index: step, Scale: 4}, step5)
	pixel := func(x reg.GPVirtual, p int) Mem {
		switch p {
		case 0:
			return Mem{Base: x}
		case 3:
			return Mem{Base: x, Index: step3, Scale: 1}
		case 5:
			return Mem{Base: x, Index: step5, Scale: 1}
		case 6:
			return Mem{Base: x, Index: step3, Scale: 2}
		}
		return Mem{Base: x, Index: step, Scale: uint8(p)}
	}
	last := len(s.regs) - 1
	mask, other := s.regs[last], s.regs[last-1]
	for _, tile := range []struct{ pixels, units int }{{7, 2}, {5, 2}, {3, 4}, {1, 4}} {
		label := fmt.Sprintf("pixels%d", tile.pixels)
		Label(label)
		CMPQ(pixels, Imm(uint64(tile.pixels)))
		JL(LabelRef(label + "End"))
		channels(s, label, args, at, tile.units, mask, func(label string, units int, masked bool) {
			acc := func(p, u int) reg.VecPhysical { return s.regs[p*units+u] }
			weight := func(u int) reg.VecPhysical { return s.regs[tile.pixels*units+u] }
			if !masked {
				list, nexts := field(args, tapNext), field(args, tapNexts)
				TESTQ(nexts, nexts)
				JZ(LabelRef(label + "Begin"))
				Label(label + "Next")
				next := GP64()
				MOVQ(Mem{Base: list}, next)
				ADDQ(src, next)
				ADDQ(at, next)
				for p := range tile.pixels {
					PREFETCHT0(pixel(next, p))
				}
				ADDQ(Imm(8), list)
				DECQ(nexts)
				JNZ(LabelRef(label + "Next"))
				Label(label + "Begin")
			}
			init := field(args, tapInit)
			for u := range units {
				load(Mem{Base: init, Index: at, Scale: 1, Disp: u * s.bytes}, s, mask, acc(0, u), masked)
				for p := 1; p < tile.pixels; p++ {
					VMOVAPS(acc(0, u), acc(p, u))
				}
			}
			offs, left := field(args, tapOffs), field(args, tapTaps)
			Label(label + "Tap")
			x, w := GP64(), GP64()
			MOVQ(Mem{Base: offs}, x)
			MOVQ(Mem{Base: offs, Disp: 8}, w)
			ADDQ(src, x)
			ADDQ(Mem{Base: args, Disp: tapWeights}, w)
			ADDQ(at, x)
			for u := range units {
				load(Mem{Base: w, Index: at, Scale: 1, Disp: u * s.bytes}, s, mask, weight(u), masked)
			}
			for p := range tile.pixels {
				for u := range units {
					m := pixel(x, p)
					m.Disp = u * s.bytes
					if masked {
						loadTail(m, s, mask, other)
						VFMADD231PS(other, weight(u), acc(p, u))
					} else {
						VFMADD231PS(m, weight(u), acc(p, u))
					}
				}
			}
			ADDQ(Imm(16), offs)
			DECQ(left)
			JNZ(LabelRef(label + "Tap"))
			to := GP64()
			LEAQ(Mem{Base: dst, Index: at, Scale: 1}, to)
			for p := range tile.pixels {
				for u := range units {
					store(Mem{Base: to, Disp: u * s.bytes}, s, mask, acc(p, u), masked)
				}
				if p+1 < tile.pixels {
					ADDQ(Mem{Base: args, Disp: tapStepDst}, to)
				}
			}
		})
		for range tile.pixels {
			ADDQ(step, src)
			ADDQ(Mem{Base: args, Disp: tapStepDst}, dst)
		}
		SUBQ(Imm(uint64(tile.pixels)), pixels)
		JMP(LabelRef(label))
		Label(label + "End")
	}
	VZEROUPPER()
	RET()
}

// tapSums writes the kernel of sums for n taps.
func tapSums(name string, s isa, n int) {
	TEXT(name, NOSPLIT, "func(a *int)")
	args, at := Load(Param("a"), GP64()).(reg.GPVirtual), GP64()
	last := len(s.regs) - 1
	mask, other, dy := s.regs[last], s.regs[last-1], s.regs[last-2]
	channels(s, "channels", args, at, 1, mask, func(label string, _ int, masked bool) {
		place := func(t int) Mem { // of the sum of a tap
			list, to := field(args, tapOffs), GP64()
			MOVQ(Mem{Base: list, Disp: 16*t + 8}, to)
			ADDQ(Mem{Base: args, Disp: tapDst}, to)
			return Mem{Base: to, Index: at, Scale: 1}
		}
		for t := range n {
			load(place(t), s, mask, s.regs[t], masked)
		}
		list, offs := field(args, tapOffs), make([]reg.GPVirtual, n)
		for t := range offs {
			offs[t] = GP64()
			MOVQ(Mem{Base: list, Disp: 16 * t}, offs[t])
		}
		x, y, pixels := field(args, tapSrc), field(args, tapWeights), field(args, tapPixels)
		ADDQ(Mem{Base: args, Disp: tapAt}, x)
		ADDQ(at, x)
		ADDQ(at, y)
		MOVQ(at, Mem{Base: args, Disp: tapSave}) // its register is needed
		next := field(args, tapNext)
		nextX, nextY := GP64(), next
		MOVQ(Mem{Base: next}, nextX)
		MOVQ(Mem{Base: next, Disp: 8}, nextY)
		Label(label + "Pixel")
		PREFETCHT0(Mem{Base: x, Index: nextX, Scale: 1})
		PREFETCHT0(Mem{Base: y, Index: nextY, Scale: 1})
		load(Mem{Base: y}, s, mask, dy, masked)
		for t := range n {
			m := Mem{Base: x, Index: offs[t], Scale: 1}
			if masked {
				loadTail(m, s, mask, other)
				VFMADD231PS(other, dy, s.regs[t])
			} else {
				VFMADD231PS(m, dy, s.regs[t])
			}
		}
		ADDQ(Mem{Base: args, Disp: tapStepSrc}, x)
		ADDQ(Mem{Base: args, Disp: tapStepDst}, y)
		DECQ(pixels)
		JNZ(LabelRef(label + "Pixel"))
		MOVQ(Mem{Base: args, Disp: tapSave}, at)
		for t := range n {
			store(place(t), s, mask, s.regs[t], masked)
		}
	})
	VZEROUPPER()
	RET()
}
