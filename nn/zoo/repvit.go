package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name string
		net  RepViT
	}{
		{"m1", RepViT{Blocks: [4]int{2, 2, 14, 2}, Channels: [4]int{48, 96, 192, 384}, Legacy: true}},
		{"m2", RepViT{Blocks: [4]int{2, 2, 12, 2}, Channels: [4]int{64, 128, 256, 512}, Legacy: true}},
		{"m3", RepViT{Blocks: [4]int{4, 4, 18, 2}, Channels: [4]int{64, 128, 256, 512}, Legacy: true}},
		{"m0_9", RepViT{Blocks: [4]int{2, 2, 14, 2}, Channels: [4]int{48, 96, 192, 384}}},
		{"m1_0", RepViT{Blocks: [4]int{2, 2, 14, 2}, Channels: [4]int{56, 112, 224, 448}}},
		{"m1_1", RepViT{Blocks: [4]int{2, 2, 12, 2}, Channels: [4]int{64, 128, 256, 512}}},
		{"m1_5", RepViT{Blocks: [4]int{4, 4, 24, 4}, Channels: [4]int{64, 128, 256, 512}}},
		{"m2_3", RepViT{Blocks: [4]int{6, 6, 34, 2}, Channels: [4]int{80, 160, 320, 640}}},
	} {
		imageNet(nn.Architecture{
			Name:   "repvit_" + v.name,
			Family: "repvit",
			Summary: fmt.Sprintf("RepViT-%s with the branches of training, as timm's",
				strings.ToUpper(strings.ReplaceAll(v.name, "_", "."))),
			Reference:     "Wang et al., RepViT: revisiting mobile CNN from ViT perspective, 2024",
			Resize:        235,
			Interpolation: bicubic,
			Block:         `^(stem|stages\.\d\.(?:blocks\.\d+|downsample))\.`,
			Heads:         []string{"head.head.l", "head.head_dist.l"},
			Init:          truncated(.02),
			Build:         v.net.Build,
		})
	}
}

// RepViT are the options of a net of depthwise convolutions, whose branches may be one in evaluation, and perceptrons.
type RepViT struct {
	Blocks   [4]int // of each stage; timm's depth
	Channels [4]int // of each stage, the first even; timm's embed_dim
	Legacy   bool   // the branch of 1×1 has a normalisation of its own, and the sum has none: timm's legacy
}

// Build adds the layers to b.
func (o RepViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("RepViT", o).least(1, "Blocks", "Channels").
		that(o.Channels[0]%2 == 0, "Channels", "even in the first stage").ok() {
		return nil
	}
	c := o.Channels[0]
	x = b.GELU("stem.act1", b.cBN("stem.conv1", x, nn.Conv{Filters: c / 2, Kernel: 3, Stride: 2}, 1))
	x = b.cBN("stem.conv2", x, nn.Conv{Filters: c, Kernel: 3, Stride: 2}, 1)
	for i, n := range o.Blocks {
		name := fmt.Sprintf("stages.%d", i)
		if i > 0 {
			down := name + ".downsample"
			x = o.block(b, down+".pre_block", x, false)
			x = b.cBN(down+".spatial_downsample", x, nn.Conv{Filters: c, Kernel: 3, Stride: 2, Groups: c}, 1)
			c = o.Channels[i]
			x = b.cBN(down+".channel_downsample", x, nn.Conv{Filters: c, Kernel: 1}, 1)
			x = b.repViTMLP(down+".ffn", x)
		}
		for j := range n {
			x = o.block(b, fmt.Sprintf("%s.blocks.%d", name, j), x, j%2 == 0)
		}
	}
	x = b.Dropout("head_drop", b.pixel("pool", x), b.Config().Dropout)
	return b.distilled("head.head", "head.head_dist", ".l", x)
}

// block is a depthwise convolution with its branches, squeeze-and-excitation and a perceptron.
func (o RepViT) block(b layer, name string, x *G.Node, excite bool) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c, mixer := x.Shape()[1], name+".token_mixer"
	deep := nn.Conv{Filters: c, Kernel: 3, Groups: c}
	y := b.cBN(mixer+".conv", x, deep, 1)
	deep.Kernel = 1
	if o.Legacy {
		y = b.Add(mixer+".sum", y, b.cBN(mixer+".conv1", x, deep, 1))
	} else {
		deep.Bias = true
		y = b.Add(mixer+".sum", y, b.Conv(mixer+".conv1", x, deep))
	}
	if y = b.Add(mixer+".add", y, x); !o.Legacy {
		y = b.BatchNorm(mixer+".bn", y, 1)
	}
	if excite {
		y = b.exciteQuarter(name+".se", y)
	}
	return b.repViTMLP(name+".channel_mixer", y)
}

// repViTMLP adds a perceptron of twice as many channels, which begins as 0, to x.
func (b layer) repViTMLP(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	y := b.GELU(name+".act", b.cBN(name+".conv1", x, nn.Conv{Filters: 2 * c, Kernel: 1}, 1))
	return b.Add(name+".add", b.cBN(name+".conv2", y, nn.Conv{Filters: c, Kernel: 1}, 0), x)
}

// cBN is a convolution name.c and a normalisation name.bn, whose factor starts as scale.
func (b layer) cBN(name string, x *G.Node, c nn.Conv, scale float64) *G.Node {
	return b.BatchNorm(name+".bn", b.conv(name+".c", x, c), scale)
}

// distilled is the mean of two linear layers, whose names end so, each behind a normalisation, of an image x of one
// pixel: that of the labels and that of a teacher's, as in timm unless distilled_training is set.
func (b layer) distilled(head, teacher, end string, x *G.Node) *G.Node {
	linear := func(name string) *G.Node {
		y := b.Flatten(name+".flatten", b.BatchNorm(name+".bn", x, 1))
		if end == ".linear" { // LeViT's
			y = b.Dropout(name+".drop", y, b.Config().Dropout)
		}
		return b.Linear(name+end, y, b.Config().Classes)
	}
	return b.Map("mean", meanOfTwo, linear(head), linear(teacher))
}
