package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

func init() {
	for _, v := range []struct {
		name         string
		size, resize int
		drop         float64
		net          TinyViT
	}{
		{"5m", 224, 235, 0, TinyViT{Channels: [4]int{64, 128, 160, 320}, Heads: [3]int{4, 5, 10}}},
		{"11m", 224, 235, .1, TinyViT{Channels: [4]int{64, 128, 256, 448}, Heads: [3]int{4, 8, 14}}},
		{"21m", 224, 235, .2, TinyViT{Channels: [4]int{96, 192, 384, 576}, Heads: [3]int{6, 12, 18}}},
		{"21m", 384, 384, .1,
			TinyViT{Channels: [4]int{96, 192, 384, 576}, Heads: [3]int{6, 12, 18}, Windows: [3]int{12, 24, 12}}},
		{"21m", 512, 512, .1,
			TinyViT{Channels: [4]int{96, 192, 384, 576}, Heads: [3]int{6, 12, 18}, Windows: [3]int{16, 32, 16}}},
	} {
		v.net.Blocks = [4]int{2, 2, 6, 2}
		imageNet(nn.Architecture{
			Name:          fmt.Sprintf("tiny_vit_%s_%d", v.name, v.size),
			Family:        "tiny_vit",
			Summary:       fmt.Sprintf("TinyViT-%s, with timm's names", strings.ToUpper(v.name)),
			Reference:     "Wu et al., TinyViT: fast pretraining distillation for small vision transformers, 2022",
			Size:          v.size,
			DropPath:      v.drop,
			Resize:        v.resize,
			Interpolation: bicubic,
			Block:         `^(patch_embed|stages\.\d\.blocks\.\d+)\.`,
			Init:          tinyViTInitial,
			Build:         v.net.Build,
		})
	}
}

// TinyViT are the options of a net with a stage of convolutions and three of attention in windows.
type TinyViT struct {
	Channels [4]int // of each stage; timm's embed_dims
	Blocks   [4]int // of each stage; timm's depths
	Heads    [3]int // of the stages with attention; timm's num_heads
	Windows  [3]int // height and width of their windows in tokens; 0 all means 7, 14 and 7; timm's window_sizes
}

// tinyViTEps is added to the variances of layer normalisations.
const tinyViTEps = 1e-5

// Build adds the layers to b.
func (o TinyViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if o.Windows == [3]int{} {
		o.Windows = [3]int{7, 14, 7}
	}
	b.options("TinyViT", o).least(1, "Channels", "Blocks", "Heads", "Windows").
		that(max(o.Windows[0], o.Windows[1], o.Windows[2]) <= 128, "Windows", "at most 128")
	for i, heads := range o.Heads {
		b.options("TinyViT", o).that(o.Channels[i+1]%max(heads, 1) == 0, "Channels",
			fmt.Sprintf("divisible by Heads, which are %v, in the last stages", o.Heads))
	}
	gelu := nn.Activation((*nn.Builder).GELU)
	x = b.bnConv("patch_embed.conv1", x, nn.Conv{Filters: max(o.Channels[0]/2, 1), Kernel: 3, Stride: 2}, gelu)
	x = b.bnConv("patch_embed.conv2", x, nn.Conv{Filters: o.Channels[0], Kernel: 3, Stride: 2}, nil)
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		stage, c := fmt.Sprintf("stages.%d", i), o.Channels[i]
		if i > 0 {
			name := stage + ".downsample.conv"
			x = b.bnConv(name+"1", x, nn.Conv{Filters: c, Kernel: 1}, gelu)
			x = b.bnConv(name+"2", x, nn.Conv{Filters: c, Kernel: 3, Stride: 2, Groups: c}, gelu)
			x = b.bnConv(name+"3", x, nn.Conv{Filters: c, Kernel: 1}, nil)
		}
		if b.Err() != nil {
			return nil
		}
		image := x
		if i > 0 {
			x = b.rows(stage, x)
		}
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			name := fmt.Sprintf("%s.blocks.%d", stage, j)
			if i == 0 {
				x = b.wideBranch(name, x, 4*c, drop)
			} else {
				x = b.windowBlock(name, x, image, o.Heads[i-1], o.Windows[i-1], drop)
			}
			done++
		}
		if i > 0 {
			x = b.image(stage, x, image)
		}
	}
	x = b.LayerNorm("head.norm", b.GlobalAvgPool("head.global_pool", x), tinyViTEps)
	return b.Linear("head.fc", b.Dropout("head.drop", x, b.Config().Dropout), b.Config().Classes)
}

// wideBranch adds to images x a branch through wide channels, followed by a GELU.
func (b layer) wideBranch(name string, x *G.Node, wide int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	gelu := nn.Activation((*nn.Builder).GELU)
	y := b.bnConv(name+".conv1", x, nn.Conv{Filters: wide, Kernel: 1}, gelu)
	y = b.bnConv(name+".conv2", y, nn.Conv{Filters: wide, Kernel: 3, Groups: wide}, gelu)
	y = b.bnConv(name+".conv3", y, nn.Conv{Filters: x.Shape()[1], Kernel: 1}, nil)
	return b.GELU(name+".act3", b.pathAdd(name, y, x, drop))
}

// windowBlock adds attention in windows to the rows x of images, then convolves neighbours, then adds a perceptron.
func (b layer) windowBlock(name string, x, image *G.Node, heads, window int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := image.Shape()
	n, c := s[0], s[1]
	y := b.offsetAttention(name+".attn", x, nn.Windows{Height: s[2], Width: s[3], Rows: window, Columns: window}, heads)
	x = b.rowResidual(name+".drop_path1", y, x, n, drop)

	mlp := name + ".mlp" // its place in the state dict differs
	norm := b.sharedNorm(mlp+".norm", c, tinyViTEps)
	expand, contract := b.linearLater(mlp+".fc1", 4*c, c), b.linearLater(mlp+".fc2", c, 4*c)
	x = b.bnConv(name+".local_conv", b.image(name+".local_conv", x, image), nn.Conv{Filters: c, Kernel: 3, Groups: c}, nil)
	x = b.rows(name, x)
	y = contract(b.GELU(mlp+".act", expand(norm("", x))))
	return b.rowResidual(name+".drop_path2", y, x, n, drop)
}

// offsetAttention is attention for the rows x of images, within windows, whose tokens are normalised. Scores have a
// bias for each head and distance, down and across. Queries, keys and values of a head follow each other.
func (b layer) offsetAttention(name string, x *G.Node, w nn.Windows, heads int) *G.Node {
	c, t := x.Shape()[1], w.Rows*w.Columns
	scores := b.distances(name, heads, grid{w.Rows, w.Columns, 1})
	x = b.LayerNorm(name+".norm", b.Windows(name+".windows", x, w), tinyViTEps)
	weight, bias := b.matrix(name+".qkv", 3*c, c), b.bias(name+".qkv", 3*c)
	qkv := b.Apply(name+".qkv", op.Linear{}, x, b.byPart(name+".weights", weight, heads),
		b.byPart(name+".biases", bias, heads))
	if b.Err() != nil {
		return nil
	}
	y := b.selfAttention(name+".attention", qkv, x.Shape()[0]/t, nn.Attention{Heads: heads}, scores)
	return b.FromWindows(name+".images", b.Linear(name+".proj", y, c), w)
}

// byPart reorders the weights or biases of queries, keys and values, which follow each other within a head, such that
// all queries come first, then all keys.
func (b layer) byPart(name string, x *G.Node, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	x = b.Reshape(name+".by_head", x, heads, 3, s.TotalSize()/(3*heads))
	return b.Reshape(name+".parts", b.Permute(name+".by_part", x, 1, 0, 2), s...)
}

// tinyViTInitial is the initial distribution of a parameter. Convolutions start as PyTorch's.
func tinyViTInitial(p nn.Param) nn.Init {
	switch {
	case len(p.Shape) == 4:
		return nn.FanInUniform(p.Shape[1:].Size())
	case strings.HasSuffix(p.Name, ".attention_biases"),
		strings.HasPrefix(p.Name, "stages.0.") && strings.HasSuffix(p.Name, ".conv3.bn.weight"):
		return nn.Init{}
	case len(p.Shape) == 2:
		return nn.Init{Distribution: nn.Normal, Scale: .02}
	case p.Init.Distribution == nn.Uniform: // a bias
		return nn.Init{}
	}
	return p.Init
}
