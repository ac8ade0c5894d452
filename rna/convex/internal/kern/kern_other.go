//go:build (!amd64 && !arm64) || purego

package kern

import "onlinerna/internal/simd"

var sets = [simd.Count]Set{simd.Go: plain}
