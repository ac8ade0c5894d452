//go:build (!amd64 && !arm64) || purego

package kern

import "onlinerna/internal/level"

var sets, narrowSets [level.Count]*Set

var dotSet *Set

var stored [level.Count]*BFloat16
