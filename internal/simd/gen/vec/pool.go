package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/simd/gen/avx"
)

// windows is a kernel over a row of windows of one image. It processes several vectors at a time: channels of one
// window, or one vector that has the channels of two adjacent windows.
type windows struct {
	isa
	channel    reg.GPVirtual            // bytes to the current channels
	base       map[string]reg.GPVirtual // of the window
	line, at   reg.GPVirtual            // bytes to a row of the window, and to a pixel
	lineBytes  reg.GPVirtual
	pixelBytes reg.GPVirtual

	units int
	mask  *mask // of the channels
	pair  *pair
}

// pair describes how two windows share a vector.
type pair struct {
	lanes  *mask         // of the second window: the channels behind those of the first
	across reg.GPVirtual // bytes from the end of the first window's channels to the second window's pixel
	far    reg.GPVirtual // bytes to the second window's pixel, less its lanes
}

const extents = "count, channels, pitch, rows, columns, line, pixel, step int"

// mem is the current pixel.
func (k *windows) mem(name string, unit int) Mem {
	return Mem{Base: k.base[name], Index: k.at, Scale: 1, Disp: unit * k.Bytes()}
}

func (k *windows) second(name string) Mem {
	return Mem{Base: k.base[name], Index: k.pair.far, Scale: 1}
}

func (k *windows) pixel(name string, unit int) reg.VecVirtual {
	x := k.Load(k.mem(name, unit), k.mask)
	if k.pair == nil {
		return x
	}
	if k.Masks {
		VMOVUPS(k.second(name), k.pair.lanes.Opmask(), x)
		return x
	}
	VORPS(k.Load(k.second(name), k.pair.lanes), x, x)
	return x
}

func (k *windows) setPixel(name string, unit int, x reg.VecVirtual) {
	k.Store(x, k.mem(name, unit), k.mask)
	if k.pair != nil {
		k.Store(x, k.second(name), k.pair.lanes)
	}
}

// each runs body for the pixels of the window.
func (k *windows) each(label string, body func()) {
	rows, columns := Load(Param("rows"), GP64()), GP64()
	XORQ(k.line, k.line)
	Label(label + "Row")
	MOVQ(k.line, k.at)
	Load(Param("columns"), columns)
	Label(label + "Column")
	if k.pair != nil {
		LEAQ(Mem{Base: k.at, Index: k.pair.across, Scale: 1}, k.pair.far)
	}
	body()
	ADDQ(k.pixelBytes, k.at)
	DECQ(columns)
	JNZ(LabelRef(label + "Column"))
	ADDQ(k.lineBytes, k.line)
	DECQ(rows)
	JNZ(LabelRef(label + "Row"))
}

// largest is the first maximum of the window, in row-major order, or its first NaN.
func (k *windows) largest(label string) []reg.VecVirtual {
	best := make([]reg.VecVirtual, k.units)
	start := func() {
		for u := range best {
			if best[u] == nil {
				best[u] = k.Vector()
			}
			VMOVUPS(k.constant("infinity", func(int) uint32 { return 0xff800000 }), best[u])
		}
	}
	start()
	strange := k.none()
	k.each(label, func() {
		var v []reg.VecVirtual
		if k.units > 1 {
			k.ahead("x")
		}
		for u := range best {
			v = append(v, k.pixel("x", u))
		}
		for u := 0; u < len(v); u += 2 {
			k.unordered(v[u], v[min(u+1, len(v)-1)], strange)
		}
		for u := range best {
			VMAXPS(best[u], v[u], best[u]) // best if they are equal or one is NaN
		}
	})
	k.ifNone(strange, label+"Numbers")
	start()
	k.each(label+"Again", func() {
		for u := range best {
			k.replace(best[u], k.pixel("x", u))
		}
	})
	Label(label + "Numbers")
	return best
}

// ahead prefetches two rows further down: with the usual stride, the next row of windows reads that row.
func (k *windows) ahead(name string) {
	at := GP64()
	LEAQ(Mem{Base: k.base[name], Index: k.at, Scale: 1}, at)
	for byte := 0; byte < k.units*k.Bytes(); byte += line {
		PREFETCHT0(Mem{Base: at, Index: k.lineBytes, Scale: 2, Disp: byte})
	}
}

// none is an empty set of lanes.
func (s isa) none() reg.Register {
	if !s.Masks {
		return s.Zero()
	}
	zero, k := GP32(), K()
	XORL(zero, zero)
	KMOVW(zero, k)
	return k
}

// unordered adds the lanes in which a or b is NaN to set.
func (s isa) unordered(a, b reg.VecVirtual, set reg.Register) {
	if s.Masks {
		k := K()
		VCMPPS(Imm(avx.Unordered), a, b, k)
		KORW(k, set, set)
		return
	}
	k := s.Vector()
	VCMPPS(Imm(avx.Unordered), a, b, k)
	VORPS(k, set, set)
}

// ifNone jumps if the set is empty.
func (s isa) ifNone(set reg.Register, label string) {
	if s.Masks {
		KORTESTW(set, set)
	} else {
		VPTEST(set, set)
	}
	JZ(LabelRef(label))
}

// replace sets best to v if v is larger, or the first NaN.
func (s isa) replace(best, v reg.VecVirtual) {
	if s.Masks {
		known, k := K(), K()
		VCMPPS(Imm(avx.Ordered), best, best, known)
		VCMPPS(Imm(avx.NotLessEqual), best, v, known, k)
		VMOVAPS(v, k, best)
		return
	}
	known, k := s.Vector(), s.Vector()
	VCMPPS(Imm(avx.Ordered), best, best, known)
	VCMPPS(Imm(avx.NotLessEqual), best, v, k)
	VANDPS(known, k, k)
	VBLENDVPS(k, v, best, best)
}

// spread routes dy to the first pixel whose bits are those of best, and 0 to the others; it adds to dx, or sets it.
func (k *windows) spread(label string, best, dy []reg.VecVirtual, add bool) {
	open := make([]reg.Register, k.units) // lanes that still search
	for u := range open {
		open[u] = k.none()
		if k.Masks {
			KNOTW(open[u], open[u])
		} else {
			VPCMPEQD(open[u], open[u], open[u])
		}
	}
	k.each(label, func() {
		for u := range open {
			v := k.pixel("x", u)
			if k.Masks {
				here, to := K(), k.Vector()
				VPCMPEQD(v, best[u], open[u], here)
				KANDNW(open[u], here, open[u])
				if add {
					to = k.pixel("dx", u)
					VADDPS(dy[u], to, here, to)
				} else {
					VMOVAPS_Z(dy[u], here, to)
				}
				k.setPixel("dx", u, to)
				continue
			}
			VPCMPEQD(v, best[u], v)
			VPAND(open[u], v, v)
			VPXOR(v, open[u], open[u])
			VANDPS(dy[u], v, v)
			if add {
				v = k.Add(k.pixel("dx", u), v)
			}
			k.setPixel("dx", u, v)
		}
	})
}

// windows generates a kernel. body handles the current window, with its pixel of y.
func (s isa) windows(name, signature string, images []string, pairs bool,
	body func(k *windows, label string, y func(unit int) Mem)) {
	k := &windows{isa: s, base: make(map[string]reg.GPVirtual)}
	TEXT(name+s.Suffix, NOSPLIT, signature)
	Pragma("noescape")
	k.line, k.at, k.lineBytes, k.pixelBytes, k.channel = GP64(), GP64(), GP64(), GP64(), GP64()
	Load(Param("line"), k.lineBytes)
	Load(Param("pixel"), k.pixelBytes)
	SHLQ(Imm(2), k.lineBytes)
	SHLQ(Imm(2), k.pixelBytes)
	XORQ(k.channel, k.channel)
	for _, n := range append(images, "y") {
		k.base[n] = GP64()
	}
	y := func(unit int) Mem { return Mem{Base: k.base["y"], Disp: unit * s.Bytes()} }
	start := func() (left reg.GPVirtual) {
		for _, n := range append(images, "y") {
			Load(Param(n).Base(), k.base[n])
			ADDQ(k.channel, k.base[n])
		}
		left = GP64()
		Load(Param("count"), left)
		return left
	}
	advance := func(windows uint64) {
		for _, n := range append(images, "y") {
			by := "step"
			if n == "y" {
				by = "pitch"
			}
			step := Load(Param(by), GP64())
			LEAQ(Mem{Base: k.base[n], Index: step, Scale: 4}, k.base[n])
			if windows == 2 {
				LEAQ(Mem{Base: k.base[n], Index: step, Scale: 4}, k.base[n])
			}
		}
	}
	row := func(label string) {
		left := start()
		Label(label)
		body(k, label, y)
		advance(1)
		DECQ(left)
		JNZ(LabelRef(label))
		ADDQ(U32(uint32(k.units*s.Bytes())), k.channel)
	}
	if pairs {
		k.units = 1
		channels := Load(Param("channels"), GP64()).(reg.GPVirtual)
		k.pair = &pair{across: GP64(), far: GP64()}
		Load(Param("step"), k.pair.across)
		SUBQ(channels, k.pair.across)
		SHLQ(Imm(2), k.pair.across)
		k.mask = s.First(channels)
		ADDQ(channels, channels)
		k.pair.lanes = s.without(s.First(channels), k.mask)
		left := start()
		Label("pair")
		CMPQ(left, Imm(1))
		JNE(LabelRef("two"))
		// The last window has no partner.
		XORQ(k.pair.across, k.pair.across)
		s.clear(k.pair.lanes)
		Label("two")
		body(k, "pair", y)
		advance(2)
		SUBQ(Imm(2), left)
		JG(LabelRef("pair"))
		VZEROUPPER()
		RET()
		return
	}
	n := GP64()
	Load(Param("channels"), n)
	for _, units := range []int{4, 1} {
		k.units = units
		size := Imm(uint64(units * s.Lanes))
		label := map[int]string{4: "four", 1: "one"}[units]
		SUBQ(size, n)
		JL(LabelRef(label + "Done"))
		Label(label + "Channels")
		row(label)
		SUBQ(size, n)
		JGE(LabelRef(label + "Channels"))
		Label(label + "Done")
		ADDQ(size, n)
	}
	JLE(LabelRef("done"))
	k.mask = s.First(n)
	row("part")
	Label("done")
	VZEROUPPER()
	RET()
}

func pools(s isa) {
	for _, pairs := range []bool{false, true} {
		ending := ""
		if pairs {
			ending = "Pairs"
		}
		s.windows("maxWindows"+ending, "func(y, x []float32, "+extents+")", []string{"x"}, pairs,
			func(k *windows, label string, y func(unit int) Mem) {
				best := k.largest(label + "Scan")
				for u := range best {
					k.Store(best[u], y(u), k.either())
				}
			})
		for _, add := range []bool{true, false} {
			name := "maxWindowsGrad"
			if !add {
				name = "maxWindowsSet"
			} else if pairs {
				continue // windows side by side may overlap
			}
			s.windows(name+ending, "func(y, x, dx []float32, "+extents+", behindReLU bool)", []string{"x", "dx"}, pairs,
				func(k *windows, label string, dy func(unit int) Mem) {
					best := k.largest(label + "Scan")
					g := make([]reg.VecVirtual, k.units)
					for u := range g {
						g[u] = k.Load(dy(u), k.either())
					}
					behind := Load(Param("behindReLU"), GP8())
					TESTB(behind, behind)
					JZ(LabelRef(label + "All"))
					zero := k.Zero()
					for u := range g {
						VMOVAPS(k.Passed(best[u], g[u], zero), g[u])
					}
					Label(label + "All")
					k.spread(label+"Spread", best, g, add)
				})
		}
	}
}

// either is the set of current lanes, of both windows if there are two.
func (k *windows) either() *mask {
	if k.pair == nil {
		return k.mask
	}
	if k.Masks {
		m := K()
		KORW(k.mask.Opmask(), k.pair.lanes.Opmask(), m)
		return &mask{Register: m}
	}
	m := k.Vector()
	VORPS(k.mask.Vector(), k.pair.lanes.Vector(), m)
	return &mask{Register: m}
}

// without is the lanes of a outside b.
func (s isa) without(a, b *mask) *mask {
	if s.Masks {
		m := K()
		KANDNW(a.Opmask(), b.Opmask(), m)
		return &mask{Register: m}
	}
	m := s.Vector()
	VANDNPS(a.Vector(), b.Vector(), m)
	return &mask{Register: m}
}

// clear empties a mask.
func (s isa) clear(m *mask) {
	if s.Masks {
		KXORW(m.Opmask(), m.Opmask(), m.Opmask())
	} else {
		VXORPS(m.Vector(), m.Vector(), m.Vector())
	}
}
