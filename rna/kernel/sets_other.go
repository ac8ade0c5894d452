//go:build (!amd64 && !arm64) || purego

package kernel

import "onlinerna/internal/level"

var sets = [level.Count]set{level.Go: plain}
