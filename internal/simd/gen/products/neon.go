package main

import (
	"bytes"
	"fmt"
	"log"

	"onlinerna/internal/simd/gen/neon"
)

// writeNEON writes the kernels for arm64 and their set.
func writeNEON() {
	f := neon.New("kern")
	var set bytes.Buffer
	fmt.Fprintf(&set, "\nvar neonSet = Set{\n\tRows: %d, Lanes: %d, Registers: %d,\n", neonRows, neonLanes, neonPeakSums+2)
	fmt.Fprintf(&set, "\tCopy: neonCopy, Pack: neonPack, PackRows: neonPackRows, Interleave: neonInterleave,\n"+
		"\tFetch: neonFetch, Add: neonAdd, Peak: neonPeak,\n"+
		"\tWinograd: &neonWinograd,\n")
	kernel := func(name string, t neonTile) {
		f.FuncWith(neonSome, name, "(a *Args)", func(k *neon.Func) {
			t.Func = k
			t.generate()
		})
	}
	for _, k := range []kind{products, sums} {
		fmt.Fprintf(&set, "\t%s: [3][]Kernel{\n", names[k])
		for vectors := 1; vectors <= 2; vectors++ {
			fmt.Fprintf(&set, "\t\t%d: {nil,\n", vectors)
			for rows := 1; rows <= neonRows; rows++ {
				name := fmt.Sprintf("neon%s%dx%d", names[k], rows, vectors)
				kernel(name, neonTile{rows: rows, vectors: vectors, kind: k})
				fmt.Fprintf(&set, "\t\t\t%s,\n", name)
			}
			fmt.Fprintf(&set, "\t\t},\n")
		}
		fmt.Fprintf(&set, "\t},\n")
	}
	fmt.Fprintf(&set, "\tPairs: []Kernel{nil,\n")
	for rows := 1; rows <= neonRows; rows++ {
		name := fmt.Sprintf("neonPairs%d", rows)
		kernel(name, neonTile{rows: rows, vectors: 2, kind: pairs})
		fmt.Fprintf(&set, "\t\t%s,\n", name)
	}
	fmt.Fprintf(&set, "\t},\n}\n\n"+
		"// neonInterleave leaves pairs as they are: their kernels read rows one after the other.\n"+
		"func neonInterleave(*float32, int) {}\n")
	fmt.Fprintf(&set, "\nvar neonStored = BFloat16{Widen: neonWiden, Narrow: neonNarrow, Lanes: %d}\n", neonLanes)
	f.Func("neonCopy", copies, neonCopy)
	f.Func("neonRound", copies, neonRound)
	f.Func("neonWiden", widens, neonWiden)
	f.Func("neonNarrow", narrows, neonNarrow)
	f.Func("neonPack", packs, func(k *neon.Func) { neonPack(k, 2*neonLanes) })
	f.Func("neonPackRows", packs, func(k *neon.Func) { neonPack(k, neonRows) })
	f.Func("neonFetch", "(src *byte, lines int)", neonFetch)
	f.Func("neonAdd", "(dst, src *float32, n int)", neonAdd)
	f.Func("neonPeak", "(n int)", neonPeak)
	neonTaps(f, &set)
	neonGroups(f, &set)
	winograd := neonTransforms(f)
	if err := f.Write("kernels_arm64.s", "kernels_arm64.go", set.String()+winograd); err != nil {
		log.Fatal(err)
	}
}
