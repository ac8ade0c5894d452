//go:build !amd64 || purego

package kern

import "onlinerna/internal/level"

var sets = [...]*Set{level.Go: nil, level.AVX2: nil, level.AVX512: nil}
