package zootest

import (
	"onlinerna/nn"
)

func init() {
	one, few := [4]int{1, 1, 1, 1}, [4]int{8, 16, 16, 24}
	register(map[string]nn.Architecture{
		"resnetblur_timm_narrow": like("resnet18d", nn.ResNet{Blocks: one, Basic: true, Channels: few, Stem: [3]int{4, 4, 8},
			AntiAlias: "blur", ReduceFirst: 2, DownKernel: 3, ECA: true}.Build),
		"resnetaa_timm_narrow": like("resnetaa50", nn.ResNet{Blocks: [4]int{1, 2, 1, 1}, Channels: few, AntiAlias: "avg",
			ReduceFirst: 2, GroupNorm: 4}.Build),
	})
}
