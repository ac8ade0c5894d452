//go:build arm64 && !purego

package kern

import "onlinerna/internal/level"

var sets = [level.Count]*Set{level.NEON: &neonSet}

var narrowSets = [level.Count]*Set{level.NEON: neonSet.narrow(neonRound, neonWiden)}

var dotSet *Set

var stored = [level.Count]*BFloat16{level.NEON: &neonStored}
