package zoo_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

type buildable interface {
	Build(b *nn.Builder, x *G.Node) *G.Node
}

// build builds a net of the options, whose panic is an error of the test.
func build(t *testing.T, o buildable, size int) (err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%+v at %d pixels: panic: %v", o, size, p)
		}
	}()
	a := nn.Architecture{Name: "net", Size: size, Channels: 3, Classes: 10, Build: o.Build}
	_, err = a.Model(nn.Config{Batch: 2})
	return err
}

// fails wants an error that ends with the text.
func fails(t *testing.T, o buildable, size int, want string) {
	t.Helper()
	if err := build(t, o, size); err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
		t.Errorf("%+v at %d pixels: %v, want %s", o, size, err, want)
	}
}

// An error names the wrong field, its value and the values that are right.
func TestOptions(t *testing.T) {
	stages := func(s ...zoo.MBConv) zoo.EfficientNet { return zoo.EfficientNet{Stages: s} }
	first := zoo.MBConv{Expansion: 1, Kernel: 3, Stride: 1, In: 8, Out: 16, Blocks: 1}
	blocks := func(s ...zoo.MobileBlock) zoo.MobileNetV3 { return zoo.MobileNetV3{Blocks: s} }
	block := zoo.MobileBlock{Kernel: 3, Wide: 16, Out: 16, Stride: 1}
	mobile := func(stage string) zoo.Mobile { return zoo.Mobile{Stem: 8, Stages: []string{stage, "cn_k3_c8"}} }
	mobiles := func(change func(s *zoo.MobileViTStage)) zoo.MobileViT {
		s := zoo.MobileViTStage{Stride: 1, Blocks: 1, Expansion: 2, Out: 16, Depth: 1, Width: 8}
		change(&s)
		return zoo.MobileViT{Stem: 8, Stages: []zoo.MobileViTStage{s}}
	}
	for _, c := range []struct {
		o    buildable
		want string
	}{
		{nn.ResNet{}, "nn.ResNet.Blocks is [0 0 0 0]: must be numbers of at least 1"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Groups: -1}, "nn.ResNet.Groups is -1: must be at least 0"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, GroupWidth: -1}, "nn.ResNet.GroupWidth is -1: must be at least 0"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Basic: true, Groups: 3},
			"nn.ResNet.Groups is 3: must be 0 with Basic, whose blocks have no groups"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Basic: true, GroupWidth: 4},
			"nn.ResNet.GroupWidth is 4: must be 0 with Basic, whose blocks have no groups"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Basic: true, Dilate: [3]bool{2: true}},
			"nn.ResNet.Dilate is [false false true]: must be false with Basic, whose blocks have no dilation"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Stem: [3]int{32, 0, 64}},
			"nn.ResNet.Stem is [32 0 64]: must be numbers of at least 1, or 0 all"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, AvgDown: true, Dilate: [3]bool{2: true}},
			"nn.ResNet.Dilate is [false false true]: must be false with AvgDown"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Scale: 1}, "nn.ResNet.Scale is 1: must be 0, or from 2 to 64"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Scale: 1 << 50},
			"nn.ResNet.Scale is 1125899906842624: must be 0, or from 2 to 64"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Scale: 2, Basic: true},
			"nn.ResNet.Scale is 2: must be 0 with Basic or Dilate"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Excite: .5, ECA: true}, "nn.ResNet.Excite is 0.5: must be 0 with ECA"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, GroupNorm: -1}, "nn.ResNet.GroupNorm is -1: must be at least 0"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, AntiAlias: "max"},
			`nn.ResNet.AntiAlias is "max": must be "avg", "blur" or ""`},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, AntiAlias: "avg", StemConv: true},
			`nn.ResNet.AntiAlias is "avg": must be "" with StemConv, Scale or Dilate`},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, ReduceFirst: -1},
			"nn.ResNet.ReduceFirst is -1: must be at least 0 and at most 64"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, ReduceFirst: 2, Scale: 2}, "nn.ResNet.ReduceFirst is 2: must be 0 with Scale"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, DownKernel: 2}, "nn.ResNet.DownKernel is 2: must be 0 or odd"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, DownKernel: 3, AvgDown: true},
			"nn.ResNet.DownKernel is 3: must be 0 with AvgDown or Dilate"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8}},
			"nn.ResNet.Channels is [8 8 0 0]: must be numbers of at least 1, or 0 all"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 1 << 50}},
			"nn.ResNet.Channels is [8 8 8 1125899906842624]: must be numbers of at most 65536"},
		{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Excite: 2}, "nn.ResNet.Excite is 2: must be at least 0 and at most 1"},
		{zoo.ResNetV2{}, "zoo.ResNetV2.Blocks is [0 0 0 0]: must be numbers of at least 1"},
		{zoo.ResNetV2{Blocks: [4]int{1, 1, 1, 1}, Deep: true, Fixed: true},
			"zoo.ResNetV2.Fixed is true: must be false with Deep"},
		{zoo.SKNet{Blocks: [4]int{1, 1, 1, 1}}, "zoo.SKNet.Divisor is 0: must be at least 1"},
		{zoo.ResNeSt{Blocks: [4]int{1, 1, 1, 1}}, "zoo.ResNeSt.Radix is 0: must be at least 1"},
		{zoo.SENet{Blocks: [4]int{1, 1, 1, 1}, Kind: "wide"},
			`zoo.SENet.Kind is "wide": must be "basic", "resnet", "resnext" or "senet"`},
		{zoo.SENet{Blocks: [4]int{1, 1, 1, 1}, Kind: "basic", Groups: 2},
			`zoo.SENet.Groups is 2: must be 0 with Kind "basic"`},
		{zoo.NFNet{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 8}, Activation: "tanh", Stem: "3x3"},
			`zoo.NFNet.Activation is "tanh": must be "relu", "silu" or "gelu"`},
		{zoo.NFNet{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 8}, Activation: "relu", Stem: "5x5"},
			`zoo.NFNet.Stem is "5x5": must be "deep_quad", "3x3" or "7x7_pool"`},
		{zoo.NFNet{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 8}, Activation: "relu", Stem: "3x3", ECA: true,
			Excite: .5}, "zoo.NFNet.Excite is 0.5: must be 0 with ECA"},
		{zoo.AlexNet{Narrow: 65}, "zoo.AlexNet.Narrow is 65: must be at most 64"},
		{zoo.BEiT{Patch: 8, Width: 25, Heads: 4}, "zoo.BEiT.Width is 25: must be divisible by Heads, which is 4"},
		{zoo.BEiT{Patch: 8, Width: 24, Heads: 4, Dropout: 1}, "zoo.BEiT.Dropout is 1: must be at least 0 and below 1"},
		{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, Windows: [4]int{7, 7, 7, 7}},
			"zoo.Swin.Windows is [7 7 7 7]: must be 0 without Timm"},
		{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, Timm: true, Windows: [4]int{7, 7, 0, 7}},
			"zoo.Swin.Windows is [7 7 0 7]: must be numbers of at least 2, or 0 all"},
		{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, Timm: true, Pretrained: [4]int{6, 6, 6, 6}},
			"zoo.Swin.Pretrained is [6 6 6 6]: must be 0 without Timm and V2"},
		{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, V2: true, Timm: true, Window: 3},
			"windows of 3×3 tokens do not divide images of 16×16: choose an input size of 96"},
		{zoo.CaiT{Patch: 8, Width: 25, Heads: 4, Depth: 1}, "zoo.CaiT.Width is 25: must be divisible by Heads, which is 4"},
		{zoo.CaiT{Patch: 8, Width: 24, Heads: 4}, "zoo.CaiT.Depth is 0: must be at least 1"},
		{zoo.XCiT{Patch: 4, Width: 24, Heads: 4, Depth: 1}, "zoo.XCiT.Patch is 4: must be 8 or 16"},
		{zoo.XCiT{Patch: 16, Width: 36, Heads: 4, Depth: 1}, "zoo.XCiT.Width is 36: must be divisible by 8"},
		{zoo.XCiT{Patch: 16, Width: 16, Heads: 3, Depth: 1}, "zoo.XCiT.Width is 16: must be divisible by Heads, which is 3"},
		{zoo.ConvNeXt{}, "zoo.ConvNeXt.Blocks is [0 0 0 0]: must be numbers of at least 1"},
		{zoo.ConvNeXt{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Response: true},
			"zoo.ConvNeXt.Response is true: must be false without Timm"},
		{zoo.ConvNeXt{Blocks: [4]int{1, 1, 1, 1}, Width: 8, ConvMLP: true},
			"zoo.ConvNeXt.ConvMLP is true: must be false without Timm"},
		{zoo.ConvNeXt{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Timm: true, Response: true, LayerScale: .1},
			"zoo.ConvNeXt.LayerScale is 0.1: must be 0 with Response"},
		{zoo.ConvNeXt{Blocks: [4]int{1, 1, 1, 1}, Width: 8, LayerScale: math.Inf(1)},
			"zoo.ConvNeXt.LayerScale is +Inf: must be at most 1000"},
		{zoo.DenseNet{Growth: 4, Stem: 8}, "zoo.DenseNet.Blocks is []: must be numbers of at least 1"},
		{zoo.EfficientNet{Width: math.NaN()}, "zoo.EfficientNet.Width is NaN: must be at least 0"},
		{zoo.EfficientNet{Stages: []zoo.MBConv{}}, "zoo.EfficientNet.Stages is []: must be nil or have a stage"},
		{stages(zoo.MBConv{Kernel: 3, Stride: 1, In: 8, Out: 16, Blocks: 1}),
			"zoo.EfficientNet.Stages[0].Expansion is 0: must be at least 1"},
		{stages(first, zoo.MBConv{Expansion: 6, Kernel: 4, Stride: 1, In: 16, Out: 16, Blocks: 1}),
			"zoo.EfficientNet.Stages[1].Kernel is 4: must be odd"},
		{stages(first, first), "zoo.EfficientNet.Stages[1].In is 8: must be 16, the Out of the stage before"},
		{zoo.Eva{Width: 24, Heads: 3}, "zoo.Eva.Patch is 0: must be at least 1"},
		{zoo.Eva{Patch: 8, Width: 24}, "zoo.Eva.Heads is 0: must be at least 1"},
		{zoo.Eva{Patch: 8, Width: 18, Heads: 3}, "zoo.Eva.Width is 18: must be divisible by 4·Heads"},
		{zoo.Eva{Patch: 8, Width: 24, Heads: 3, DINOv3: true, Grid: 16}, "zoo.Eva.Grid is 16: must be 0 with DINOv3"},
		{zoo.Eva{Patch: 8, Width: 24, Heads: 3, SeparateMLP: true},
			"zoo.Eva.SeparateMLP is true: must be false without SwiGLU"},
		{zoo.Eva{Patch: 8, Width: 24, Heads: 3, AttentionDropout: 1},
			"zoo.Eva.AttentionDropout is 1: must be at least 0 and below 1"},
		{zoo.Eva{Patch: 8, Width: 24, Heads: 3, Mixed: true, Grid: 2},
			"zoo.Eva.Mixed is true: must be false with DINOv3, NoRope, Grid or Offset"},
		{zoo.Eva{Patch: 8, Width: 24, Heads: 3, NormKeys: true},
			"zoo.Eva.NormKeys is true: must be false without BiasedKeys"},
		{zoo.Eva{Patch: 8, Width: 24, Heads: 3, KeyHeads: 1},
			"zoo.Eva.KeyHeads is 1: must be 0, or a divisor of Heads with NormKeys"},
		{zoo.Eva{Patch: 8, Width: 24, Heads: 3, ScaleBranch: true},
			"zoo.Eva.ScaleBranch is true: must be false without LayerScale"},
		{zoo.HieraDet{Width: 8, Heads: 1, Blocks: [4]int{1, 1, 1, 1}, Windows: [4]int{8, 4, 7, 7}},
			"zoo.HieraDet.Windows is [8 4 7 7]: must be even but for the last"},
		{zoo.HieraDet{Width: 8, Heads: 1, Blocks: [4]int{1, 1, 1, 1}, Windows: [4]int{12, 4, 2, 1}},
			"images of 64×64 pixels: height and width must be multiples of 48: choose an input size of 48 or 96"},
		{zoo.LanguageViT{Patch: 8, Width: 24, Heads: 3, Depth: 1},
			"zoo.LanguageViT.Grid is 0: must be 0 with DeepSeek, else at least 1"},
		{zoo.GemmaViT{Patch: 8, Width: 24, Depth: 1, Heads: 3, Hidden: 8, Places: 7},
			"zoo.GemmaViT.Places is 7: must be at least the rows and columns of patches"},
		{zoo.ViT{Patch: 8, Width: 24, Heads: 3, NaFlex: &zoo.NaFlex{}}, "zoo.NaFlex.Grid is 0: must be at least 1"},
		{zoo.FastViT{Blocks: []int{1, 1, 1, 1}, Channels: []int{8, 8, 8, 24}, MLPRatio: 3, Attention: 1},
			"zoo.FastViT.Channels is [8 8 8 24]: must be divisible by 32 in stages of attention"},
		{zoo.FastViT{Blocks: []int{1, 1, 1, 1}, Channels: []int{8, 16, 24, 24}, MLPRatio: 3},
			"zoo.FastViT.Channels is [8 16 24 24]: must be numbers of which each divides the next"},
		{zoo.GhostNet{Stages: [][]zoo.GhostBlock{}}, "zoo.GhostNet.Stages is []: must be nil or have a stage"},
		{zoo.GhostNet{Stages: [][]zoo.GhostBlock{{}}},
			"zoo.GhostNet.Stages is [[]]: must be stages of blocks, but stage 0 has none"},
		{zoo.GhostNet{Stages: [][]zoo.GhostBlock{{{Kernel: 2, Wide: 8, Out: 8, Stride: 1}}}},
			"zoo.GhostNet.Stages[0][0].Kernel is 2: must be odd"},
		{zoo.GhostNet{Stages: [][]zoo.GhostBlock{{{Kernel: 3, Wide: 8, Out: 8, Stride: 1, Excite: 2}}}},
			"zoo.GhostNet.Stages[0][0].Excite is 2: must be at most 1"},
		{zoo.GoogLeNet{Narrow: 17}, "zoo.GoogLeNet.Narrow is 17: must be at most 16"},
		{zoo.HGNet{Stem: [2]int{8, 8}, Last: 8}, "zoo.HGNet.Stages is []: must be at least one"},
		{zoo.HGNet{Stem: [2]int{8, 8}, Last: 8, Stages: []zoo.HGStage{{Inner: 8, Out: 8, Blocks: 1, Layers: 1, Kernel: 2}}},
			"zoo.HGNet.Stages[0].Kernel is 2: must be odd"},
		{zoo.InceptionV4{Narrow: 33}, "zoo.InceptionV4.Narrow is 33: must be at most 32"},
		{zoo.Xception{Narrow: 33}, "zoo.Xception.Narrow is 33: must be at most 32"},
		{zoo.InceptionV3{Narrow: 33}, "zoo.InceptionV3.Narrow is 33: must be at most 32"},
		{zoo.MaxViT{Stem: 8, Channels: []int{8}, Layers: []int{1}, Head: 4, Partition: 1 << 62},
			"zoo.MaxViT.Partition is 4611686018427387904: must be at most 1048576"},
		{zoo.MaxViT{Stem: 8, Channels: []int{8, 16}, Layers: []int{1}, Head: 4},
			"zoo.MaxViT.Channels is [8 16]: must be as long as Layers, [1]"},
		{zoo.MaxViT{Stem: 8, Channels: []int{32, 48}, Layers: []int{1, 1}},
			"zoo.MaxViT.Channels is [32 48]: must be divisible by Head, which is 32"},
		{zoo.MaxViT{Stem: 8, Channels: []int{8}, Layers: []int{1}, Head: 4, Squeeze: .1},
			"zoo.MaxViT.Squeeze is 0.1: must be at least 1/Channels"},
		{zoo.MaxViT{Stem: 8, Channels: []int{3}, Layers: []int{1}, Head: 3},
			"zoo.MaxViT.Squeeze is 0.25: must be at least 1/Channels"},
		{zoo.MaxViT{Stem: 8, Channels: []int{8}, Layers: []int{1}, Head: 4, Expansion: .1},
			"zoo.MaxViT.Expansion is 0.1: must be at least 1/Channels"},
		{zoo.MaxViT{Stem: 8, Channels: []int{8}, Layers: []int{1}, Head: 4, MLPDropout: 1},
			"zoo.MaxViT.MLPDropout is 1: must be at least 0 and below 1"},
		{zoo.MetaFormer{}, "zoo.MetaFormer.Blocks is [0 0 0 0]: must be numbers of at least 1"},
		{zoo.MetaFormer{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 8}},
			"zoo.MetaFormer.Pools is false: must be true without V2"},
		{zoo.MetaFormer{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 8}, V2: true, Pools: true, Attention: 1},
			"zoo.MetaFormer.Attention is 1: must be 0 with Pools"},
		{zoo.MetaFormer{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 8}, V2: true, Attention: 5},
			"zoo.MetaFormer.Attention is 5: must be at most 4"},
		{zoo.MetaFormer{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 32, 48}, V2: true, Attention: 2},
			"zoo.MetaFormer.Channels is [8 8 32 48]: must be divisible by Head, which is 32, in the last stages"},
		{zoo.Mixer{Patch: 8, Width: 24, Blocks: 1, Gate: true, LayerScale: .1},
			"zoo.Mixer.LayerScale is 0.1: must be 0 with Gate"},
		{zoo.Mixer{Patch: 8, Width: 24, Blocks: 1, Gate: true, TokenRatio: 2},
			"zoo.Mixer.TokenRatio is 2: must be 0 with LayerScale or Gate"},
		{zoo.Mixer{Patch: 8, Width: 24, Blocks: 1, TokenRatio: .01},
			"zoo.Mixer.TokenRatio is 0.01: must be at least 1/Width"},
		{zoo.Mixer{Patch: 8, Width: 24, Blocks: 1, MLPRatio: .01}, "zoo.Mixer.MLPRatio is 0.01: must be at least 1/Width"},
		{zoo.Mixer{Patch: 8, Width: 25, Blocks: 1, Gate: true, MLPRatio: 1},
			"zoo.Mixer.MLPRatio is 1: must be such that the hidden layer is even with Gate"},
		{zoo.MNASNet{Alpha: -1}, "zoo.MNASNet.Alpha is -1: must be at least 0"},
		{zoo.MobileNetV2{Width: math.Inf(1)}, "zoo.MobileNetV2.Width is +Inf: must be at most 1000"},
		{zoo.MobileNetV2{Settings: [][4]int{{1, 16, 0, 1}}},
			"zoo.MobileNetV2.Settings is [[1 16 0 1]]: must be numbers of at least 1"},
		{zoo.MobileNetV3{Width: -1}, "zoo.MobileNetV3.Width is -1: must be at least 0"},
		{blocks([]zoo.MobileBlock{}...), "zoo.MobileNetV3.Blocks is []: must be nil or have a block"},
		{zoo.MobileNetV3{Small: true, Blocks: []zoo.MobileBlock{block}},
			"zoo.MobileNetV3.Small is true: must be false with Blocks"},
		{zoo.MobileNetV3{Timm: true, Blocks: []zoo.MobileBlock{block}},
			"zoo.MobileNetV3.Timm is true: must be false with Blocks"},
		{zoo.MobileNetV3{Reduced: true, Blocks: []zoo.MobileBlock{block}},
			"zoo.MobileNetV3.Reduced is true: must be false with Blocks or Timm"},
		{zoo.MobileNetV3{Reduced: true, Timm: true},
			"zoo.MobileNetV3.Reduced is true: must be false with Blocks or Timm"},
		{zoo.MobileNetV3{Dilated: true, Blocks: []zoo.MobileBlock{block}},
			"zoo.MobileNetV3.Dilated is true: must be false with Blocks or Timm"},
		{zoo.MobileNetV3{Dilated: true, Timm: true},
			"zoo.MobileNetV3.Dilated is true: must be false with Blocks or Timm"},
		{blocks(zoo.MobileBlock{Kernel: 3, Out: 16, Stride: 1}),
			"zoo.MobileNetV3.Blocks[0].Wide is 0: must be at least 1"},
		{blocks(block, zoo.MobileBlock{Kernel: 2, Wide: 16, Out: 16, Stride: 1}),
			"zoo.MobileNetV3.Blocks[1].Kernel is 2: must be odd"},
		{blocks(zoo.MobileBlock{Kernel: 3, Wide: 16, Out: 16, Stride: 3}),
			"zoo.MobileNetV3.Blocks[0].Stride is 3: must be 1 or 2"},
		{blocks(zoo.MobileBlock{Kernel: 3, Wide: 16, Out: 16, Stride: 1, Dilation: -1}),
			"zoo.MobileNetV3.Blocks[0].Dilation is -1: must be at least 0"},
		{zoo.RegNet{}, "zoo.RegNet.Depth is 0: must be at least 1"},
		{zoo.RegNet{Depth: 6, Start: 16, Slope: 1e300, Factor: 2, GroupWidth: 8},
			"zoo.RegNet.Slope is 1e+300: must be at most 1000"},
		{zoo.RegNet{Depth: 6, Start: 16, Slope: 12, Factor: 1, GroupWidth: 8}, "zoo.RegNet.Factor is 1: must be above 1"},
		{zoo.RegNet{Depth: 6, Start: 8, Slope: 12, Factor: 2, GroupWidth: 32, Bottleneck: 3.1},
			"zoo.RegNet.Bottleneck is 3.1: must be a factor that gives stage 1 a group of 24 channels: it gives 22"},
		{zoo.RegNet{Depth: 6, Start: 16, Slope: 12, Factor: 2, GroupWidth: 8, Bottleneck: .06},
			"zoo.RegNet.Bottleneck is 0.06: must be 0 or at least 1/Start"},
		{zoo.RegNet{Depth: 6, Start: 4, Slope: 12, Factor: 2, GroupWidth: 8},
			"zoo.RegNet.Start is 4: must be divisible by 8"},
		{zoo.ShuffleNetV2{Blocks: [3]int{1, 1, 1}, Channels: [5]int{8, 16, 23, 32, 48}},
			"zoo.ShuffleNetV2.Channels is [8 16 23 32 48]: must be even for the stages, the middle three"},
		{zoo.SqueezeNet{}, `zoo.SqueezeNet.Version is "": must be "1_0" or "1_1"`},
		{zoo.SqueezeNet{Version: "2"}, `zoo.SqueezeNet.Version is "2": must be "1_0" or "1_1"`},
		{zoo.SqueezeNet{Version: "1_0", Narrow: 17}, "zoo.SqueezeNet.Narrow is 17: must be at most 16"},
		{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, V2: true, Window: 1},
			"zoo.Swin.Window is 1: must be at least 2 with V2"},
		{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, V2: true, WindowWidth: 1},
			"zoo.Swin.WindowWidth is 1: must be 0 or at least 2 with V2"},
		{zoo.MobileViT{Stem: 8}, "zoo.MobileViT.Stages is []: must be at least one"},
		{mobiles(func(s *zoo.MobileViTStage) { s.Stride = 3 }), "zoo.MobileViT.Stages[0].Stride is 3: must be 1 or 2"},
		{mobiles(func(s *zoo.MobileViTStage) { s.Blocks = 0 }), "zoo.MobileViT.Stages[0].Blocks is 0: must be at least 1"},
		{mobiles(func(s *zoo.MobileViTStage) { s.Width = 0 }),
			"zoo.MobileViT.Stages[0].Width is 0: must be at least 1 with Depth, else 0"},
		{mobiles(func(s *zoo.MobileViTStage) { s.Width = 6 }),
			"zoo.MobileViT.Stages[0].Width is 6: must be divisible by Heads, which is 4"},
		{zoo.RepVGG{Stem: 8, Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 10}, Groups: 4},
			"zoo.RepVGG.Channels is [8 8 8 10]: must be divisible by Groups, which is 4"},
		{zoo.Mobile{Stem: 8}, "zoo.Mobile.Stages is []: must be at least one"},
		{zoo.Mobile{Stages: []string{"cn_k3_c8"}}, "zoo.Mobile.Stem is 0: must be at least 1"},
		{zoo.Mobile{Stem: 8, Width: -1, Stages: []string{"cn_k3_c8"}}, "zoo.Mobile.Width is -1: must be at least 0"},
		{zoo.Mobile{Stem: 8, Depth: []float64{1, 1}, Stages: []string{"cn_k3_c8"}},
			"zoo.Mobile.Depth is [1 1]: must be of each stage, or one"},
		{zoo.Mobile{Stem: 8, Depth: []float64{math.NaN()}, Stages: []string{"cn_k3_c8"}},
			"zoo.Mobile.Depth is [NaN]: must be above 0 and at most 1000"},
		{zoo.Mobile{Stem: 8, Limit: 2, Stages: []string{"cn_k3_c8"}}, "zoo.Mobile.Limit is 2: must be at most 1"},
		{zoo.Mobile{Stem: 8, StemKernel: 4, Stages: []string{"cn_k3_c8"}}, "zoo.Mobile.StemKernel is 4: must be odd, or 0"},
		{zoo.Mobile{Stem: 8, Late: true, Stages: []string{"cn_k3_c8"}}, "zoo.Mobile.Last is 0: must be at least 1 with Late or Fuse"},
		{zoo.Mobile{Stem: 8, Bias: true, Stages: []string{"cn_k3_c8"}},
			"zoo.Mobile.Bias is true: must be false without Late"},
		{zoo.Mobile{Stem: 8, Norm: true, Stages: []string{"cn_k3_c8"}},
			"zoo.Mobile.Norm is true: must be false without Late"},
		{zoo.Mobile{Stem: 8, AntiAlias: "max", Stages: []string{"cn_k3_c8"}},
			`zoo.Mobile.AntiAlias is "max": must be "", "avg" or "blurpc"`},
		{mobile(""), `must be stages of blocks, but stage 0 has none`},
		{mobile("xy_k3_c8"), "must be blocks of the kinds ds, dsa, ir, er, cn, uir and mqa: \"xy_k3_c8\" is none"},
		{mobile("cn_k3_c8_q7"), `must be blocks without "q7": "cn_k3_c8_q7" is none`},
		{mobile("cn_k3_cx"), `must be blocks without "cx": "cn_k3_cx" is none`},
		{mobile("cn_k4_c8"), `must be blocks without "k4": "cn_k4_c8" is none`},
		{mobile("cn_k3"), `must be blocks with numbers r, s and c from 1 to 1048576, mqa also with h and d: "cn_k3" is none`},
		{mobile("mqa_k3_c8_h2"),
			`must be blocks with numbers r, s and c from 1 to 1048576, mqa also with h and d: "mqa_k3_c8_h2" is none`},
		{mobile("cn_k3_s3_c8"), `must be blocks of a stride of 1 or 2: "cn_k3_s3_c8" is none`},
		{mobile("cn_c8"), `must be blocks with kernels k: "cn_c8" is none`},
		{mobile("ir_k3_c8"), `must be blocks with an expansion e above 0 and at most 1000: "ir_k3_c8" is none`},
		{mobile("ds_k3_c8_se2"), `must be blocks with an se of at most 1: "ds_k3_c8_se2" is none`},
		{mobile("uir_k0_s2_e2_c8"),
			`must be blocks of a stride of 1 without a larger kernel than 1×1: "uir_k0_s2_e2_c8" is none`},
		{mobile("uir_k3_p3_e2_c8"), `must be blocks without a p: "uir_k3_p3_e2_c8" is none`},
		{mobile("mqa_k3_s2_c8_h2_d4"),
			`must be blocks of a stride of 1, and of 2 at most for keys: "mqa_k3_s2_c8_h2_d4" is none`},
		{mobile("er_k3_e1_c8_gs5"), "layer blocks.0.0: 8 channels are no multiple of gs, which is 5"},
		{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, Window: 129},
			"zoo.Swin.Window is 129: must be at most 128"},
		{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 3},
			"zoo.Swin.Width is 8: must be divisible by Heads, which is 3"},
		{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, MLPRatio: .1},
			"zoo.Swin.MLPRatio is 0.1: must be at least 1/Width"},
		{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, AttentionDropout: math.NaN()},
			"zoo.Swin.AttentionDropout is NaN: must be at least 0 and below 1"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Dropout: 1}, "zoo.ViT.Dropout is 1: must be at least 0 and below 1"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Representation: 8},
			"zoo.ViT.Representation is 8: must be 0 without Torchvision or with Distilled"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Torchvision: true, LayerScale: .1},
			"zoo.ViT.LayerScale is 0.1: must be 0 with Torchvision"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Torchvision: true, NoQKVBias: true},
			"zoo.ViT.NoQKVBias is true: must be false with Torchvision"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Distilled: true, Registers: 4},
			"zoo.ViT.Registers is 4: must be 0 with Torchvision or Distilled"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Distilled: true, NoEmbedClass: true},
			"zoo.ViT.NoEmbedClass is true: must be false with Torchvision or Distilled"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Parallel: true, Distilled: true}, "zoo.ViT.Parallel is true: must be false " +
			"with Torchvision, Distilled, PostNorm, SwiGLU, ScaleNorms, NoQKVBias or AttentionDropout"},
		{zoo.ViT{Patch: 8, Width: 9, Heads: 3, Differential: true},
			"zoo.ViT.Width is 9: must be divisible by 2·Heads with Differential"},
		{zoo.ViTamin{Stem: 8, Channels: [2]int{8, 16}, Width: 25, Heads: 2, Depth: 1},
			"zoo.ViTamin.Width is 25: must be divisible by Heads, which is 2"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, NormMean: true}, "zoo.ViT.NormMean is true: must be false without Mean"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, ClassBeside: true},
			"zoo.ViT.ClassBeside is true: must be false without Mean"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Torchvision: true, PostNorm: true},
			"zoo.ViT.PostNorm is true: must be false with Torchvision or Distilled"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, SeparateMLP: true},
			"zoo.ViT.SeparateMLP is true: must be false without SwiGLU"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, AttentionPool: true, RMSNorm: true},
			"zoo.ViT.RMSNorm is true: must be false with Torchvision, AttentionPool or Distilled"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Torchvision: true, PreNorm: true},
			"zoo.ViT.PreNorm is true: must be false with Torchvision"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Torchvision: true, QuickGELU: true},
			"zoo.ViT.QuickGELU is true: must be false with Torchvision"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, QuickGELU: true, GELUTanh: true},
			"zoo.ViT.GELUTanh is true: must be false with Torchvision or QuickGELU"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, AttentionPool: true, Mean: true},
			"zoo.ViT.AttentionPool is true: must be false with Mean, Torchvision or Distilled"},
		{zoo.ViT{Patch: 96, Width: 96, Heads: 3, Truncate: true},
			"images of 64×64 pixels: height and width must be at least 96"},
		{zoo.ViT{Width: 96, Heads: 3, Depth: 2}, "zoo.ViT.Patch is 0: must be at least 1"},
		{zoo.ViT{Patch: 8, Width: 96}, "zoo.ViT.Heads is 0: must be at least 1"},
		{zoo.TinyViT{Channels: [4]int{8, 8, 16, 24}, Blocks: [4]int{1, 1, 1, 1}, Heads: [3]int{2, 4, 5}},
			"zoo.TinyViT.Channels is [8 8 16 24]: must be divisible by Heads, which are [2 4 5], in the last stages"},
		{zoo.TinyViT{Channels: [4]int{8, 8, 16, 24}, Blocks: [4]int{1, 1, 1, 1}, Heads: [3]int{2, 4, 3},
			Windows: [3]int{7, 0, 7}},
			"zoo.TinyViT.Windows is [7 0 7]: must be numbers of at least 1"},
		{zoo.ViT{Patch: 8, Width: 100, Heads: 3}, "zoo.ViT.Width is 100: must be divisible by Heads, which is 3"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Mean: true, Torchvision: true},
			"zoo.ViT.Mean is true: must be false with Torchvision or Distilled"},
		{zoo.ViT{Patch: 8, Width: 96, Heads: 3, Mean: true, Distilled: true},
			"zoo.ViT.Mean is true: must be false with Torchvision or Distilled"},
		{zoo.WideResNet{Depth: 12}, "zoo.WideResNet.Depth is 12: must be 6n + 4: 10, 16, 22, …"},
	} {
		fails(t, c.o, 64, c.want)
	}
}

// small are options of nets, with the input's smallest size, 0 for a multiple of other options.
var small = []struct {
	o    buildable
	size int
}{
	{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}}, 1},
	{nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Stem: [3]int{8, 8, 16}, AvgDown: true, Excite: .25}, 1},
	{nn.ResNet{Blocks: [4]int{1, 2, 1, 1}, GroupWidth: 8, Scale: 2}, 1},
	{zoo.AlexNet{Narrow: 16, Pool: 1}, 63}, {zoo.AlexNet{Narrow: 64}, 223},
	{zoo.ConvNeXt{Blocks: [4]int{1, 1, 1, 1}, Width: 8}, 32},
	{zoo.ConvNeXt{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Timm: true, Response: true, ConvMLP: true}, 32},
	{zoo.DenseNet{Growth: 4, Blocks: []int{1, 1, 1, 1}, Stem: 8}, 29},
	{zoo.DenseNet{Growth: 4, Blocks: []int{1, 1, 1}, Stem: 8, Small: true}, 4},
	{zoo.EfficientNet{Width: .1, Depth: .1, Nearest: true}, 1},
	{zoo.Eva{Patch: 8, Width: 24, Depth: 1, Heads: 3, Grid: 2, LayerScale: .1, SwiGLU: true}, 0},
	{zoo.Eva{Patch: 8, Width: 24, Depth: 3, Heads: 3, KeyHeads: 1, FullBlocks: 1, DINOv3: true, SeparateQKV: true,
		BiasedKeys: true, NormKeys: true}, 0},
	{zoo.Eva{Patch: 8, Width: 24, Depth: 1, Heads: 3, Mixed: true}, 0},
	{zoo.HieraDet{Width: 8, Heads: 1, Blocks: [4]int{1, 1, 1, 1}}, 0},
	{zoo.LanguageViT{Patch: 8, Width: 24, Depth: 1, Heads: 3, Grid: 2, Projector: 8}, 0},
	{zoo.LanguageViT{Patch: 8, Width: 24, Depth: 1, Heads: 3, DeepSeek: true, Projector: 8}, 0},
	{zoo.GemmaViT{Patch: 8, Width: 24, Depth: 1, Heads: 3, Hidden: 8, Places: 8}, 0},
	{zoo.BEiT{Patch: 8, Width: 24, Depth: 1, Heads: 3, LayerScale: .1}, 0},
	{zoo.HGNet{Stem: [2]int{8, 8}, Last: 8,
		Stages: []zoo.HGStage{{Inner: 8, Out: 8, Blocks: 1, Layers: 1, Kernel: 3, Light: true}}}, 1},
	{zoo.GhostNet{Width: .1}, 1}, {zoo.InceptionV4{Narrow: 16}, 75}, {zoo.InceptionV4{Narrow: 16, Residual: true}, 75},
	{zoo.Xception{Narrow: 8}, 7}, {zoo.GoogLeNet{Narrow: 8}, 15}, {zoo.InceptionV3{Narrow: 16}, 75},
	{zoo.MaxViT{Stem: 8, Channels: []int{8}, Layers: []int{1}, Head: 4, Partition: 2}, 0},
	{zoo.MetaFormer{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 16, 16}, Pools: true, LayerScale: .1}, 32},
	{zoo.MetaFormer{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 16, 16}, V2: true, Attention: 1, Head: 8}, 32},
	{zoo.Mixer{Patch: 8, Width: 24, Blocks: 1}, 0}, {zoo.Mixer{Patch: 8, Width: 24, Blocks: 1, Gate: true}, 0},
	{zoo.Mixer{Patch: 8, Width: 24, Blocks: 1, LayerScale: .1}, 0},
	{zoo.CaiT{Patch: 8, Width: 24, Heads: 3, Depth: 1}, 0}, {zoo.XCiT{Patch: 8, Width: 24, Heads: 3, Depth: 1}, 0},
	{zoo.TinyViT{Channels: [4]int{8, 8, 16, 24}, Blocks: [4]int{1, 1, 1, 1}, Heads: [3]int{2, 4, 3}}, 1},
	{zoo.FastViT{Blocks: []int{1, 1, 1, 1}, Channels: []int{8, 8, 16, 32}, MLPRatio: 1, Attention: 1}, 1},
	{zoo.MNASNet{Alpha: .1}, 1}, {zoo.MobileNetV2{Width: .1}, 1}, {zoo.MobileNetV3{Width: .1}, 1},
	{zoo.RegNet{Depth: 6, Start: 16, Slope: 12.5, Factor: 2.2, GroupWidth: 8}, 1},
	{zoo.ResNet9{Width: 8}, 32},
	{zoo.ShuffleNetV2{Blocks: [3]int{1, 1, 1}, Channels: [5]int{8, 16, 24, 32, 48}}, 1},
	{zoo.SqueezeNet{Version: "1_0", Narrow: 8}, 21}, {zoo.SqueezeNet{Version: "1_1", Narrow: 8}, 17},
	{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2}, 0},
	{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, V2: true}, 0},
	{zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, Window: 8, V2: true, Timm: true}, 0},
	{zoo.RepViT{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 8}}, 1},
	{zoo.EfficientViT{Channels: [5]int{8, 8, 8, 8, 8}, Blocks: [5]int{1, 1, 1, 1, 1}, HeadWidth: 8,
		Head: [2]int{8, 8}}, 1},
	{zoo.EfficientFormer{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 8}, Attention: 1}, 1},
	{zoo.EfficientFormerV2{Channels: [4]int{8, 8, 8, 8}, MLPRatios: [4]string{"1", "1", "1", "1"}, Attention: 1}, 0},
	{zoo.LeViT{Width: [3]int{8, 8, 8}, Key: 4, Heads: [3]int{1, 1, 1}, Blocks: [3]int{1, 1, 1}}, 1},
	{zoo.EdgeNeXt{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 8}, Heads: 2}, 32},
	{zoo.StarNet{Width: 8, Blocks: [4]int{1, 1, 1, 1}}, 1},
	{zoo.FasterNet{Width: 8, Blocks: [4]int{1, 1, 1, 1}}, 32},
	{zoo.SHViT{Channels: [3]int{8, 16, 16}, Blocks: [3]int{1, 1, 1}, Part: [3]int{0, 4, 4}}, 1},
	{zoo.SwiftFormer{Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 8}}, 1},
	{zoo.LCNetV2{Width: .25, Blocks: [4]int{1, 1, 1, 1}}, 1},
	{zoo.Mobile{Stem: 8, Depth: []float64{1}, Last: 8, Late: true,
		Stages: []string{"uir_k3_s2_e2_c8 mqa_k3_h2_d4_v2_c8"}}, 1},
	{zoo.MobileViT{Stem: 8,
		Stages: []zoo.MobileViTStage{{Stride: 2, Blocks: 1, Expansion: 1, Out: 8, Depth: 1, Width: 8}}}, 1},
	{zoo.MobileViT{Stem: 8, Separable: true,
		Stages: []zoo.MobileViTStage{{Stride: 2, Blocks: 1, Expansion: 1, Out: 8, Depth: 1, Width: 8}}}, 1},
	{zoo.RepVGG{Stem: 8, Blocks: [4]int{1, 2, 1, 1}, Channels: [4]int{8, 8, 8, 8}, Groups: 2}, 1},
	{zoo.VGG{Blocks: [5]int{1, 1, 1, 1, 1}, Width: 8, Hidden: 8, Pool: 2}, 64},
	{zoo.ViT{Patch: 8, Width: 24, Depth: 1, Heads: 3}, 0},
	{zoo.WideResNet{Depth: 10}, 1},
}

// Each number that is negative is refused by name, and no number makes a constructor panic or build without end.
func TestOptionNumbers(t *testing.T) {
	for _, c := range small {
		typ := reflect.TypeOf(c.o)
		set := func(i int, set func(v reflect.Value)) buildable {
			o := reflect.New(typ).Elem()
			o.Set(reflect.ValueOf(c.o))
			set(o.Field(i))
			return o.Interface().(buildable)
		}
		for i := range typ.NumField() {
			if !typ.Field(i).IsExported() {
				continue
			}
			field := fmt.Sprintf("%v.%s is ", typ, typ.Field(i).Name)
			build(t, set(i, reflect.Value.SetZero), 64)
			var negative func(v reflect.Value)
			switch typ.Field(i).Type.Kind() {
			case reflect.Int:
				build(t, set(i, func(v reflect.Value) { v.SetInt(1 << 62) }), 64)
				negative = func(v reflect.Value) { v.SetInt(-1) }
			case reflect.Float64:
				negative = func(v reflect.Value) { v.SetFloat(-1) }
			case reflect.Array:
				if typ.Field(i).Type.Elem().Kind() != reflect.Int {
					continue
				}
				build(t, set(i, func(v reflect.Value) { v.Index(0).SetInt(1 << 62) }), 64)
				negative = func(v reflect.Value) { v.Index(1).SetInt(-1) }
			default:
				continue
			}
			if err := build(t, set(i, negative), 64); err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%v, want an error with %q", err, field)
			}
		}
	}
}

// Inputs below the smallest size are refused with it.
func TestSmallest(t *testing.T) {
	for _, c := range small {
		if c.size == 0 {
			continue
		}
		if err := build(t, c.o, c.size); err != nil {
			t.Error(err)
		}
		if n := c.size; n > 1 {
			fails(t, c.o, n-1, fmt.Sprintf("images of %d×%[1]d pixels: height and width must be at least %d", n-1, n))
		}
	}
	for name, n := range map[string]int{"alexnet": 223, "densenet121": 29, "densenet100_12": 4, "ghostnetv2_100": 33,
		"ghostnetv3_100": 33, "googlenet": 15,
		"inception_v3": 75, "inception_v4": 75, "inception_resnet_v2": 75, "legacy_xception": 7, "maxvit_t": 224,
		"resnet9": 32, "squeezenet1_0": 21, "squeezenet1_1": 17, "vgg11": 224, "vgg16_bn_cifar": 32} {
		if _, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval, Size: n}); err != nil {
			t.Error(err)
		}
		want := fmt.Sprintf("nn: %s: input size %d is too small: must be at least %d", name, n-1, n)
		if _, err := nn.Build(name, nn.Config{Batch: 1, Size: n - 1}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Weights of nets that users build, without an architecture's initial values, do not start as zeros.
func TestWeightsStart(t *testing.T) {
	for _, o := range []buildable{
		zoo.ViT{Patch: 8, Width: 24, Depth: 1, Heads: 3, Distilled: true},
		zoo.Eva{Patch: 8, Width: 24, Depth: 1, Heads: 3, Registers: 2},
		zoo.ViT{Patch: 8, Width: 24, Depth: 1, Heads: 3, AttentionPool: true},
		zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2},
		zoo.MaxViT{Stem: 8, Channels: []int{8}, Layers: []int{1}, Head: 4, Partition: 2},
	} {
		a := nn.Architecture{Name: "net", Size: 64, Channels: 3, Classes: 10, Build: o.Build}
		m, err := a.Model(nn.Config{Batch: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.Params {
			if len(p.Shape) > 1 && p.Init.Scale == 0 {
				t.Errorf("%T: %s starts as %v", o, p.Name, p.Init)
			}
		}
	}
}
