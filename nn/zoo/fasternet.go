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
		drop float64
		net  FasterNet
	}{
		{"t0", 0, FasterNet{Width: 40, Blocks: [4]int{1, 2, 8, 2}, GELU: true}},
		{"t1", .02, FasterNet{Width: 64, Blocks: [4]int{1, 2, 8, 2}, GELU: true}},
		{"t2", .05, FasterNet{Width: 96, Blocks: [4]int{1, 2, 8, 2}}},
		{"s", .1, FasterNet{Width: 128, Blocks: [4]int{1, 2, 13, 2}}},
		{"m", .2, FasterNet{Width: 144, Blocks: [4]int{3, 4, 18, 3}}},
		{"l", .3, FasterNet{Width: 192, Blocks: [4]int{3, 4, 18, 3}}},
	} {
		imageNet(nn.Architecture{
			Name:          "fasternet_" + v.name,
			Family:        "fasternet",
			Summary:       fmt.Sprintf("FasterNet-%s, with timm's names", strings.ToUpper(v.name)),
			Reference:     "Chen et al., Run, don't walk: chasing higher FLOPS for faster neural networks, 2023",
			MinSize:       32,
			DropPath:      v.drop,
			Resize:        224,
			Interpolation: bicubic,
			Block:         timmStage,
			Init:          convNeXtInitial,
			Build:         v.net.Build,
		})
	}
}

// FasterNet are the options of a net whose 3×3 convolutions take a quarter of the channels.
type FasterNet struct {
	Width  int    // channels of the first stage, which each later one doubles, divisible by 4; timm's embed_dim
	Blocks [4]int // of each stage; timm's depths
	GELU   bool   // the activation, else ReLU: timm's act_layer
}

// Build adds the layers to b.
func (o FasterNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("FasterNet", o).least(1, "Width", "Blocks").that(o.Width%4 == 0, "Width", "divisible by 4")
	if !b.atLeast(x, 32) {
		return nil
	}
	act := nn.Activation((*nn.Builder).ReLU)
	if o.GELU {
		act = (*nn.Builder).GELU
	}
	x = b.BatchNorm("patch_embed.norm", b.Conv("patch_embed.proj", x, nn.Conv{Filters: o.Width, Kernel: 4, Stride: 4}), 1)
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		c := o.Width << i
		var blocks []func(x *G.Node) *G.Node // their tensors come before the convolution's that they follow
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			blocks = append(blocks, b.fasterBlock(fmt.Sprintf("stages.%d.blocks.%d", i, j), c, act, drop))
			done++
		}
		if i > 0 {
			name := fmt.Sprintf("stages.%d.downsample", i)
			x = b.BatchNorm(name+".norm", b.Conv(name+".reduction", x, nn.Conv{Filters: c, Kernel: 2, Stride: 2}), 1)
		}
		for _, block := range blocks {
			x = block(x)
		}
	}
	x = act(builder, "act", b.Conv("conv_head", b.pixel("pool", x), nn.Conv{Filters: 1280, Kernel: 1}))
	x = b.Dropout("dropout", b.Flatten("flatten", x), b.Config().Dropout)
	return b.Linear("classifier", x, b.Config().Classes)
}

// fasterBlock adds the parameters of a block of c channels: a convolution of a quarter of them, and a perceptron.
func (b layer) fasterBlock(name string, c int, act nn.Activation, drop float64) func(x *G.Node) *G.Node {
	first := b.convLater(name+".mlp.0", c, nn.Conv{Filters: 2 * c, Kernel: 1})
	norm := b.BatchNormLater(name+".mlp.1", 2*c, 1, 1e-5)
	last := b.convLater(name+".mlp.3", 2*c, nn.Conv{Filters: c, Kernel: 1})
	part, mixing := c/4, name+".spatial_mixing"
	conv := b.convLater(mixing+".partial_conv3", part, nn.Conv{Filters: part, Kernel: 3})
	return func(x *G.Node) *G.Node {
		y := conv(b.Slice(mixing+".part", x, 1, 0, part))
		y = b.Concat(mixing, 1, y, b.Slice(mixing+".rest", x, 1, part, c))
		y = last(act(b.Builder, name+".mlp.2", norm(first(y))))
		return b.pathAdd(name, y, x, drop)
	}
}
