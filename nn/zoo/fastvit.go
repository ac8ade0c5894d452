package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	wide := []int{64, 128, 256, 512}
	for _, v := range []struct {
		name string
		net  FastViT
	}{
		{"t8", FastViT{Blocks: []int{2, 2, 4, 2}, Channels: []int{48, 96, 192, 384}, MLPRatio: 3}},
		{"t12", FastViT{Blocks: []int{2, 2, 6, 2}, Channels: wide, MLPRatio: 3}},
		{"s12", FastViT{Blocks: []int{2, 2, 6, 2}, Channels: wide, MLPRatio: 4}},
		{"sa12", FastViT{Blocks: []int{2, 2, 6, 2}, Channels: wide, MLPRatio: 4, Attention: 1}},
		{"sa24", FastViT{Blocks: []int{4, 4, 12, 4}, Channels: wide, MLPRatio: 4, Attention: 1}},
		{"sa36", FastViT{Blocks: []int{6, 6, 18, 6}, Channels: wide, MLPRatio: 4, Attention: 1}},
		{"ma36", FastViT{Blocks: []int{6, 6, 18, 6}, Channels: []int{76, 152, 304, 608}, MLPRatio: 4, Attention: 1}},
	} {
		a := nn.Architecture{
			Name:          "fastvit_" + v.name,
			Family:        "fastvit",
			Summary:       "FastViT-" + strings.ToUpper(v.name) + " with the branches of training, with timm's names",
			Reference:     "Vasu et al., FastViT: a fast hybrid vision transformer using structural reparameterization, 2023",
			Size:          256,
			Resize:        284,
			Interpolation: bicubic,
			Block:         `^(stem|stages\.\d\.blocks\.\d+|final_conv)\.`,
			Init:          fastViTInitial,
			Build:         v.net.Build,
		}
		if v.name == "ma36" {
			a.Resize = 269
		}
		imageNet(a)
	}
	excite := []bool{false, false, true, true}
	for _, v := range []struct {
		name string
		net  FastViT
	}{
		{"mci0", FastViT{Blocks: []int{2, 6, 10, 2}, Channels: wide, MLPRatio: 3, Attention: 1,
			Excite: excite, LargeAct: true}},
		{"mci1", FastViT{Blocks: []int{4, 12, 20, 4}, Channels: wide, MLPRatio: 3, Attention: 1,
			Excite: excite, LargeAct: true}},
		{"mci2", FastViT{Blocks: []int{4, 12, 24, 4}, Channels: []int{80, 160, 320, 640}, MLPRatio: 3, Attention: 1,
			Excite: excite, LargeAct: true}},
		{"mci3", FastViT{Blocks: []int{2, 12, 24, 4, 2}, Channels: []int{96, 192, 384, 768, 1536}, MLPRatio: 4, Attention: 2,
			LargeAct: true, LayerNorm: true, PlainStem: true}},
		{"mci4", FastViT{Blocks: []int{2, 12, 24, 4, 4}, Channels: []int{128, 256, 512, 1024, 2048}, MLPRatio: 4,
			Attention: 2, LargeAct: true, LayerNorm: true, PlainStem: true}},
	} {
		a := nn.Architecture{
			Name:          "fastvit_" + v.name,
			Family:        "fastvit",
			Summary:       "MobileCLIP's tower " + strings.ToUpper(v.name) + " with the branches of training, with timm's names",
			Reference:     "Vasu et al., MobileCLIP: fast image-text models through multi-modal reinforced training, 2024",
			Size:          256,
			Resize:        269,
			Interpolation: bicubic,
			Mean:          []float64{0, 0, 0},
			Std:           []float64{1, 1, 1},
			Block:         `^(stem|stages\.\d\.blocks\.\d+|final_conv)\.`,
			Init:          fastViTInitial,
			Build:         v.net.Build,
		}
		if v.net.LayerNorm {
			a.Mean, a.Std = clipMean, clipStd
		}
		imageNet(a)
	}
}

// FastViT are the options of a net whose convolutions have branches in training, which may be one in evaluation.
type FastViT struct {
	Blocks    []int // of each stage; timm's layers
	Channels  []int // of each stage; each divides the next; timm's embed_dims
	MLPRatio  int   // channels of a hidden layer for each of a block; timm's mlp_ratios
	Attention int   // stages of attention and places, the last ones: timm's token_mixers and pos_embs

	Excite    []bool // stages that begin with squeeze-and-excitation; nil means none; timm's se_downsamples
	LargeAct  bool   // an activation follows the large convolutions between stages: timm's lkc_use_act
	LayerNorm bool   // attention normalises the channels of each pixel, else a batch: timm's norm_layer
	PlainStem bool   // the stem's convolutions lack the branch of 1×1: timm's stem_use_scale_branch=False
}

// fastViTHead is the number of elements of a head.
const fastViTHead = 32

// Build adds the layers to b.
func (o FastViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	c, stages := o.Channels, len(o.Blocks)
	b.options("FastViT", o).least(1, "Blocks", "Channels", "MLPRatio").least(0, "Attention").
		that(len(c) == stages, "Channels", "of each stage").
		that(o.Attention <= stages, "Attention", "at most the number of stages").
		that(o.Excite == nil || len(o.Excite) == stages, "Excite", "nil, or of each stage")
	for i := 1; i < len(c); i++ {
		b.options("FastViT", o).that(c[i]%max(c[i-1], 1) == 0, "Channels", "numbers of which each divides the next")
	}
	for i := stages - o.Attention; i < stages && b.Err() == nil; i++ {
		b.options("FastViT", o).that(c[i]%fastViTHead == 0, "Channels",
			fmt.Sprintf("divisible by %d in stages of attention", fastViTHead))
	}
	if b.Err() != nil {
		return nil
	}
	gelu := nn.Activation((*nn.Builder).GELU)
	return o.build(b, x, c[0], gelu)
}

// build adds the layers of options that are right.
func (o FastViT) build(b layer, x *G.Node, c int, gelu nn.Activation) *G.Node {
	for i, by := range []nn.Conv{{Filters: c, Kernel: 3, Stride: 2}, {Filters: c, Kernel: 3, Stride: 2, Groups: c},
		{Filters: c, Kernel: 1}} {
		name := fmt.Sprintf("stem.%d", i)
		if o.PlainStem {
			x = b.plainOne(name, x, by, gelu)
		} else {
			x = b.mobileOne(name, x, by, false, gelu)
		}
	}
	done, all := 0, sum(o.Blocks)
	for i, n := range o.Blocks {
		stage := fmt.Sprintf("stages.%d", i)
		if i > 0 && o.Channels[i] != c {
			name, by := stage+".downsample.proj", nn.Conv{Filters: o.Channels[i], Kernel: 7, Stride: 2, Groups: c}
			y := b.bnConv(name+".0.large_conv", x, by, nil)
			by.Kernel = 3
			x = b.Add(name+".0", y, b.bnConv(name+".0.small_conv", x, by, nil))
			if c = o.Channels[i]; o.Excite != nil && o.Excite[i] {
				x = b.exciteQuarter(name+".0.se", x)
			}
			if o.LargeAct {
				x = b.GELU(name+".0.act", x)
			}
			x = b.mobileOne(name+".1", x, nn.Conv{Filters: c, Kernel: 1}, false, gelu)
		}
		attends := i >= len(o.Blocks)-o.Attention
		if attends {
			by := nn.Conv{Filters: c, Kernel: 7, Groups: c, Bias: true}
			x = b.Add(stage+".pos_emb", b.conv(stage+".pos_emb.pos_enc", x, by), x)
		}
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			name, branch, part := fmt.Sprintf("%s.blocks.%d", stage, j), "", ""
			if attends {
				branch, part = "2", "_2"
				var y *G.Node
				if o.LayerNorm {
					y = b.perPixel(name+".norm", x, func(x *G.Node) *G.Node { return b.LayerNorm(name+".norm", x, 1e-5) })
				} else {
					y = b.BatchNorm(name+".norm", x, 1)
				}
				y = b.imageAttention(name+".token_mixer", y)
				y = b.StochasticDepth(name+".drop_path1", b.gamma(name+".layer_scale_1", y, 1e-5), drop)
				x = b.Add(name+".add1", y, x)
			} else {
				x = b.repMixer(name+".token_mixer", x)
			}
			y := b.bnConv(name+".mlp.conv", x, nn.Conv{Filters: c, Kernel: 7, Groups: c}, nil)
			y = b.conv(name+".mlp.fc1", y, nn.Conv{Filters: o.MLPRatio * c, Kernel: 1, Bias: true})
			y = b.conv(name+".mlp.fc2", b.GELU(name+".mlp.act", y), nn.Conv{Filters: c, Kernel: 1, Bias: true})
			y = b.StochasticDepth(name+".drop_path"+branch, b.gamma(name+".layer_scale"+part, y, 1e-5), drop)
			x = b.Add(name+".add", y, x)
			done++
		}
	}
	x = b.mobileOne("final_conv", x, nn.Conv{Filters: 2 * c, Kernel: 3, Groups: c}, true, gelu)
	x = b.Dropout("head.drop", b.GlobalAvgPool("head.global_pool", x), b.Config().Dropout)
	return b.Linear("head.fc", x, b.Config().Classes)
}

// mobileOne is the sum of normalised branches of images x: x itself where the shape stays, the convolution c, and one
// of 1×1 if c has a larger kernel. Squeeze-and-excitation may follow, and the activation unless it is nil.
func (b layer) mobileOne(name string, x *G.Node, c nn.Conv, excite bool, act nn.Activation) *G.Node {
	if b.Err() != nil {
		return nil
	}
	var gate func(*G.Node) *G.Node // its place in the state dict differs
	if excite {
		gate = b.exciteByMean(name+".se", c.Filters)
	}
	var sum *G.Node
	if c.Stride < 2 && c.Filters == x.Shape()[1] {
		sum = b.BatchNorm(name+".identity", x, 1)
	}
	add := func(branch string, y *G.Node) {
		if sum != nil {
			y = b.Add(name+branch+".add", sum, y)
		}
		sum = y
	}
	add(".conv_kxk", b.bnConv(name+".conv_kxk.0", x, c, nil))
	if c.Kernel > 1 {
		c.Kernel = 1
		add(".conv_scale", b.bnConv(name+".conv_scale", x, c, nil))
	}
	if gate != nil {
		sum = gate(sum)
	}
	if act != nil {
		sum = act(b.Builder, name+".act", sum)
	}
	return sum
}

// plainOne is mobileOne of x itself, where the shape stays, and the convolution c alone.
func (b layer) plainOne(name string, x *G.Node, c nn.Conv, act nn.Activation) *G.Node {
	if b.Err() != nil {
		return nil
	}
	var same *G.Node
	if c.Stride < 2 && c.Filters == x.Shape()[1] {
		same = b.BatchNorm(name+".identity", x, 1)
	}
	y := b.bnConv(name+".conv_kxk.0", x, c, nil)
	if same != nil {
		y = b.Add(name+".add", same, y)
	}
	return act(b.Builder, name+".act", y)
}

// exciteByMean adds the parameters of a squeeze-and-excitation by a sixteenth of the channels.
func (b layer) exciteByMean(name string, channels int) func(x *G.Node) *G.Node {
	narrow := max(1, int(float64(channels)/16+.5))
	first := b.convLater(name+".fc1", channels, nn.Conv{Filters: narrow, Kernel: 1, Bias: true})
	second := b.convLater(name+".fc2", narrow, nn.Conv{Filters: channels, Kernel: 1, Bias: true})
	return func(x *G.Node) *G.Node {
		m := second(b.ReLU(name+".act", first(b.pixel(name+".mean", x))))
		return b.Scale(name+".scale", x, b.Sigmoid(name+".gate", m))
	}
}

// repMixer adds to images x the difference of a convolution's branches and of a normalisation.
func (b layer) repMixer(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	normal := b.BatchNorm(name+".norm.identity", x, 1)
	y := b.mobileOne(name+".mixer", x, nn.Conv{Filters: c, Kernel: 3, Groups: c}, false, nil)
	y = b.Map(name+".difference", expr.Arg(0).Sub(expr.Arg(1)), y, normal)
	return b.Add(name+".add", b.gamma(name+".layer_scale", y, 1e-5), x)
}

// gamma multiplies the channels of images by trained factors that start as initial, and that timm does not exempt from
// weight decay.
func (b layer) gamma(name string, x *G.Node, initial float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	return b.Scale(name, x, b.AddParam(nn.Param{Name: name + ".gamma", Shape: op.Shape{x.Shape()[1], 1, 1},
		Init: nn.Init{Distribution: nn.Constant, Scale: initial}}))
}

// imageAttention is attention among the pixels of images.
func (b layer) imageAttention(name string, image *G.Node) *G.Node {
	x := b.rows(name, image)
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	x = b.unbiased(name+".qkv", x, 3*c)
	x = b.selfAttention(name+".attention", x, image.Shape()[0], nn.Attention{Heads: c / fastViTHead})
	return b.image(name, b.Linear(name+".proj", x, c), image)
}

// fastViTInitial is the initial distribution of a parameter. Most convolutions start as PyTorch's.
func fastViTInitial(p nn.Param) nn.Init {
	mlp := strings.Contains(p.Name, ".mlp.")
	switch {
	case len(p.Shape) == 2, len(p.Shape) == 4 && mlp:
		return nn.Init{Distribution: nn.Normal, Scale: .02}
	case len(p.Shape) == 4:
		return nn.FanInUniform(p.Shape[1:].Size())
	case p.Init.Distribution != nn.Uniform:
		return p.Init
	case strings.Contains(p.Name, ".se.") || strings.Contains(p.Name, ".pos_enc."): // a bias
		return p.Init
	}
	return nn.Init{}
}
