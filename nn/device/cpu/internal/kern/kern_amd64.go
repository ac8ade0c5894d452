//go:build amd64 && !purego

package kern

import "onlinerna/internal/level"

var sets = [level.Count]*Set{level.AVX2: &avx2Set, level.AVX512: &avx512Set}

var narrowSets = [level.Count]*Set{level.AVX2: avx2Set.narrow(avx2Round), level.AVX512: avx512Set.narrow(avx512Round)}

var dotSet = &bf16Set
