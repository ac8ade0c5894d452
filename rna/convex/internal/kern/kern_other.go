//go:build (!amd64 && !arm64) || purego

package kern

import "onlinerna/internal/level"

var sets = [level.Count]Set{level.Go: plain}
