package zoo_test

import (
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	three, four, five := [3]int{1, 1, 1}, [4]int{1, 1, 1, 1}, [5]int{1, 1, 1, 1, 1}
	eights := [5]int{8, 8, 8, 8, 8}
	small = append(small, []struct {
		o    buildable
		size int
	}{
		{zoo.EfficientViTMSRA{Channels: [3]int{8, 8, 8}, Blocks: three, Heads: [3]int{2, 2, 1}, Kernels: []int{3, 1}, Key: 4,
			Window: 3}, 16},
		{zoo.IFormer{Channels: [4]int{8, 8, 8, 16}, Blocks: [4]int{1, 1, 4, 3}, Attention: [4]int{0, 0, 1, 1},
			Reduce: [4]int{0, 0, 2, 4}, ConvRatio: 1, MLPRatio: 1, LayerScale: .1}, 1},
		{zoo.CoaT{Channels: [4]int{8, 8, 8, 8}, Blocks: four, Parallel: 1}, 0},
		{zoo.EfficientViM{Channels: [3]int{8, 8, 16}, Blocks: three, States: [3]int{4, 2, 1}}, 1},
		{zoo.LowFormer{Channels: eights, Blocks: five, Head: [2]int{8, 8}, StemExpand: 1, DownExpand: 1}, 32},
		{zoo.LowFormer{Channels: eights, Blocks: five, Head: [2]int{8, 8}, CPU: true, Norms: 2}, 32},
		{zoo.Swin{Blocks: four, Width: 8, Heads: 2, V2: true, Timm: true, CR: true}, 0},
		{zoo.Mobile{Stem: 8, Depth: []float64{1}, Stages: []string{"ds_r2_k3_c8_d1 ir_k3_s2_e4_c8"}}, 1},
		{zoo.Mobile{Stem: 8, Depth: []float64{1}, Last: 8, Fuse: 2, Stages: []string{"er_k3_s2_e1_c8",
			"uir_k3_s2_e1_c8"}}, 1},
	}...)
}

// Options of the small families that do not fit are refused by name.
func TestSmallOptions(t *testing.T) {
	vit := zoo.EfficientViTMSRA{Channels: [3]int{8, 8, 8}, Blocks: [3]int{1, 1, 1}, Heads: [3]int{2, 2, 1},
		Kernels: []int{3, 1}, Key: 4, Window: 3}
	heads, kernels, even := vit, vit, vit
	heads.Channels[1] = 7
	kernels.Kernels = []int{3}
	even.Kernels = []int{3, 2}
	former := zoo.IFormer{Channels: [4]int{8, 8, 8, 16}, Blocks: [4]int{1, 1, 4, 3}, Attention: [4]int{0, 0, 2, 1},
		Reduce: [4]int{0, 0, 2, 4}, ConvRatio: 1, MLPRatio: 1}
	reduce := former
	reduce.Attention[2], reduce.Reduce[2] = 1, 0
	low := zoo.LowFormer{Channels: [5]int{8, 8, 8, 8, 8}, Blocks: [5]int{0, 1, 1, 1, 1}}
	norms, attention, odd, oddLast := low, low, low, low
	norms.Norms = 2
	attention.CPU, attention.NoAttention = true, true
	odd.CPU, odd.Channels[1] = true, 7
	oddLast.CPU, oddLast.Channels[4] = true, 7
	swin := zoo.Swin{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Heads: 2, CR: true}
	for _, c := range []struct {
		o    buildable
		want string
	}{
		{heads, "zoo.EfficientViTMSRA.Channels is [8 7 8]: must be divisible by Heads, which are [2 2 1]"},
		{kernels, "zoo.EfficientViTMSRA.Kernels is [3]: must be as many as Heads, which are [2 2 1]"},
		{even, "zoo.EfficientViTMSRA.Kernels is [3 2]: must be odd, and at most 99"},
		{former, "zoo.IFormer.Attention is [0 0 2 1]: must be at most a third of Blocks"},
		{reduce, "zoo.IFormer.Reduce is [0 0 0 4]: must be from 1 to Channels in stages of Attention"},
		{zoo.CoaT{Channels: [4]int{8, 8, 8, 16}, Blocks: [4]int{1, 1, 1, 1}, Parallel: 1},
			"zoo.CoaT.Channels is [8 8 8 16]: must be equal in the last three stages, with Parallel"},
		{norms, "zoo.LowFormer.Norms is 2: must be 0 without CPU"},
		{attention, "zoo.LowFormer.CPU is true: must be false with NoAttention or NoMLP"},
		{oddLast, "zoo.LowFormer.Channels is [8 8 8 8 7]: must be even, with CPU"},
		{odd, "zoo.LowFormer.Channels is [8 7 8 8 8]: must be even, with CPU"},
		{swin, "zoo.Swin.CR is true: must be false without Timm and V2"},
	} {
		fails(t, c.o, 64, c.want)
	}
	swin.Timm, swin.V2 = true, true
	fails(t, swin, 34, "images of 34×34 pixels: height and width must be multiples of 32: choose an input size of 32 or 64")
}

// A layer's tensors are listed again where blocks share it.
func TestSharedTensors(t *testing.T) {
	m, err := nn.Build("coat_tiny", nn.Config{Batch: 1, Mode: nn.Eval, Size: 32})
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]nn.Entry{}
	for _, e := range m.StateDict() {
		of[e.Name] = e
	}
	for again, first := range map[string]string{
		"serial_blocks1.1.cpe.proj.weight":                        "cpe1.proj.weight",
		"parallel_blocks.0.factoratt_crpe3.crpe.conv_list.2.bias": "crpe3.conv_list.2.bias",
		"parallel_blocks.5.mlp4.fc1.weight":                       "parallel_blocks.5.mlp2.fc1.weight",
	} {
		a, b := of[again], of[first]
		if !a.Shared || b.Shared || a.Index != b.Index || !a.Shape.Equal(b.Shape) || b.Name != first {
			t.Errorf("%+v is no tensor of %+v", a, b)
		}
	}
}
