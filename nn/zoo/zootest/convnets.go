package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	register(map[string]nn.Architecture{
		"convnext_hnf_narrow": like("convnext_tiny_hnf", zoo.ConvNeXt{Width: 8, Blocks: [4]int{1, 2, 1, 1}, LayerScale: .2,
			Timm: true, ConvMLP: true, Stem: "overlap_tiered", NormFirst: true}.Build),
		"convnext_simple_narrow": like("convnext_zepto_rms_ols", zoo.ConvNeXt{Width: 8, Blocks: [4]int{1, 2, 1, 1},
			LayerScale: .2, Timm: true, ConvMLP: true, Stem: "overlap_act", SimpleNorm: true, Eps: 1e-3, Hidden: 40}.Build),
	})
}
