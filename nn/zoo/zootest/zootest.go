// Package zootest has small nets of all families of package zoo, for tests. Importing it registers them.
package zootest

import (
	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

// Narrow are nets of the families with few channels and blocks, by name: those of package zoo's testdata.
var Narrow = map[string]nn.Architecture{
	"alexnet_narrow": like("alexnet", zoo.AlexNet{Narrow: 16, Pool: 1}.Build),
	"vgg_narrow": like("vgg11", zoo.VGG{Blocks: [5]int{1, 1, 2, 1, 1}, Width: 8, Hidden: 32,
		Pool: 1}.Build),
	"vgg_bn_narrow": like("vgg11_bn",
		zoo.VGG{Blocks: [5]int{1, 1, 2, 1, 1}, BatchNorm: true, Width: 8, Hidden: 32, Pool: 1}.Build),
	"resnext_narrow": like("resnet50", nn.ResNet{Blocks: [4]int{1, 2, 1, 1}, Groups: 8, GroupWidth: 2}.Build),
	"resnet_dilated_narrow": like("resnet50", nn.ResNet{Blocks: [4]int{1, 2, 2, 1}, Groups: 4, GroupWidth: 4,
		Dilate: [3]bool{true, true, false}}.Build),
	"resnet_timm_narrow": like("resnet50d", nn.ResNet{Blocks: [4]int{1, 2, 1, 1}, Groups: 8, GroupWidth: 2,
		Stem: [3]int{6, 8, 16}, AvgDown: true, Excite: .1}.Build),
	"res2net_timm_narrow": like("res2next50", nn.ResNet{Blocks: [4]int{1, 2, 1, 1},
		Groups: 2, GroupWidth: 3, Scale: 4}.Build),
	"mobilenet_v2_own_narrow": like("mobilenet_v2",
		zoo.MobileNetV2{Width: .1, Settings: [][4]int{{1, 40, 1, 2}, {3, 70, 2, 1}}, Round: 3}.Build),
	"mobilenet_v3_dilated_narrow": like("mobilenet_v3_small",
		zoo.MobileNetV3{Small: true, Width: .35, Reduced: true, Dilated: true}.Build),
	"mobilenet_v3_own_narrow": like("mobilenet_v3_small", zoo.MobileNetV3{Width: .75, Blocks: []zoo.MobileBlock{
		{Kernel: 5, Wide: 32, Out: 32, Hardswish: true, Stride: 1, Dilation: 3},
		{Kernel: 3, Wide: 48, Out: 32, Excite: true, Stride: 2},
		{Kernel: 3, Wide: 64, Out: 32, Stride: 2, Dilation: 2}}, Stem: 32, Last: 96}.Build),
	"mobilenet_v2_narrow":       like("mobilenet_v2", zoo.MobileNetV2{Width: .25}.Build),
	"mobilenetv2_narrow":        like("mobilenetv2_110d", zoo.MobileNetV2{Width: .25, Depth: 1.2, Timm: true}.Build),
	"mobilenet_v3_small_narrow": like("mobilenet_v3_small", zoo.MobileNetV3{Small: true, Width: .35}.Build),
	"mobilenet_v3_large_narrow": like("mobilenet_v3_large", zoo.MobileNetV3{Width: .25}.Build),
	"mobilenetv4_narrow": dropping(0, .2, like("mobilenetv4_conv_small", zoo.MobileNetV4{Stem: 32, Width: .25,
		Stages: [][]zoo.UniversalBlock{
			{{Plain: 3, Stride: 2, Out: 64, Blocks: 1}, {Plain: 1, Stride: 1, Out: 64, Blocks: 1}},
			{{Fused: 3, Stride: 2, Expansion: 2, Out: 64, Blocks: 2}},
			{{Start: 5, Middle: 3, Stride: 2, Expansion: 3, Out: 96, Blocks: 2}, {Start: 3, Stride: 1, Expansion: 2, Out: 96, Blocks: 1},
				{Middle: 3, Stride: 1, Expansion: 2, Out: 96, Blocks: 1}, {Stride: 1, Expansion: 2, Out: 96, Blocks: 1}},
			{{Start: 3, Stride: 2, Expansion: 2, Out: 128, Blocks: 1}}}}.Build)),
	"ghostnet_timm_narrow": like("ghostnet_100", zoo.GhostNet{Width: .5, Stages: [][]zoo.GhostBlock{
		{{Kernel: 3, Wide: 16, Out: 16, Stride: 1}}, {{Kernel: 3, Wide: 48, Out: 24, Stride: 2}},
		{{Kernel: 5, Wide: 72, Out: 40, Stride: 2, Excite: .25}, {Kernel: 3, Wide: 80, Out: 40, Stride: 1, Excite: .25},
			{Kernel: 3, Wide: 96, Out: 56, Stride: 1, Excite: .25}}}}.Build),
	"mnasnet_narrow": like("mnasnet1_0", zoo.MNASNet{Alpha: .25}.Build),
	"efficientnet_narrow": like("efficientnet_b0", zoo.EfficientNet{Width: .6, Depth: .6, Stages: []zoo.MBConv{
		{Expansion: 1, Kernel: 3, Stride: 1, In: 32, Out: 16, Blocks: 1},
		{Expansion: 6, Kernel: 3, Stride: 2, In: 16, Out: 24, Blocks: 2},
		{Expansion: 6, Kernel: 5, Stride: 2, In: 24, Out: 40, Blocks: 2}}}.Build),
	"efficientnet_v2_narrow": like("efficientnet_v2_s", zoo.EfficientNet{Last: 96, Stages: []zoo.MBConv{
		{Fused: true, Expansion: 1, Kernel: 3, Stride: 1, In: 16, Out: 16, Blocks: 2},
		{Fused: true, Expansion: 4, Kernel: 3, Stride: 2, In: 16, Out: 24, Blocks: 2},
		{Expansion: 4, Kernel: 3, Stride: 2, In: 24, Out: 32, Blocks: 2},
		{Expansion: 6, Kernel: 3, Stride: 1, In: 32, Out: 40, Blocks: 2}}}.Build),
	"tf_efficientnet_narrow": like("tf_efficientnet_b0", zoo.EfficientNet{Timm: true, Stages: []zoo.MBConv{
		{Expansion: 1, Kernel: 3, Stride: 1, In: 16, Out: 8, Blocks: 1},
		{Expansion: 6, Kernel: 3, Stride: 2, In: 8, Out: 16, Blocks: 2},
		{Expansion: 6, Kernel: 5, Stride: 2, In: 16, Out: 24, Blocks: 2}}}.Build),
	"efficientnet_lite_timm_narrow": like("efficientnet_lite0", zoo.EfficientNet{Timm: true, Lite: true, Width: .6,
		Depth: 1.4, Last: 96,
		Stages: []zoo.MBConv{{Expansion: 1, Kernel: 3, Stride: 1, In: 24, Out: 16, Blocks: 1},
			{Expansion: 6, Kernel: 5, Stride: 2, In: 16, Out: 24, Blocks: 1},
			{Expansion: 6, Kernel: 3, Stride: 2, In: 24, Out: 40, Blocks: 1}}}.Build),
	"tf_efficientnetv2_narrow": like("tf_efficientnetv2_b0", zoo.EfficientNet{Timm: true, Last: 96, Stages: []zoo.MBConv{
		{Fused: true, Expansion: 1, Kernel: 3, Stride: 1, In: 16, Out: 16, Blocks: 1},
		{Fused: true, Expansion: 4, Kernel: 3, Stride: 2, In: 16, Out: 24, Blocks: 2},
		{Expansion: 4, Kernel: 3, Stride: 2, In: 24, Out: 32, Blocks: 1},
		{Expansion: 6, Kernel: 3, Stride: 1, In: 32, Out: 40, Blocks: 1}}}.Build),
	"tf_mobilenetv3_narrow": like("tf_mobilenetv3_small_100", zoo.MobileNetV3{Small: true, Width: .35, Timm: true}.Build),
	"regnet_x_narrow": like("regnet_x_400mf",
		zoo.RegNet{Depth: 6, Start: 16, Slope: 12.5, Factor: 2.2, GroupWidth: 8}.Build),
	"regnet_y_narrow": like("regnet_y_400mf",
		zoo.RegNet{Depth: 6, Start: 16, Slope: 12.5, Factor: 2.2, GroupWidth: 12, Excite: .25, Bottleneck: 1.5,
			Stem: 24}.Build),
	"regnety_narrow": like("regnety_002",
		zoo.RegNet{Depth: 6, Start: 8, Slope: 12.5, Factor: 2.2, GroupWidth: 12, Excite: .25, Timm: true}.Build),
	"squeezenet1_0_narrow": like("squeezenet1_0", zoo.SqueezeNet{Version: "1_0", Narrow: 8}.Build),
	"squeezenet1_1_narrow": like("squeezenet1_1", zoo.SqueezeNet{Version: "1_1", Narrow: 8}.Build),
	"googlenet_narrow":     like("googlenet", zoo.GoogLeNet{Narrow: 8}.Build),
	"inception_v3_narrow":  sized(107, like("inception_v3", zoo.InceptionV3{Narrow: 16}.Build)),
	"inception_v4_narrow":  sized(107, like("inception_v4", zoo.InceptionV4{Narrow: 16, Blocks: [3]int{1, 2, 1}}.Build)),
	"inception_resnet_v2_narrow": sized(107, like("inception_resnet_v2",
		zoo.InceptionV4{Narrow: 16, Residual: true, Blocks: [3]int{2, 1, 2}}.Build)),
	"legacy_xception_narrow":    like("legacy_xception", zoo.Xception{Narrow: 8}.Build),
	"hgnetv2_timm_narrow":       dropping(.2, .2, like("hgnetv2_b0", hgNet(true).Build)),
	"hgnetv2_plain_timm_narrow": dropping(.2, .2, like("hgnetv2_b4", hgNet(false).Build)),
	"densenet_narrow":           like("densenet121", zoo.DenseNet{Growth: 8, Blocks: []int{2, 3, 2}, Stem: 16}.Build),
	"densenet_small": dropping(.2, 0, like("densenet100_12",
		zoo.DenseNet{Growth: 4, Blocks: []int{2, 3}, Stem: 8, Small: true, Bottleneck: 3}.Build)),
	"shufflenet_v2_narrow": like("shufflenet_v2_x1_0",
		zoo.ShuffleNetV2{Blocks: [3]int{1, 2, 2}, Channels: [5]int{8, 16, 24, 32, 48}}.Build),
	"vit_narrow":             like("vit_tiny_patch16_224", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3}.Build),
	"vit_gap_narrow":         like("vit_base_patch16_gap_224", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3, Mean: true}.Build),
	"vit_torchvision_narrow": like("vit_b_16", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3, Torchvision: true}.Build),
	"convnext_narrow": like("convnext_tiny",
		zoo.ConvNeXt{Width: 8, Blocks: [4]int{1, 2, 1, 1}, LayerScale: .2}.Build),
	"convnext_timm_narrow": like("convnext_atto",
		zoo.ConvNeXt{Width: 8, Blocks: [4]int{1, 2, 1, 1}, LayerScale: .2, Timm: true, ConvMLP: true}.Build),
	"convnextv2_narrow": like("convnextv2_base",
		zoo.ConvNeXt{Width: 8, Blocks: [4]int{1, 2, 1, 1}, Timm: true, Response: true}.Build),
	"poolformer_narrow": like("poolformer_s12", zoo.MetaFormer{Blocks: [4]int{1, 1, 2, 1}, Channels: [4]int{8, 12, 16, 24},
		Pools: true, LayerScale: .2}.Build),
	"poolformerv2_narrow": like("poolformerv2_s12", zoo.MetaFormer{Blocks: [4]int{1, 1, 2, 1},
		Channels: [4]int{8, 12, 16, 24}, Pools: true, V2: true}.Build),
	"convformer_narrow": like("convformer_s18", zoo.MetaFormer{Blocks: [4]int{1, 1, 1, 2}, Channels: [4]int{8, 12, 16, 16},
		V2: true, MLPHead: true}.Build),
	"caformer_narrow": like("caformer_s18", zoo.MetaFormer{Blocks: [4]int{1, 1, 2, 1}, Channels: [4]int{8, 12, 16, 24},
		V2: true, MLPHead: true, Attention: 2, Head: 8, LayerScale: .2}.Build),
	"mixer_narrow": dropping(0, .1, like("mixer_b16_224", zoo.Mixer{Patch: 8, Width: 24, Blocks: 2, TokenRatio: .75,
		MLPRatio: 2.5}.Build)),
	"resmlp_narrow": dropping(.2, .1, like("resmlp_12_224", zoo.Mixer{Patch: 8, Width: 24, Blocks: 2,
		LayerScale: .1}.Build)),
	"gmlp_narrow": dropping(0, .1, like("gmlp_s16_224", zoo.Mixer{Patch: 8, Width: 24, Blocks: 2,
		MLPRatio: 6, Gate: true}.Build)),
	"cait_narrow": dropping(0, .1, like("cait_xxs24_224", zoo.CaiT{Patch: 8, Width: 24, Heads: 3, Depth: 2,
		LayerScale: .2}.Build)),
	"xcit_narrow": dropping(0, .1, like("xcit_tiny_12_p16_224", zoo.XCiT{Patch: 8, Width: 24, Heads: 3, Depth: 2,
		LayerScale: .5}.Build)),
	"xcit_nano_narrow": like("xcit_nano_12_p16_224", zoo.XCiT{Patch: 16, Width: 48, Heads: 4, Depth: 1,
		ClassNorm: true}.Build),
	"tiny_vit_narrow": like("tiny_vit_21m_224", zoo.TinyViT{Channels: [4]int{8, 12, 16, 24}, Blocks: [4]int{2, 1, 2, 1},
		Heads: [3]int{2, 4, 3}, Windows: [3]int{3, 4, 2}}.Build),
	"fastvit_narrow": dropping(0, .1, like("fastvit_sa12", zoo.FastViT{Blocks: [4]int{2, 1, 1, 1},
		Channels: [4]int{8, 16, 16, 32}, MLPRatio: 3, Attention: true}.Build)),
	"swin_narrow": like("swin_t", zoo.Swin{Width: 8, Blocks: [4]int{2, 2, 1, 1}, Heads: 2, Window: 4}.Build),
	"swin_v2_narrow": like("swin_v2_t",
		zoo.Swin{V2: true, Width: 8, Blocks: [4]int{2, 2, 1, 1}, Heads: 2, Window: 4}.Build),
	"swin_v2_options_narrow": like("swin_v2_t", zoo.Swin{V2: true, Width: 8, Blocks: [4]int{2, 2, 1, 1}, Heads: 2,
		Patch: 2, Window: 3, WindowWidth: 4, MLPRatio: 2.5, Dropout: nothing, AttentionDropout: 2 * nothing}.Build),
	"swinv2_timm_narrow": like("swinv2_tiny_window8_256",
		zoo.Swin{V2: true, Timm: true, Width: 8, Blocks: [4]int{2, 2, 1, 1}, Heads: 2, Window: 4}.Build),
	"swinv2_timm_options_narrow": like("swinv2_base_window12to16_192to256", zoo.Swin{V2: true, Timm: true, Width: 8,
		Blocks: [4]int{2, 2, 1, 1}, Heads: 2, Patch: 2, Window: 8, MLPRatio: 2.5, Pretrained: [4]int{6, 6, 6, 3},
		Dropout: nothing, AttentionDropout: 2 * nothing}.Build),
	"maxvit_narrow": like("maxvit_t", zoo.MaxViT{Stem: 8, Channels: []int{8, 16}, Layers: []int{1, 2}, Head: 4,
		Partition: 4}.Build),
	"mobilevit_timm_narrow": dropping(.2, .2, like("mobilevit_xxs", zoo.MobileViT{Stem: 8, Stages: []zoo.MobileViTStage{
		{Stride: 1, Blocks: 2, Expansion: 2, Out: 8}, {Stride: 2, Blocks: 1, Expansion: 4, Out: 16, Depth: 2, Width: 12},
		{Stride: 2, Blocks: 2, Expansion: 4, Out: 24, Depth: 1, Width: 20}}, Last: 40}.Build)),
	"mobilevitv2_timm_narrow": dropping(.2, .2, like("mobilevitv2_050", zoo.MobileViT{Stem: 8, Separable: true,
		Stages: []zoo.MobileViTStage{
			{Stride: 1, Blocks: 2, Expansion: 2, Out: 8}, {Stride: 2, Blocks: 1, Expansion: 2, Out: 16, Depth: 2, Width: 8},
			{Stride: 2, Blocks: 2, Expansion: 2, Out: 32, Depth: 1, Width: 16}}}.Build)),
	"repvgg_timm_narrow": dropping(0, .2, like("repvgg_b1g4", zoo.RepVGG{Stem: 8, Blocks: [4]int{2, 3, 1, 2},
		Channels: [4]int{8, 16, 16, 24}, Groups: 4}.Build)),
	"deit_narrow": like("deit_tiny_distilled_patch16_224", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3, Distilled: true}.Build),
	"vit_torchvision_options_narrow": like("vit_b_16", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3, Torchvision: true,
		Hidden: 60, Representation: 16, Dropout: nothing, AttentionDropout: 2 * nothing}.Build),
	"deit_options_narrow": like("deit_tiny_distilled_patch16_224", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
		Distilled: true, Hidden: 60, LayerScale: .1, NoQKVBias: true, Dropout: nothing, AttentionDropout: 2 * nothing}.Build),
	"swin_options_narrow": like("swin_t", zoo.Swin{Width: 8, Blocks: [4]int{2, 2, 1, 1}, Heads: 2, Patch: 2, Window: 3,
		WindowWidth: 4, MLPRatio: 2.5, Dropout: nothing, AttentionDropout: 2 * nothing}.Build),
	"maxvit_options_narrow": like("maxvit_t", zoo.MaxViT{Stem: 8, Channels: []int{8, 16}, Layers: []int{1, 1},
		Head: 4, Partition: 4, Expansion: 2.5, Squeeze: .5, MLPRatio: 3, MLPDropout: nothing,
		AttentionDropout: 2 * nothing}.Build),
	"dinov2_narrow": like("vit_small_patch14_dinov2", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3, LayerScale: .1}.Build),
	"dinov2_reg2_narrow": like("vit_small_patch14_reg4_dinov2", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
		LayerScale: .1, Registers: 2, NoEmbedClass: true}.Build),
	"dinov2_options_narrow": like("vit_small_patch14_reg4_dinov2", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
		Hidden: 60, LayerScale: .1, Registers: 2, NoEmbedClass: true, PreNorm: true, Dropout: nothing}.Build),
	"vit_reg2_narrow": placed(3, like("vit_tiny_patch16_224", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
		Registers: 2}.Build)),
	"clip_narrow": like("vit_base_patch32_clip_224", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3, PreNorm: true,
		Eps: 1e-5}.Build),
	"clip_quickgelu_narrow": like("vit_base_patch32_clip_quickgelu_224", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
		Hidden: 60, PreNorm: true, QuickGELU: true, Eps: 1e-5}.Build),
	"clip_options_narrow": placed(0, like("vit_base_patch32_clip_quickgelu_224", zoo.ViT{Patch: 8, Width: 24, Depth: 2,
		Heads: 3, Mean: true, PreNorm: true, QuickGELU: true, Eps: 1e-5, Dropout: nothing}.Build)),
	"dinov3_narrow": like("vit_small_patch16_dinov3", zoo.Eva{DINOv3: true, Patch: 8, Width: 24, Depth: 2, Heads: 3,
		LayerScale: .1, Registers: 2, NoQKVBias: true, Eps: 1e-5}.Build),
	"dinov3_qkvb_narrow": like("vit_small_patch16_dinov3_qkvb", zoo.Eva{DINOv3: true, Patch: 8, Width: 24, Depth: 2,
		Heads: 3, Hidden: 64, LayerScale: .1, Registers: 2, SwiGLU: true, SeparateMLP: true, Eps: 1e-5}.Build),
	"eva02_narrow": like("eva02_tiny_patch14_224", zoo.Eva{Patch: 8, Width: 24, Depth: 2, Heads: 3, Hidden: 64, Grid: 2,
		SwiGLU: true}.Build),
	"eva02_large_narrow": dropping(0, .1, like("eva02_large_patch14_224", zoo.Eva{Patch: 8, Width: 24, Depth: 2, Heads: 3,
		Hidden: 64, Grid: 2, SeparateQKV: true, SwiGLU: true, ScaleMLP: true}.Build)),
	"eva_options_narrow": dropping(.2, 0, placed(2, like("eva02_tiny_patch14_224", zoo.Eva{Patch: 8, Width: 16, Depth: 2,
		Heads: 2, Hidden: 40, Registers: 1, LayerScale: .2, NoQKVBias: true, SeparateQKV: true, ScaleMLP: true,
		Dropout: nothing, AttentionDropout: 2 * nothing}.Build))),
	"siglip_narrow": like("vit_base_patch16_siglip_224", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
		AttentionPool: true}.Build),
	"siglip_options_narrow": like("vit_so400m_patch16_siglip_256", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
		AttentionPool: true, Hidden: 60, GELUTanh: true, Truncate: true, Dropout: nothing}.Build),
	"beit_narrow": dropping(0, .1, like("beit_base_patch16_224", zoo.BEiT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
		LayerScale: .1}.Build)),
	"beit_options_narrow": like("beitv2_base_patch16_224", zoo.BEiT{Patch: 8, Width: 24, Depth: 2, Heads: 3, Hidden: 60,
		Dropout: nothing, AttentionDropout: 2 * nothing}.Build),
	"wrn10_2":        like("wrn28_10", zoo.WideResNet{Depth: 10, Width: 2}.Build),
	"resnet9_narrow": like("resnet9", zoo.ResNet9{Width: 8}.Build),
}

// nothing is a probability of dropout that drops nothing: steps of the graphs that have it can be compared.
const nothing = 1e-12

// hgNet is a narrow HGNetV2.
func hgNet(affine bool) zoo.HGNetV2 {
	return zoo.HGNetV2{Stem: [2]int{8, 12}, Last: 40, Affine: affine, Stages: []zoo.HGStage{
		{Inner: 8, Out: 16, Blocks: 1, Layers: 2, Kernel: 3},
		{Inner: 8, Out: 24, Blocks: 2, Layers: 2, Kernel: 5, Light: true},
		{Inner: 12, Out: 24, Blocks: 1, Layers: 1, Kernel: 3},
		{Inner: 16, Out: 32, Blocks: 2, Layers: 1, Kernel: 3, Light: true}}}
}

// like is a registered net with other layers.
func like(name string, build func(*nn.Builder, *G.Node) *G.Node) nn.Architecture {
	a, err := nn.Lookup(name)
	if err != nil {
		panic(err)
	}
	a.Build, a.Size, a.Resize, a.MinSize = build, 64, 0, 0
	return a
}

// sized is a for larger images, which it needs.
func sized(size int, a nn.Architecture) nn.Architecture {
	a.Size = size
	return a
}

// placed is a with the number of places before those of patches.
func placed(first int, a nn.Architecture) nn.Architecture {
	a.Positions.First = first
	return a
}

// dropping is a with dropout and stochastic depth.
func dropping(dropout, path float64, a nn.Architecture) nn.Architecture {
	a.Dropout, a.DropPath = dropout, path
	return a
}

func init() {
	for name, a := range Narrow {
		a.Name = name
		nn.Register(a)
	}
}
