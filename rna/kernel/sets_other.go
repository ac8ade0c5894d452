//go:build (!amd64 && !arm64) || purego

package kernel

import "onlinerna/internal/simd"

var sets = [simd.Count]set{simd.Go: plain}
