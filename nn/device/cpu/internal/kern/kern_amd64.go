//go:build amd64 && !purego

package kern

import "onlinerna/internal/level"

var sets = [level.Count]*Set{level.AVX2: &avx2Set, level.AVX512: &avx512Set}

var narrowSets = [level.Count]*Set{level.AVX2: avx2Set.narrow(avx2Round, avx2Widen), level.AVX512: avx512Set.narrow(avx512Round, avx512Widen)}

var dotSet = &bf16Set

var stored = [level.Count]*BFloat16{level.AVX2: &avx2Stored, level.AVX512: &avx512Stored}
