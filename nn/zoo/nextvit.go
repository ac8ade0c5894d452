package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

func init() {
	for _, v := range []struct {
		name   string
		blocks int // of the third stage
		drop   float64
	}{{"small", 10, .1}, {"base", 20, .2}, {"large", 30, .2}} {
		imageNet(nn.Architecture{
			Name:          "nextvit_" + v.name,
			Family:        "nextvit",
			Summary:       "Next-ViT, " + v.name + ", with timm's names",
			Reference:     "Li et al., Next-ViT: next generation vision transformer for efficient deployment, 2022",
			MinSize:       32,
			DropPath:      v.drop,
			Resize:        235,
			Interpolation: bicubic,
			Block:         timmStage,
			Init:          convNeXtInitial,
			Build:         NextViT{Blocks: [4]int{3, 4, v.blocks, 3}}.Build,
		})
	}
}

// NextViT are the options of a net of convolutional blocks with a transformer's block behind some: the last of the
// second and of the fourth stage, and each fifth of the third.
type NextViT struct {
	Blocks [4]int // of each stage, a multiple of 5 of the third; timm's depths
	Stem   [3]int // channels of the first convolutions; 0 all means 64, 32 and 64; timm's stem_chs

	// Channels of each stage's blocks, and those of its transformers' blocks, are timm's stage_out_chs: 0 all means 96,
	// 192, 384 and 768, and 0, 256, 512 and 1024. Head is the number of elements of a head; 0 means 32: timm's head_dim.
	Channels, Wide [4]int
	Head           int
}

// Stages attend to means of so many pixels, squared.
var nextViTReductions = [4]int{8, 4, 2, 1}

// Build adds the layers to b.
func (o NextViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o.Stem = cmp.Or(o.Stem, [3]int{64, 32, 64})
	o.Channels, o.Wide = cmp.Or(o.Channels, [4]int{96, 192, 384, 768}), cmp.Or(o.Wide, [4]int{0, 256, 512, 1024})
	o.Head = cmp.Or(o.Head, 32)
	b.options("NextViT", o).least(1, "Blocks", "Stem", "Channels", "Head").least(0, "Wide").
		that(o.Blocks[2]%5 == 0, "Blocks", "a multiple of 5 in the third stage").multiple("Channels", "Head").
		multiple("Wide", "Head")
	for i, wide := range o.Wide[1:] {
		attends := divisibleBy(float64(wide*3/4), 32)
		b.options("NextViT", o).that(attends < wide && attends%o.Head == 0, "Wide", fmt.Sprintf("larger in stage %d", i+1))
	}
	if !b.multipleOf(x, 32) {
		return nil
	}
	for i, c := range []int{o.Stem[0], o.Stem[1], o.Stem[2], o.Stem[2]} {
		name, stride := fmt.Sprintf("stem.%d", i), 1
		if i%3 == 0 {
			stride = 2
		}
		x = b.convNorm([2]string{name + ".conv", name + ".norm"}, x, nn.Conv{Filters: c, Kernel: 3, Stride: stride},
			(*nn.Builder).ReLU)
	}
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		for j := range n {
			name := fmt.Sprintf("stages.%d.blocks.%d", i, j)
			halve := i > 0 && j == 0
			drop := func(quarters int) float64 { return b.Config().DropPathAt(quarters*done, 4*all-3) }
			if i > 0 && (j == n-1 || i == 2 && j%5 == 4) {
				x = o.transform(b, name, x, i, halve, drop)
			} else {
				x = o.convolve(b, name, x, o.Channels[i], halve, drop(4))
			}
			done++
		}
	}
	return b.byobHead(b.BatchNorm("norm", x, 1))
}

// embed halves the extents of images if asked for, and convolves and normalises them if shapes change.
func (o NextViT) embed(b layer, name string, x *G.Node, out int, halve bool) *G.Node {
	switch {
	case b.Err() != nil:
		return nil
	case halve:
		x = b.AvgPool(name+".pool", x, 2, 2, 0)
	case x.Shape()[1] == out:
		return x
	}
	return b.convNorm([2]string{name + ".conv", name + ".norm"}, x, nn.Conv{Filters: out, Kernel: 1}, nil)
}

// mix is a convolution of groups, one a head, and one of pixels.
func (o NextViT) mix(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	by := nn.Conv{Filters: c, Kernel: 3, Groups: c / o.Head}
	y := b.convNorm([2]string{name + ".group_conv3x3", name + ".norm"}, x, by, (*nn.Builder).ReLU)
	return b.conv(name+".projection", y, nn.Conv{Filters: c, Kernel: 1})
}

// perceptron adds to images x that of pixels which are normalised.
func (o NextViT) perceptron(b layer, name, norm string, x *G.Node, ratio int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	y := b.Conv(name+".mlp.fc1", b.BatchNorm(name+norm, x, 1), nn.Conv{Filters: ratio * c, Kernel: 1, Bias: true})
	y = b.Conv(name+".mlp.fc2", b.ReLU(name+".mlp.act", y), nn.Conv{Filters: c, Kernel: 1, Bias: true})
	return b.Add(name+".mlp.add", b.StochasticDepth(name+".mlp_drop_path", y, drop), x)
}

// convolve is a convolutional block.
func (o NextViT) convolve(b layer, name string, x *G.Node, out int, halve bool, drop float64) *G.Node {
	x = o.embed(b, name+".patch_embed", x, out, halve)
	y := b.StochasticDepth(name+".attn_drop_path", o.mix(b, name+".mhca", x), drop)
	return o.perceptron(b, name, ".norm", b.Add(name+".mhca.add", y, x), 3, drop)
}

// transform is a transformer's block: attention for three quarters of the channels, and convolutions for the others,
// which are made of the result. drop gives quarters of the probability of dropping branches.
func (o NextViT) transform(b layer, name string, x *G.Node, stage int, halve bool,
	drop func(quarters int) float64) *G.Node {
	wide := divisibleBy(float64(o.Wide[stage]*3/4), 32)
	x = o.embed(b, name+".patch_embed", x, wide, halve)
	if b.Err() != nil {
		return nil
	}
	n := x.Shape()[0]
	y := b.rows(name+".e_mhsa", b.BatchNorm(name+".norm1", x, 1))
	y = o.attention(b, name+".e_mhsa", y, n, nextViTReductions[stage])
	y = b.image(name+".e_mhsa", y, x)
	x = b.Add(name+".e_mhsa.add", b.StochasticDepth(name+".mhsa_drop_path", y, drop(3)), x)
	y = o.embed(b, name+".projection", x, o.Wide[stage]-wide, false)
	z := b.StochasticDepth(name+".mhca_drop_path", o.mix(b, name+".mhca", y), drop(1))
	x = b.Concat(name+".concat", 1, x, b.Add(name+".mhca.add", z, y))
	return o.perceptron(b, name, ".norm2", x, 2, drop(4))
}

// attention is attention of the rows x of n images to normalised means of ratio² rows that follow each other.
func (o NextViT) attention(b layer, name string, x *G.Node, n, ratio int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	rows, c := x.Shape()[0], x.Shape()[1]
	queries := b.Linear(name+".q", x, c)
	toKeys, toValues := b.linearLater(name+".k", c, c), b.linearLater(name+".v", c, c)
	proj := b.linearLater(name+".proj", c, c)
	if ratio > 1 {
		by := ratio * ratio
		x = b.Reduce(name+".sr", b.Reshape(name+".parts", x, rows/by, by, c), op.Mean, 1)
		x = b.Reshape(name+".means", x, n, rows/by/n, c)
		x = b.BatchNorm(name+".norm", b.Apply(name+".line", op.Planes{Height: rows / by / n, Width: 1}, x), 1)
		x = b.rows(name+".norm", x)
	}
	y := b.Attention(name+".attention", queries, toKeys(x), toValues(x), n, nn.Attention{Heads: c / o.Head})
	return proj(y)
}
