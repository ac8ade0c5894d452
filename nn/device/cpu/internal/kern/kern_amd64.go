//go:build amd64 && !purego

package kern

import "onlinerna/internal/level"

var sets = [level.Count]*Set{level.AVX2: &avx2Set, level.AVX512: &avx512Set}

var narrowSets = [level.Count]*Set{level.AVX2: avx2Set.narrow(avx2Round, storedWith(1, 8)), level.AVX512: avx512Set.narrow(avx512Round, storedWith(1, 16))}

var dotSet = &bf16Set

var stored [level.Count]*BFloat16
