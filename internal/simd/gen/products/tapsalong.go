package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tapSumsAlong writes a kernel of sums for some lines of three taps side by side and whole lines of at least two
// pixels. The middle tap of pixel p lies on pixel step·p of the source, so the first tap of the first pixel, and
// with step 1 the last tap of the last, lies outside. The kernel reads each pixel once.
func tapSumsAlong(name string, s isa, lines, step int) {
	const taps = alongTaps
	TEXT(name, NOSPLIT, "func(a *int)")
	args, at := Load(Param("a"), GP64()).(reg.GPVirtual), GP64()
	acc := func(line, tap int) reg.VecPhysical { return s.regs[line*taps+tap] }
	dy, x := s.regs[lines*taps:][:3], s.regs[lines*taps+3] // dy at the pixels before, here and behind
	mask := s.regs[len(s.regs)-1]
	channels(s, "channels", args, at, 1, mask, func(label string, _ int, masked bool) {
		list := field(args, tapOffs)
		sums := func(visit func(line, tap int, m Mem)) {
			for l := range lines {
				for t := range taps {
					to := GP64()
					MOVQ(Mem{Base: list, Disp: 16*(taps*l+t) + 8}, to)
					ADDQ(Mem{Base: args, Disp: tapDst}, to)
					visit(l, t, Mem{Base: to, Index: at, Scale: 1})
				}
			}
		}
		sums(func(l, t int, m Mem) { load(m, s, mask, acc(l, t), masked) })
		var from []reg.GPVirtual // the middle tap of each line
		for l := range lines {
			p := GP64()
			MOVQ(Mem{Base: list, Disp: 16 * (taps*l + 1)}, p)
			ADDQ(Mem{Base: args, Disp: tapSrc}, p)
			ADDQ(Mem{Base: args, Disp: tapAt}, p)
			ADDQ(at, p)
			from = append(from, p)
		}
		y, stepX, stepY := field(args, tapWeights), field(args, tapStepSrc), field(args, tapStepDst)
		ADDQ(at, y)
		if step == 2 {
			SHRQ(Imm(1), stepX) // from a pixel of the source to the next
		}
		next, pixels := field(args, tapNext), field(args, tapPixels)
		nextX, nextY := GP64(), GP64()
		MOVQ(Mem{Base: next}, nextX)
		MOVQ(Mem{Base: next, Disp: 8}, nextY)

		read := func() { // dy[2] at the next pixel
			load(Mem{Base: y, Index: stepY, Scale: 1}, s, mask, dy[2], masked)
			ADDQ(stepY, y)
		}
		// pixel adds a pixel of the source to the sums of taps: tap t has dy[i] for the i that of gives.
		pixel := func(of map[int]int) {
			for l := range lines {
				load(Mem{Base: from[l]}, s, mask, x, masked)
				for t := range taps {
					if i, ok := of[t]; ok {
						VFMADD231PS(x, dy[i], acc(l, t))
					}
				}
				ADDQ(stepX, from[l])
			}
		}
		prefetch := func() {
			PREFETCHT0(Mem{Base: from[lines-1], Index: nextX, Scale: 1})
			PREFETCHT0(Mem{Base: y, Index: nextY, Scale: 1})
		}
		load(Mem{Base: y}, s, mask, dy[1], masked)
		prefetch()
		DECQ(pixels)
		if step == 1 {
			read()
			pixel(map[int]int{0: 2, 1: 1})
			DECQ(pixels)
			JZ(LabelRef(label + "Last"))
		}
		Label(label + "Pixel")
		prefetch()
		if step == 1 {
			VMOVAPS(dy[1], dy[0])
			VMOVAPS(dy[2], dy[1])
			read()
			pixel(map[int]int{0: 2, 1: 1, 2: 0})
		} else {
			read()
			pixel(map[int]int{1: 1})
			pixel(map[int]int{0: 2, 2: 1})
			VMOVAPS(dy[2], dy[1])
		}
		DECQ(pixels)
		JNZ(LabelRef(label + "Pixel"))
		Label(label + "Last")
		if step == 1 {
			pixel(map[int]int{1: 2, 2: 1})
		} else {
			pixel(map[int]int{1: 1})
			pixel(map[int]int{2: 1})
		}
		list = field(args, tapOffs)
		sums(func(l, t int, m Mem) { store(m, s, mask, acc(l, t), masked) })
	})
	VZEROUPPER()
	RET()
}
