//go:build arm64 && !purego

package kern

import "onlinerna/internal/simd"

var sets = [simd.Count]*Set{simd.NEON: &neonSet}

var narrowSets = [simd.Count]*Set{simd.NEON: neonSet.narrow(neonRound, neonWiden)}

var tapKernels = [simd.Count]*Taps{simd.NEON: &neonTapKernels}

var groupKernels = [simd.Count][]*Groups{simd.NEON: neonGroups}

var (
	dotSet      *Set
	dotStored   *BFloat16
	amxKernels  *Tiles
	vectorTiles [3]func(*TileArgs)

	vectorSplits [MostParts + 1]SplitRows
)

var stored = [simd.Count]*BFloat16{simd.NEON: &neonStored}
