//go:build amd64 && !purego

package kern

import "onlinerna/internal/level"

var sets = [level.Count]*Set{level.AVX2: &avx2Set, level.AVX512: &avx512Set}
