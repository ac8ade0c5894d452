package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name string
		net  Visformer
	}{
		{"tiny", Visformer{Stem: 16, Width: 192, Blocks: [3]int{7, 4, 4}, Heads: 3}},
		{"small", Visformer{Stem: 32, Width: 384, Blocks: [3]int{7, 4, 4}, Heads: 6}},
	} {
		imageNet(nn.Architecture{
			Name:          "visformer_" + v.name,
			Family:        "visformer",
			Summary:       "Visformer, " + v.name + ", with timm's names",
			Reference:     "Chen et al., Visformer: the vision-friendly transformer, 2021",
			MinSize:       32,
			Resize:        248,
			Interpolation: bicubic,
			Block:         `^(stage\d\.\d+)\.`,
			Init:          normal(.02),
			Build:         v.net.Build,
		})
	}
}

// Visformer are the options of a net with a stage of convolutions and two of attention.
type Visformer struct {
	Stem   int    // channels of the first convolution; timm's init_channels
	Width  int    // channels of the second stage; the first has half as many and the third twice as many; timm's embed_dim
	Blocks [3]int // of each stage; timm's depth
	Heads  int    // timm's num_heads
	Groups int    // of the first stage's convolutions; 0 means 8; timm's group
}

// Build adds the layers to b.
func (o Visformer) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if o.Groups == 0 {
		o.Groups = 8
	}
	b.options("Visformer", o).least(1, "Stem", "Width", "Blocks", "Heads", "Groups").multiple("Width", "Heads").
		that(o.Width%2 == 0 && o.Width%max(o.Groups, 1) == 0, "Width", "even and divisible by Groups")
	if !b.multipleOf(x, 32) {
		return nil
	}
	height, width := x.Shape()[2]/8, x.Shape()[3]/8
	var places [3]*G.Node
	for i := range places {
		places[i] = b.imagePlaces(fmt.Sprintf("pos_embed%d", i+1), o.Width<<i/2, height>>i, width>>i, false)
	}
	x = b.Conv("stem.0", x, nn.Conv{Filters: o.Stem, Kernel: 7, Stride: 2, Pad: 3})
	x = b.ReLU("stem.2", b.BatchNorm("stem.1", x, 1))
	done, all, size := 0, sum(o.Blocks[:]), 4
	for i, n := range o.Blocks {
		name, c := fmt.Sprintf("patch_embed%d", i+1), o.Width<<i/2
		x = b.Conv(name+".proj", x, nn.Conv{Filters: c, Kernel: size, Stride: size, Bias: true})
		x = b.Map(name+".places", expr.Arg(0).Add(expr.Arg(1)), b.BatchNorm(name+".norm", x, 1), places[i])
		size = 2
		for j := range n {
			x = o.block(b, fmt.Sprintf("stage%d.%d", i+1, j), x, i == 0, b.Config().DropPathAt(done, all))
			done++
		}
	}
	return b.Linear("head", b.pooled("head_drop", b.BatchNorm("norm", x, 1)), b.Config().Classes)
}

// block adds to images x attention among pixels, unless convolves, then a perceptron, in which convolves convolves
// neighbours.
func (o Visformer) block(b layer, name string, x *G.Node, convolves bool, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c, dropped := x.Shape()[1], name+".drop_path"
	if !convolves {
		dropped = name + ".drop_path2"
		y := b.conv(name+".attn.qkv", b.BatchNorm(name+".norm1", x, 1), nn.Conv{Filters: 3 * c, Kernel: 1})
		y = b.selfAttention(name+".attention", b.rows(name+".attn.qkv", y), x.Shape()[0], nn.Attention{Heads: o.Heads})
		y = b.conv(name+".attn.proj", b.image(name+".attn", y, x), nn.Conv{Filters: c, Kernel: 1})
		x = b.Add(name+".add1", b.StochasticDepth(name+".drop_path1", y, drop), x)
	}
	y, wide := b.BatchNorm(name+".norm2", x, 1), 4*c
	if convolves {
		wide = 2 * c
	}
	y = b.GELU(name+".mlp.act1", b.conv(name+".mlp.conv1", y, nn.Conv{Filters: wide, Kernel: 1}))
	if convolves {
		y = b.conv(name+".mlp.conv2", y, nn.Conv{Filters: wide, Kernel: 3, Groups: o.Groups})
		y = b.GELU(name+".mlp.act2", y)
	}
	y = b.conv(name+".mlp.conv3", y, nn.Conv{Filters: c, Kernel: 1})
	return b.Add(name+".add2", b.StochasticDepth(dropped, y, drop), x)
}
