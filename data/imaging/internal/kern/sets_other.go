//go:build !amd64 || purego

package kern

import "onlinerna/internal/simd"

var sets = [...]*Set{simd.Go: plain, simd.NEON: plain}
