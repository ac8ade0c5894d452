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
	wide := [4]int{64, 128, 256, 512}
	for _, v := range []struct {
		name string
		net  FastViT
	}{
		{"t8", FastViT{Blocks: [4]int{2, 2, 4, 2}, Channels: [4]int{48, 96, 192, 384}, MLPRatio: 3}},
		{"t12", FastViT{Blocks: [4]int{2, 2, 6, 2}, Channels: wide, MLPRatio: 3}},
		{"s12", FastViT{Blocks: [4]int{2, 2, 6, 2}, Channels: wide, MLPRatio: 4}},
		{"sa12", FastViT{Blocks: [4]int{2, 2, 6, 2}, Channels: wide, MLPRatio: 4, Attention: true}},
		{"sa24", FastViT{Blocks: [4]int{4, 4, 12, 4}, Channels: wide, MLPRatio: 4, Attention: true}},
		{"sa36", FastViT{Blocks: [4]int{6, 6, 18, 6}, Channels: wide, MLPRatio: 4, Attention: true}},
		{"ma36", FastViT{Blocks: [4]int{6, 6, 18, 6}, Channels: [4]int{76, 152, 304, 608}, MLPRatio: 4, Attention: true}},
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
}

// FastViT are the options of a net whose convolutions have branches in training, which may be one in evaluation.
type FastViT struct {
	Blocks    [4]int // of each stage; timm's layers
	Channels  [4]int // of each stage; each divides the next; timm's embed_dims
	MLPRatio  int    // channels of a hidden layer for each of a block; timm's mlp_ratios
	Attention bool   // the last stage has attention and places: the last of timm's token_mixers and pos_embs
}

// fastViTHead is the number of elements of a head.
const fastViTHead = 32

// Build adds the layers to b.
func (o FastViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("FastViT", o).least(1, "Blocks", "Channels", "MLPRatio").
		that(!o.Attention || o.Channels[3]%fastViTHead == 0, "Channels",
			fmt.Sprintf("divisible by %d in the last stage", fastViTHead))
	for i := range 3 {
		c := o.Channels
		b.options("FastViT", o).that(c[i+1]%max(c[i], 1) == 0, "Channels", "numbers of which each divides the next")
	}
	if b.Err() != nil {
		return nil
	}
	gelu := nn.Activation((*nn.Builder).GELU)
	c := o.Channels[0]
	x = b.mobileOne("stem.0", x, nn.Conv{Filters: c, Kernel: 3, Stride: 2}, false, gelu)
	x = b.mobileOne("stem.1", x, nn.Conv{Filters: c, Kernel: 3, Stride: 2, Groups: c}, false, gelu)
	x = b.mobileOne("stem.2", x, nn.Conv{Filters: c, Kernel: 1}, false, gelu)
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		stage := fmt.Sprintf("stages.%d", i)
		if i > 0 && o.Channels[i] != c {
			name, by := stage+".downsample.proj", nn.Conv{Filters: o.Channels[i], Kernel: 7, Stride: 2, Groups: c}
			y := b.bnConv(name+".0.large_conv", x, by, nil)
			by.Kernel = 3
			x = b.Add(name+".0", y, b.bnConv(name+".0.small_conv", x, by, nil))
			c = o.Channels[i]
			x = b.mobileOne(name+".1", x, nn.Conv{Filters: c, Kernel: 1}, false, gelu)
		}
		attends := o.Attention && i == 3
		if attends {
			by := nn.Conv{Filters: c, Kernel: 7, Groups: c, Bias: true}
			x = b.Add(stage+".pos_emb", b.conv(stage+".pos_emb.pos_enc", x, by), x)
		}
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			name, branch, part := fmt.Sprintf("%s.blocks.%d", stage, j), "", ""
			if attends {
				branch, part = "2", "_2"
				y := b.imageAttention(name+".token_mixer", b.BatchNorm(name+".norm", x, 1))
				y = b.StochasticDepth(name+".drop_path1", b.gamma(name+".layer_scale_1", y), drop)
				x = b.Add(name+".add1", y, x)
			} else {
				x = b.repMixer(name+".token_mixer", x)
			}
			y := b.bnConv(name+".mlp.conv", x, nn.Conv{Filters: c, Kernel: 7, Groups: c}, nil)
			y = b.conv(name+".mlp.fc1", y, nn.Conv{Filters: o.MLPRatio * c, Kernel: 1, Bias: true})
			y = b.conv(name+".mlp.fc2", b.GELU(name+".mlp.act", y), nn.Conv{Filters: c, Kernel: 1, Bias: true})
			y = b.StochasticDepth(name+".drop_path"+branch, b.gamma(name+".layer_scale"+part, y), drop)
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

// exciteByMean adds the parameters of a squeeze-and-excitation by a sixteenth of the channels.
func (b layer) exciteByMean(name string, channels int) func(x *G.Node) *G.Node {
	narrow := max(1, int(float64(channels)/16+.5))
	add := func(name string, out, in int) []*G.Node {
		weight := b.AddParam(nn.Param{Name: name + ".weight", Shape: op.Shape{out, in, 1, 1}, Init: nn.FanInUniform(in)})
		bias := b.AddParam(nn.Param{Name: name + ".bias", Shape: op.Shape{out}, BiasOrNorm: true, Init: nn.FanInUniform(in)})
		return []*G.Node{weight, bias}
	}
	first, second := add(name+".fc1", narrow, channels), add(name+".fc2", channels, narrow)
	return func(x *G.Node) *G.Node {
		m := b.Apply(name+".fc1", point, append([]*G.Node{b.pixel(name+".mean", x)}, first...)...)
		m = b.Apply(name+".fc2", point, append([]*G.Node{b.ReLU(name+".act", m)}, second...)...)
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
	return b.Add(name+".add", b.gamma(name+".layer_scale", y), x)
}

// gamma multiplies the channels of images by trained factors that start small.
func (b layer) gamma(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	return b.Scale(name, x, b.AddParam(nn.Param{Name: name + ".gamma", Shape: op.Shape{x.Shape()[1], 1, 1},
		Init: nn.Init{Distribution: nn.Constant, Scale: 1e-5}}))
}

// imageAttention is attention among the pixels of images.
func (b layer) imageAttention(name string, image *G.Node) *G.Node {
	x := b.rows(name, image)
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	x = b.Apply(name+".qkv", op.Linear{}, x, b.matrix(name+".qkv", 3*c, c))
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
