package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// products generates the kernels that multiply each of several rows by each of others, or by each other.
func products(s isa) {
	s.product("square", false)
	s.product("triangle", true)
}

// product generates a kernel that adds the products of rows, with one sum in each lane. It also prefetches from the
// addresses in next, from byte off on, and advances step bytes after each group.
func (s isa) product(name string, lower bool) {
	TEXT(name+s.Suffix, NOSPLIT, "func(sums, a, b *float64, n int, next *[4]uintptr, off, step int)")
	Pragma("noescape")
	sums, a, b := Load(Param("sums"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	next, step := Load(Param("next"), GP64()), Load(Param("step"), GP64())
	var fetched [4]reg.GPVirtual
	for i := range fetched {
		fetched[i] = GP64()
		MOVQ(Mem{Base: next, Disp: 8 * i}, fetched[i])
	}
	n, at, ahead := GP64(), GP64(), GP64()
	Load(Param("off"), ahead)
	for part := range sumLanes / s.Lanes {
		Load(Param("n"), n)
		MOVQ(U32(uint32(part*s.Bytes())), at)
		acc := map[[2]int]reg.VecVirtual{}
		each := func(f func(i, j int, sum Mem)) {
			for i := range s.tile {
				for j := range s.tile {
					if !lower || j <= i {
						f(i, j, Mem{Base: sums, Disp: (i*s.tile+j)*8*sumLanes + part*s.Bytes()})
					}
				}
			}
		}
		each(func(i, j int, sum Mem) {
			acc[[2]int{i, j}] = s.Vector()
			VMOVUPD(sum, acc[[2]int{i, j}])
		})
		loop := "loop" + string(rune('0'+part))
		Label(loop)
		for u := range group / sumLanes {
			row := func(base reg.Register, i int) reg.VecVirtual {
				x := s.Vector()
				VMOVUPD(Mem{Base: base, Index: at, Scale: 1, Disp: i*pitch + u*8*sumLanes}, x)
				return x
			}
			var right, left []reg.VecVirtual
			for j := range s.tile {
				right = append(right, row(b, j))
			}
			if left = right; !lower {
				left = make([]reg.VecVirtual, s.tile)
			}
			last := -1
			each(func(i, j int, _ Mem) {
				if i != last && !lower {
					left[i] = row(a, i)
				}
				last = i
				VFMADD231PD(left[i], right[j], acc[[2]int{i, j}])
			})
		}
		if part == 0 {
			for _, p := range fetched {
				PREFETCHT0(Mem{Base: p, Index: ahead, Scale: 1})
			}
			ADDQ(step, ahead)
		}
		ADDQ(Imm(8*group), at)
		SUBQ(Imm(group), n)
		JG(LabelRef(loop))
		each(func(i, j int, sum Mem) { VMOVUPD(acc[[2]int{i, j}], sum) })
	}
	VZEROUPPER()
	RET()
}
