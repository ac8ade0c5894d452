package main

import "onlinerna/internal/simd/gen/neon"

// neonWindows is a kernel over a row of windows of one image, for several vectors of channels at a time.
type neonWindows struct {
	*neon.Func
	base             map[string]neon.GP // of the window
	bytesLine, pixel neon.GP
	units, bytes     int
}

// each runs body for the pixels of the window, and passes their addresses.
func (k *neonWindows) each(label string, images []string, body func(at map[string]neon.GP)) {
	line, at := make(map[string]neon.GP), make(map[string]neon.GP)
	for _, n := range images {
		line[n] = k.Copy(k.base[n])
	}
	rows := k.Arg("rows")
	k.Label(label + "Row")
	for _, n := range images {
		at[n] = k.Copy(line[n])
	}
	columns := k.Arg("columns")
	k.Label(label + "Column")
	body(at)
	for _, n := range images {
		k.Add(at[n], at[n], k.pixel)
	}
	k.SubsI(columns, columns, 1)
	k.Branch("NE", label+"Column")
	for _, n := range images {
		k.Add(line[n], line[n], k.bytesLine)
	}
	k.SubsI(rows, rows, 1)
	k.Branch("NE", label+"Row")
}

func (k *neonWindows) load(at neon.GP, unit int) neon.Vec {
	return k.LoadVec(k.bytes, at, unit*neon.Bytes)
}

// largest is the first maximum of the window, in row-major order, or its first NaN.
func (k *neonWindows) largest(label string) []neon.Vec {
	best := make([]neon.Vec, k.units)
	for u := range best {
		best[u] = k.Bits(neon.S4, 0xff800000)
	}
	k.each(label, []string{"x"}, func(at map[string]neon.GP) {
		for u := range best {
			v := k.load(at["x"], u)
			numbers := k.Op("fcmeq", neon.S4, best[u], best[u])
			k.Into(best[u], "bit", neon.S4, v, k.Op("bic", neon.S4, numbers, k.Op("fcmge", neon.S4, best[u], v)))
		}
	})
	return best
}

// spread routes dy to the first pixel whose bits are those of best, and 0 to the others; it adds to dx, or sets it.
func (k *neonWindows) spread(label string, best, dy []neon.Vec, add bool) {
	open := make([]neon.Vec, k.units) // lanes that still search
	for u := range open {
		open[u] = k.Ones()
	}
	k.each(label, []string{"x", "dx"}, func(at map[string]neon.GP) {
		for u := range open {
			here := k.Op("and", neon.S4, open[u], k.Op("cmeq", neon.S4, k.load(at["x"], u), best[u]))
			k.Into(open[u], "bic", neon.S4, open[u], here)
			v := k.Op("and", neon.S4, dy[u], here)
			if add {
				v = k.Op("fadd", neon.S4, k.load(at["dx"], u), v)
			}
			k.StoreVec(k.bytes, v, at["dx"], u*neon.Bytes)
		}
	})
}

// neonWindow writes a kernel. body handles the current window.
func neonWindow(f *neon.File, name, signature string, images []string, body func(k *neonWindows, label string)) {
	f.Func(name+"NEON", signature, func(fn *neon.Func) {
		k := &neonWindows{Func: fn, base: make(map[string]neon.GP)}
		k.bytesLine, k.pixel = k.Arg("line"), k.Arg("pixel")
		k.Shift(k.bytesLine, k.bytesLine, 2)
		k.Shift(k.pixel, k.pixel, 2)
		channel, n := k.Int(0), k.Arg("channels")
		all := append(images, "y")
		channels := func(label string, units, bytes int) {
			k.units, k.bytes = units, bytes
			k.Turns(label, n, units*bytes/neonOne, func() {
				for _, s := range all {
					k.base[s] = k.Arg(s + "_base")
					k.Add(k.base[s], k.base[s], channel)
				}
				left := k.Arg("count")
				k.Label(label + "Window")
				body(k, label)
				for _, s := range all {
					by := "step"
					if s == "y" {
						by = "pitch"
					}
					k.AddShift(k.base[s], k.base[s], k.Arg(by), 2)
				}
				k.SubsI(left, left, 1)
				k.Branch("NE", label+"Window")
				k.AddI(channel, channel, units*bytes)
			})
		}
		channels("four", 4, neonWhole)
		channels("vector", 1, neonWhole)
		channels("single", 1, neonOne)
		k.Ret()
	})
}

func neonPools(f *neon.File) {
	neonWindow(f, "maxWindows", "(y, x []float32, "+extents+")", []string{"x"}, func(k *neonWindows, label string) {
		for u, best := range k.largest(label + "Scan") {
			k.StoreVec(k.bytes, best, k.base["y"], u*neon.Bytes)
		}
	})
	for _, add := range []bool{true, false} {
		name := "maxWindowsGrad"
		if !add {
			name = "maxWindowsSet"
		}
		neonWindow(f, name, "(y, x, dx []float32, "+extents+", behindReLU bool)", []string{"x", "dx"},
			func(k *neonWindows, label string) {
				best := k.largest(label + "Scan")
				dy := make([]neon.Vec, k.units)
				for u := range dy {
					dy[u] = k.load(k.base["y"], u)
				}
				k.IfZero(k.Arg("behindReLU"), label+"All")
				for u := range dy {
					k.Move(dy[u], passed(k.Func, best[u], dy[u]))
				}
				k.Label(label + "All")
				k.spread(label+"Spread", best, dy, add)
			})
	}
}
