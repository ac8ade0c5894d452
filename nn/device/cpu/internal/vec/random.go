package vec

import "onlinerna/nn/op/expr"

// philoxWords is the number of words that Philox makes from a counter.
const philoxWords = 4

func uniforms(dst []float32, key uint64, step, sample uint32, element int) {
	for len(dst) > 0 {
		w := expr.Philox([4]uint32{uint32(element / philoxWords), sample, step, 0}, [2]uint32{uint32(key), uint32(key >> 32)})
		k := element % philoxWords
		m := min(philoxWords-k, len(dst))
		for i := range m {
			dst[i] = float32(w[k+i]>>8) * 0x1p-24
		}
		dst, element = dst[m:], element+m
	}
}
