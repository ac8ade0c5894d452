package main

import (
	"bytes"
	"fmt"

	"onlinerna/internal/simd/gen/neon"
)

// neonTaps writes the kernels of products and sums channel by channel, and their set.
func neonTaps(f *neon.File, set *bytes.Buffer) {
	f.Func("neonTapProducts", "(a *TapArgs)", neonTapProducts)
	fmt.Fprintf(set, "\nvar neonTapKernels = Taps{\n\tProducts: neonTapProducts,\n\tSums: []func(*TapArgs){nil,\n")
	for n := 1; n <= mostTaps; n++ {
		name := fmt.Sprintf("neonTapSums%d", n)
		f.Func(name, "(a *TapArgs)", func(k *neon.Func) { neonTapSums(k, n) })
		fmt.Fprintf(set, "\t\t%s,\n", name)
	}
	fmt.Fprintf(set, "\t},\n}\n")
}

// neonChannels loops over the channels: units registers at a time, then one register, then one number. at counts bytes.
func neonChannels(k *neon.Func, label string, args, at neon.GP, units int, body func(label string, units, bytes int)) {
	left := k.Load(args, tapChannels)
	k.SetInt(at, 0)
	turns := func(name string, units, size int) {
		k.Turns(label+name, left, units*size/4, func() {
			body(label+name, units, size)
			k.AddI(at, at, units*size)
		})
	}
	if units > 1 {
		turns("Units", units, neon.Bytes)
	}
	turns("One", 1, neon.Bytes)
	turns("Single", 1, 4)
}

// neonTapProducts is the kernel of products: four pixels at a time, then one.
func neonTapProducts(k *neon.Func) {
	args := k.Arg("a")
	dst, src, pixels := k.Load(args, tapDst), k.Load(args, tapSrc), k.Load(args, tapPixels)
	stepDst, stepSrc := k.Load(args, tapStepDst), k.Load(args, tapStepSrc)
	k.Add(src, src, k.Load(args, tapAt))
	at := k.Int(0)
	for _, tile := range []struct{ pixels, units int }{{4, 4}, {1, 4}} {
		label := fmt.Sprintf("pixels%d", tile.pixels)
		k.Turns(label, pixels, tile.pixels, func() {
			neonChannels(k, label, args, at, tile.units, func(label string, units, size int) {
				init := k.Load(args, tapInit)
				k.Add(init, init, at)
				acc := make([][]neon.Vec, tile.pixels)
				for u := range units {
					first := k.LoadVec(size, init, u*neon.Bytes)
					for p := range acc {
						acc[p] = append(acc[p], k.Same(first))
					}
				}
				offs, left := k.Load(args, tapOffs), k.Load(args, tapTaps)
				weights := k.Load(args, tapWeights)
				k.Add(weights, weights, at)
				base := k.Copy(src)
				k.Add(base, base, at)
				k.Label(label + "Tap")
				x, w := k.Load(offs, 0), k.Load(offs, 8)
				k.Add(x, x, base)
				k.Add(w, w, weights)
				weight := make([]neon.Vec, units)
				for u := range weight {
					weight[u] = k.LoadVec(size, w, u*neon.Bytes)
				}
				for p := range acc {
					for u := range units {
						k.Into(acc[p][u], "fmla", neon.S4, k.LoadVec(size, x, u*neon.Bytes), weight[u])
					}
					if p+1 < len(acc) {
						k.Add(x, x, stepSrc)
					}
				}
				k.AddI(offs, offs, 16)
				k.SubsI(left, left, 1)
				k.Branch("NE", label+"Tap")
				to := k.Copy(dst)
				k.Add(to, to, at)
				for p := range acc {
					for u := range units {
						k.StoreVec(size, acc[p][u], to, u*neon.Bytes)
					}
					if p+1 < len(acc) {
						k.Add(to, to, stepDst)
					}
				}
			})
			for range tile.pixels {
				k.Add(src, src, stepSrc)
				k.Add(dst, dst, stepDst)
			}
		})
	}
	k.Ret()
}

// neonTapSums is the kernel of sums for n taps.
func neonTapSums(k *neon.Func, n int) {
	args := k.Arg("a")
	at := k.Int(0)
	neonChannels(k, "channels", args, at, 1, func(label string, _, size int) {
		place := func(t int) neon.GP { // of the sum of a tap
			to, dst := k.Load(k.Load(args, tapOffs), 16*t+8), k.Load(args, tapDst)
			k.Add(to, to, dst)
			k.Add(to, to, at)
			return to
		}
		sums := make([]neon.Vec, n)
		for t := range sums {
			sums[t] = k.LoadVec(size, place(t), 0)
		}
		list, x, taps := k.Load(args, tapOffs), k.Load(args, tapSrc), make([]neon.GP, n)
		k.Add(x, x, at)
		k.Add(x, x, k.Load(args, tapAt))
		for t := range taps { // the address of each tap
			taps[t] = k.Load(list, 16*t)
			k.Add(taps[t], taps[t], x)
		}
		y, pixels := k.Load(args, tapWeights), k.Load(args, tapPixels)
		k.Add(y, y, at)
		stepX, stepY := k.Load(args, tapStepSrc), k.Load(args, tapStepDst)
		k.Label(label + "Pixel")
		dy := k.LoadVec(size, y, 0)
		for t := range sums {
			k.Into(sums[t], "fmla", neon.S4, k.LoadVec(size, taps[t], 0), dy)
			k.Add(taps[t], taps[t], stepX)
		}
		k.Add(y, y, stepY)
		k.SubsI(pixels, pixels, 1)
		k.Branch("NE", label+"Pixel")
		for t := range sums {
			k.StoreVec(size, sums[t], place(t), 0)
		}
	})
	k.Ret()
}
