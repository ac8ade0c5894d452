package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	register(map[string]nn.Architecture{
		"swin_s3_timm_narrow": like("swin_s3_tiny_224", zoo.Swin{Timm: true, Width: 8, Blocks: [4]int{2, 2, 1, 1}, Heads: 2,
			Windows: [4]int{4, 4, 4, 2}}.Build),
	})
}
