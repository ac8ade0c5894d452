//go:build (!amd64 && !arm64) || purego

package convert

import "onlinerna/internal/simd"

var sets = [simd.Count]set{simd.Go: plain}
