package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for i, net := range []SHViT{
		{Channels: [3]int{128, 224, 320}, Blocks: [3]int{2, 4, 5}, Part: [3]int{0, 48, 68}},
		{Channels: [3]int{128, 308, 448}, Blocks: [3]int{2, 4, 5}, Part: [3]int{0, 66, 96}},
		{Channels: [3]int{192, 352, 448}, Blocks: [3]int{3, 5, 5}, Part: [3]int{0, 75, 96}},
		{Channels: [3]int{224, 336, 448}, Blocks: [3]int{4, 7, 6}, Part: [3]int{0, 72, 96}},
	} {
		a := nn.Architecture{
			Name:          fmt.Sprintf("shvit_s%d", i+1),
			Family:        "shvit",
			Summary:       fmt.Sprintf("SHViT-S%d, with timm's names", i+1),
			Reference:     "Yun, Ro, SHViT: single-head vision transformer with memory efficient macro design, 2024",
			Resize:        256,
			Interpolation: bicubic,
			Block:         `^(patch_embed|stages\.\d\.(?:blocks\.\d+|downsample))\.`,
			Init:          truncated(.02),
			Build:         net.Build,
		}
		if i == 3 {
			a.Size, a.Resize = 256, 292
		}
		imageNet(a)
	}
}

// SHViT are the options of a net with attention of one head among a part of the channels.
type SHViT struct {
	Channels [3]int // of each stage, the first divisible by 8; timm's embed_dim
	Blocks   [3]int // of each stage; timm's depth
	// Part are the channels of each stage that attention takes, fewer than all; 0: the stage has none; timm's partial_dim
	// and types.
	Part [3]int
}

// shvitKey are the elements of keys.
const shvitKey = 16

// Build adds the layers to b.
func (o SHViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("SHViT", o).least(1, "Channels", "Blocks").least(0, "Part").
		that(o.Channels[0]%8 == 0, "Channels", "divisible by 8 in the first stage")
	for i, part := range o.Part {
		b.options("SHViT", o).that(part < o.Channels[i], "Part", "less than the channels")
	}
	if b.Err() != nil {
		return nil
	}
	c := o.Channels[0]
	for i := range 4 {
		name := fmt.Sprintf("patch_embed.%d", 2*i)
		x = b.cBN(name, x, nn.Conv{Filters: c >> (3 - i), Kernel: 3, Stride: 2}, 1)
		if i < 3 {
			x = b.ReLU(name+".act", x)
		}
	}
	for i, n := range o.Blocks {
		if out := o.Channels[i]; out != c {
			down := fmt.Sprintf("stages.%d.downsample", i)
			x = b.pointAdd(down+".1.m", b.deepAdd(down+".0.m", x, 1, b.cBN), b.cBN)
			x = b.mergePatches(down+".2", x, out, b.cBN)
			x = b.pointAdd(down+".4.m", b.deepAdd(down+".3.m", x, 1, b.cBN), b.cBN)
			c = out
		}
		for j := range n {
			name := fmt.Sprintf("stages.%d.blocks.%d", i, j)
			x = b.deepAdd(name+".conv.m", x, 0, b.cBN)
			if o.Part[i] > 0 {
				x = b.Add(name+".mixer.add", b.partAttention(name+".mixer.m", x, o.Part[i]), x)
			}
			x = b.pointAdd(name+".ffn.m", x, b.cBN)
		}
	}
	x = b.Dropout("dropout", b.pixel("pool", x), b.Config().Dropout)
	return b.Linear("head.l", b.Flatten("flatten", b.BatchNorm("head.bn", x, 1)), b.Config().Classes)
}

// normed adds a convolution and a normalisation whose factor starts as scale, as cBN and convBN do.
type normed func(name string, x *G.Node, c nn.Conv, scale float64) *G.Node

// deepAdd adds a depthwise convolution, whose normalisation starts with scale, to x.
func (b layer) deepAdd(name string, x *G.Node, scale float64, conv normed) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	return b.Add(name+".add", conv(name, x, nn.Conv{Filters: c, Kernel: 3, Groups: c}, scale), x)
}

// pointAdd adds a perceptron of twice as many channels, which begins as 0, to x.
func (b layer) pointAdd(name string, x *G.Node, conv normed) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	y := b.ReLU(name+".act", conv(name+".pw1", x, nn.Conv{Filters: 2 * c, Kernel: 1}, 1))
	return b.Add(name+".add", conv(name+".pw2", y, nn.Conv{Filters: c, Kernel: 1}, 0), x)
}

// mergePatches halves the extent of x by an inverted residual with squeeze-and-excitation and without a shortcut.
func (b layer) mergePatches(name string, x *G.Node, out int, conv normed) *G.Node {
	if b.Err() != nil {
		return nil
	}
	wide := 4 * x.Shape()[1]
	x = b.ReLU(name+".act1", conv(name+".conv1", x, nn.Conv{Filters: wide, Kernel: 1}, 1))
	x = conv(name+".conv2", x, nn.Conv{Filters: wide, Kernel: 3, Stride: 2, Groups: wide}, 1)
	x = b.exciteQuarter(name+".se", b.ReLU(name+".act2", x))
	return conv(name+".conv3", x, nn.Conv{Filters: out, Kernel: 1}, 1)
}

// partAttention is attention of one head among the first channels of the pixels of x, joined with the others.
func (b layer) partAttention(name string, x *G.Node, part int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, c := x.Shape()[0], x.Shape()[1]
	first := b.Slice(name+".part", x, 1, 0, part)
	y := b.GroupNorm(name+".pre_norm", first, 1, 1e-5)
	y = b.cBN(name+".qkv", y, nn.Conv{Filters: 2*shvitKey + part, Kernel: 1}, 1)
	qkv := b.headParts(name, b.rows(name, y), 1, shvitKey, shvitKey, part)
	y = b.Attention(name+".attention", qkv[0], qkv[1], qkv[2], n, nn.Attention{Heads: 1})
	y = b.Concat(name+".concat", 1, b.image(name, y, first), b.Slice(name+".rest", x, 1, part, c))
	return b.cBN(name+".proj.1", b.ReLU(name+".proj.0", y), nn.Conv{Filters: c, Kernel: 1}, 0)
}
