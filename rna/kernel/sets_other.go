//go:build !amd64 || purego

package kernel

import "onlinerna/internal/level"

var sets = [...]set{level.Go: plain, level.NEON: plain}
