package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	register(map[string]nn.Architecture{
		"hieradet_narrow": dropping(0, .2, like("sam2_hiera_tiny", zoo.HieraDet{Width: 8, Heads: 2,
			Blocks: [4]int{1, 1, 2, 1}, Windows: [4]int{8, 4, 6, 3}, Global: []int{3}, Grid: 5}.Build)),
	})
}
