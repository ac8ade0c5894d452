//go:build arm64 && !purego

package kern

import "onlinerna/internal/level"

var sets = [level.Count]*Set{level.NEON: &neonSet}

var narrowSets = [level.Count]*Set{level.NEON: neonSet.narrow(neonRound, storedWith(1, neonSet.Lanes))}

var dotSet *Set

// neonRound rounds in plain Go.
func neonRound(dst, src *float32, rows, width, dstStride, srcStride int) {
	copyWith(dst, src, rows, width, dstStride, srcStride, 1, neonSet.Lanes, func(x []float32) float32 { return Round(x[0]) })
}

var stored [level.Count]*BFloat16
