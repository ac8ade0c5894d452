//go:build (!amd64 && !arm64) || purego

package vec

import "onlinerna/internal/level"

var (
	sets  = [level.Count]Set{level.Go: plain}
	large = sets

	updates [level.Count]Updates
)
