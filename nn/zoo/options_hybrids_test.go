package zoo_test

import (
	"testing"

	"onlinerna/nn/zoo"
)

var (
	narrowViT = zoo.ViT{Width: 24, Heads: 3, Depth: 1}
	meanViT   = zoo.ViT{Patch: 8, Width: 24, Heads: 3, Depth: 1, Mean: true}
)

func init() {
	small = append(small, []struct {
		o    buildable
		size int
	}{
		{zoo.HybridViT{ViT: narrowViT, Backbone: zoo.ResNetV2{Blocks: [4]int{1}, Channels: [4]int{8}, Stem: 8, GroupNorm: 4,
			StdEps: 1e-8}}, 0},
		{zoo.HybridViT{ViT: narrowViT, Convs: true}, 0},
		{zoo.RelPosViT{ViT: meanViT, BiasHidden: 8, BiasDropout: .125}, 0},
		{zoo.VOLO{Blocks: [4]int{1, 1, 1, 1}, Width: [2]int{8, 8}, Heads: [2]int{2, 2}, Stem: 8, MLPRatio: 1}, 32},
		{zoo.SAMViT{Patch: 8, Width: 24, Heads: 3, Depth: 2, Window: 2, Global: []int{1}, Neck: 8}, 0},
		{zoo.TNT{Patch: 8, Width: 24, Inner: 4, Heads: 3, InnerHeads: 2, Depth: 1}, 0},
		{zoo.ConViT{Patch: 8, Width: 24, Heads: 4, Depth: 2, Local: 1}, 0},
		{zoo.MViTv2{Width: 8, Heads: 1, Blocks: [4]int{1, 1, 1, 1}, Class: true}, 0},
		{zoo.DaViT{Width: 8, Blocks: [4]int{1, 1, 1, 1}, Heads: 2, Window: 3, Florence: true}, 32},
		{zoo.Mixer{Patch: 8, Width: 16, Blocks: 1, TokenRatio: 1, MLPRatio: 2, SwiGLU: true}, 0},
	}...)
}

// Options of these transformers that do not fit are refused by name.
func TestHybridOptions(t *testing.T) {
	sides := zoo.ResNetV2{Blocks: [4]int{1, 1}, Basic: true}
	registers := meanViT
	registers.Registers = 1
	for _, c := range []struct {
		o    buildable
		want string
	}{
		{zoo.HybridViT{ViT: narrowViT, Backbone: sides}, "zoo.HybridViT.Backbone.Basic is true: must be false"},
		{zoo.HybridViT{ViT: narrowViT, Convs: true, Backbone: zoo.ResNetV2{Blocks: [4]int{1}}},
			"zoo.HybridViT.Convs is true: must be false with Backbone.Blocks"},
		{zoo.HybridViT{ViT: meanViT, Convs: true}, "zoo.HybridViT.Patch is 8: must be 0 with Convs"},
		{zoo.RelPosViT{ViT: registers}, "zoo.RelPosViT.Registers is 1: must be 0"},
		{zoo.RelPosViT{ViT: zoo.ViT{Patch: 8, Width: 25, Heads: 3}},
			"zoo.ViT.Width is 25: must be divisible by Heads, which is 3"},
		{zoo.ViT{Patch: 8, Width: 24, Heads: 3, Distilled: true, NoPlaces: true},
			"zoo.ViT.NoPlaces is true: must be false with Torchvision or Distilled"},
		{zoo.VOLO{Blocks: [4]int{1, 1, 1, 1}, Width: [2]int{8, 9}, Heads: [2]int{2, 2}},
			"zoo.VOLO.Width is [8 9]: must be divisible by Heads"},
		{zoo.SAMViT{Patch: 8, Width: 24, Heads: 3, Window: 200}, "zoo.SAMViT.Window is 200: must be at most 128"},
		{zoo.TNT{Patch: 6, Width: 24, Inner: 4, Heads: 3, InnerHeads: 2, Depth: 1},
			"zoo.TNT.Patch is 6: must be divisible by 4"},
		{zoo.ConViT{Patch: 8, Width: 24, Heads: 3, Depth: 2}, "zoo.ConViT.Heads is 3: must be a square"},
		{zoo.ConViT{Patch: 8, Width: 24, Heads: 4, Depth: 2, Local: 2}, "zoo.ConViT.Local is 2: must be below Depth"},
		{zoo.Mixer{Patch: 8, Width: 24, Blocks: 1, TokenRatio: .125, SwiGLU: true},
			"zoo.Mixer.TokenRatio is 0.125: must be such that the hidden layer is even with SwiGLU"},
	} {
		fails(t, c.o, 64, c.want)
	}
}
