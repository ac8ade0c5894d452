//go:build (!amd64 && !arm64) || purego

package vec

import "onlinerna/internal/simd"

var (
	sets  = [simd.Count]Set{simd.Go: plain}
	large = sets

	updates [simd.Count]Updates
)
