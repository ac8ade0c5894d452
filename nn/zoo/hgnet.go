package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	// Channels of the stem, then inner channels, channels and blocks of each stage.
	for i, v := range []struct {
		stem, inner, out, blocks []int
		layers                   int
	}{
		{[]int{16, 16}, []int{16, 32, 64, 128}, []int{64, 256, 512, 1024}, []int{1, 1, 2, 1}, 3},
		{[]int{24, 32}, []int{32, 48, 96, 192}, []int{64, 256, 512, 1024}, []int{1, 1, 2, 1}, 3},
		{[]int{24, 32}, []int{32, 64, 128, 256}, []int{96, 384, 768, 1536}, []int{1, 1, 3, 1}, 4},
		{[]int{24, 32}, []int{32, 64, 128, 256}, []int{128, 512, 1024, 2048}, []int{1, 1, 3, 1}, 5},
		{[]int{32, 48}, []int{48, 96, 192, 384}, []int{128, 512, 1024, 2048}, []int{1, 1, 3, 1}, 6},
		{[]int{32, 64}, []int{64, 128, 256, 512}, []int{128, 512, 1024, 2048}, []int{1, 2, 5, 2}, 6},
		{[]int{48, 96}, []int{96, 192, 384, 768}, []int{192, 512, 1024, 2048}, []int{2, 3, 6, 3}, 6},
	} {
		o := HGNet{Stem: [2]int{v.stem[0], v.stem[1]}, Last: 2048, Affine: i < 4}
		for j := range 4 {
			s := HGStage{Inner: v.inner[j], Out: v.out[j], Blocks: v.blocks[j], Layers: v.layers, Kernel: 3, Light: j >= 2}
			if s.Light {
				s.Kernel = 5
			}
			o.Stages = append(o.Stages, s)
		}
		imageNet(nn.Architecture{
			Name:          fmt.Sprintf("hgnetv2_b%d", i),
			Family:        "hgnet",
			Summary:       fmt.Sprintf("PP-HGNetV2-B%d, as timm's", i),
			Reference:     "PaddlePaddle, PP-HGNetV2, 2023",
			Resize:        232,
			Interpolation: bicubic,
			Block:         hgNetBlock,
			Init:          zeroHeadBias,
			Build:         o.Build,
		})
	}
	for _, v := range []struct {
		name       string
		first      []int
		inner, out [4]int
		blocks     [4]int
		layers     int
	}{
		{"tiny", []int{48, 48, 96}, [4]int{96, 128, 160, 192}, [4]int{224, 448, 512, 768}, [4]int{1, 1, 2, 1}, 5},
		{"small", []int{64, 64, 128}, [4]int{128, 160, 192, 224}, [4]int{256, 512, 768, 1024}, [4]int{1, 1, 2, 1}, 6},
		{"base", []int{96, 96, 160}, [4]int{192, 224, 256, 288}, [4]int{320, 640, 960, 1280}, [4]int{1, 2, 3, 2}, 7},
	} {
		o := HGNet{First: v.first, Last: 2048}
		for j, n := range v.blocks {
			o.Stages = append(o.Stages, HGStage{Inner: v.inner[j], Out: v.out[j], Blocks: n, Layers: v.layers, Kernel: 3})
		}
		imageNet(nn.Architecture{
			Name:          "hgnet_" + v.name,
			Family:        "hgnet",
			Summary:       "PP-HGNet-" + v.name + ", as timm's",
			Reference:     "PaddlePaddle, PP-HGNet, 2022",
			Resize:        232,
			Interpolation: bicubic,
			Block:         hgNetBlock,
			Init:          zeroHeadBias,
			Build:         o.Build,
		})
	}
}

const hgNetBlock = `^(stem|stages\.\d+\.blocks\.\d+)\.`

// HGNet are the options of a net whose blocks join the results of all their layers.
type HGNet struct {
	Stem [2]int // channels inside the first convolutions and behind them; timm's stem_chs
	// First are the channels of 3×3 convolutions in place of those, with blocks of the first PP-HGNet: timm's stem_type
	// "v1".
	First  []int
	Stages []HGStage
	Last   int  // outputs of a layer before the last; timm's head_hidden_size
	Affine bool // a trained factor and a trained summand follow each activation; timm's use_lab
}

// HGStage are the options of a stage. All but the first begin with a depthwise convolution of stride 2.
type HGStage struct {
	Inner, Out     int  // channels of the layers and of the blocks; timm's mid_chs and out_chs
	Blocks, Layers int  // layers are those of a block; timm's blocks and layer_num
	Kernel         int  // odd; timm's kernel_size
	Light          bool // layers are a 1×1 convolution and a depthwise one; timm's light_block
}

// check reports whether the options are right.
func (o HGNet) check(b layer) bool {
	check := b.options("HGNet", o).least(1, "Last").that(len(o.Stages) > 0, "Stages", "at least one")
	if len(o.First) > 0 {
		check.least(1, "First").that(o.Stem == [2]int{}, "Stem", "0 with First").that(!o.Affine, "Affine", "false with First")
	} else {
		check.least(1, "Stem").that(o.Stem[0] > 1, "Stem", "at least 2 inside")
	}
	for i, s := range o.Stages {
		b.options(fmt.Sprintf("HGNet.Stages[%d]", i), s).least(1, "Inner", "Out", "Blocks", "Layers", "Kernel").
			that(s.Out > 1, "Out", "at least 2").that(s.Kernel%2 == 1, "Kernel", "odd")
	}
	return b.Err() == nil
}

// Build adds the layers to b.
func (o HGNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !o.check(b) {
		return nil
	}
	in, done, all := o.Stem[1], 0, 0
	if n := len(o.First); n > 0 {
		in = o.First[n-1]
	}
	x = o.stem(b, x)
	for _, s := range o.Stages {
		all += s.Blocks
	}
	for i, s := range o.Stages {
		name := fmt.Sprintf("stages.%d", i)
		if i > 0 {
			down := nn.Conv{Filters: in, Kernel: 3, Stride: 2, Groups: in}
			x = b.bnConv(name+".downsample", x, down, nil)
		}
		for j := range s.Blocks {
			drop := b.Config().DropPathAt(done, all)
			block := fmt.Sprintf("%s.blocks.%d", name, j)
			y := o.block(b, block, x, s)
			if j > 0 {
				y = b.residual(block, y, x, drop)
			}
			x, in = y, s.Out
			done++
		}
	}
	x = b.conv("head.last_conv.0", b.pixel("head.pool", x), nn.Conv{Filters: o.Last, Kernel: 1})
	x = o.affine(b, "head.last_conv.2", b.ReLU("head.last_conv.1", x))
	x = b.Dropout("head.dropout", b.Flatten("head.flatten", x), b.Config().Dropout)
	return b.Linear("head.fc", x, b.Config().Classes)
}

// stem quarters the extent. Convolutions of 2×2 pixels go beside a pooling.
func (o HGNet) stem(b layer, x *G.Node) *G.Node {
	for i, n := range o.First {
		x = o.act(b, fmt.Sprintf("stem.stem.%d", i), x, nn.Conv{Filters: n, Kernel: 3, Stride: max(2-i, 1), Pad: 1})
	}
	if len(o.First) > 0 {
		return b.MaxPool("stem.pool", x, 3, 2, 1)
	}
	inside := o.Stem[0]
	pad := func(name string, x *G.Node) *G.Node { return b.Pad(name, x, []int{0, 0, 0, 0}, []int{0, 0, 1, 1}) }
	x = o.act(b, "stem.stem1", x, nn.Conv{Filters: inside, Kernel: 3, Stride: 2, Pad: 1})
	x = pad("stem.pad1", x)
	y := o.act(b, "stem.stem2a", x, nn.Conv{Filters: inside / 2, Kernel: 2})
	y = o.act(b, "stem.stem2b", pad("stem.pad2", y), nn.Conv{Filters: inside, Kernel: 2})
	x = b.Concat("stem.concat", 1, b.MaxPool("stem.pool", x, 2, 1, 0), y)
	x = o.act(b, "stem.stem3", x, nn.Conv{Filters: inside, Kernel: 3, Stride: 2, Pad: 1})
	return o.act(b, "stem.stem4", x, nn.Conv{Filters: o.Stem[1], Kernel: 1})
}

// act is a convolution, its normalisation and an activation.
func (o HGNet) act(b layer, name string, x *G.Node, c nn.Conv) *G.Node {
	x = b.ReLU(name+".act", b.BatchNorm(name+".bn", b.Conv(name+".conv", x, c), 1))
	return o.affine(b, name+".lab", x)
}

// affine is the trained factor and summand, if there are any.
func (o HGNet) affine(b layer, name string, x *G.Node) *G.Node {
	if !o.Affine || b.Err() != nil {
		return x
	}
	scale, bias := b.scalars(name, x.Shape()[1])
	return b.Map(name, expr.Arg(0).Mul(expr.Arg(1)).Add(expr.Arg(2)), x, scale, bias)
}

// block joins x and the results of its layers, and convolves them twice by 1×1, or once with a squeeze-and-excitation.
func (o HGNet) block(b layer, name string, x *G.Node, s HGStage) *G.Node {
	all, same := []*G.Node{x}, nn.Conv{Filters: s.Inner, Kernel: s.Kernel, Pad: s.Kernel / 2}
	for i := range s.Layers {
		at := fmt.Sprintf("%s.layers.%d", name, i)
		if s.Light {
			x = b.bnConv(at+".conv1", x, nn.Conv{Filters: s.Inner, Kernel: 1}, nil)
			at, same.Groups = at+".conv2", s.Inner
		}
		x = o.act(b, at, x, same)
		all = append(all, x)
	}
	x = b.Concat(name+".concat", 1, all...)
	if len(o.First) > 0 {
		x = o.act(b, name+".aggregation.0", x, nn.Conv{Filters: s.Out, Kernel: 1})
		return b.selfExcite(name+".aggregation.1", ".conv", x, (*nn.Builder).Sigmoid)
	}
	x = o.act(b, name+".aggregation.0", x, nn.Conv{Filters: s.Out / 2, Kernel: 1})
	return o.act(b, name+".aggregation.1", x, nn.Conv{Filters: s.Out, Kernel: 1})
}
