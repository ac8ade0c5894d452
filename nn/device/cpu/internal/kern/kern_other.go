//go:build (!amd64 && !arm64) || purego

package kern

import "onlinerna/internal/simd"

var sets, narrowSets [simd.Count]*Set

var tapKernels [simd.Count]*Taps

var groupKernels [simd.Count][]*Groups

var (
	dotSet      *Set
	dotStored   *BFloat16
	amxKernels  *Tiles
	vectorTiles [3]func(*TileArgs)

	vectorSplits [MostParts + 1]SplitRows
)

var stored [simd.Count]*BFloat16
