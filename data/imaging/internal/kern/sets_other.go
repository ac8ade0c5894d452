//go:build !amd64 || purego

package kern

import "onlinerna/internal/level"

var sets = [...]*Set{level.Go: plain, level.NEON: plain}
