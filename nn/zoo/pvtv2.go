package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	wide := [4]int{64, 128, 320, 512}
	for _, v := range []struct {
		name string
		net  PVTv2
	}{
		{"b0", PVTv2{Channels: [4]int{32, 64, 160, 256}, Blocks: [4]int{2, 2, 2, 2}}},
		{"b1", PVTv2{Channels: wide, Blocks: [4]int{2, 2, 2, 2}}},
		{"b2", PVTv2{Channels: wide, Blocks: [4]int{3, 4, 6, 3}}},
		{"b2_li", PVTv2{Channels: wide, Blocks: [4]int{3, 4, 6, 3}, Linear: true}},
		{"b3", PVTv2{Channels: wide, Blocks: [4]int{3, 4, 18, 3}}},
		{"b4", PVTv2{Channels: wide, Blocks: [4]int{3, 8, 27, 3}}},
		{"b5", PVTv2{Channels: wide, Blocks: [4]int{3, 6, 40, 3}, MLPRatios: [4]int{4, 4, 4, 4}}},
	} {
		v.net.Heads = [4]int{1, 2, 5, 8}
		imageNet(nn.Architecture{
			Name:          "pvt_v2_" + v.name,
			Family:        "pvt_v2",
			Summary:       "PVT V2-" + strings.ToUpper(v.name) + ", with timm's names",
			Reference:     "Wang et al., PVT v2: improved baselines with pyramid vision transformer, 2021",
			MinSize:       32,
			Resize:        248,
			Interpolation: bicubic,
			Block:         timmStage,
			Init:          fanOutInitial,
			Build:         v.net.Build,
		})
	}
}

// PVTv2 are the options of a transformer whose stages attend to smaller images, and whose perceptrons convolve.
type PVTv2 struct {
	Channels  [4]int // of each stage; timm's embed_dims
	Blocks    [4]int // of each stage; timm's depths
	Heads     [4]int // of each stage; they divide the channels; timm's num_heads
	MLPRatios [4]int // elements of a hidden layer for each channel; 0 all means 8, 8, 4 and 4; timm's mlp_ratios
	Linear    bool   // attention is to 7×7 means of pixels; timm's linear
}

// Stages of PVT V2 and Twins attend to an image's convolutions of this height, width and stride.
var pvtReductions = [4]int{8, 4, 2, 1}

// branchEps is added to the variances of normalisations of patches and of pixels that attention goes to.
const branchEps = 1e-5

// Build adds the layers to b.
func (o PVTv2) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if o.MLPRatios == [4]int{} {
		o.MLPRatios = [4]int{8, 8, 4, 4}
	}
	b.options("PVTv2", o).least(1, "Channels", "Blocks", "Heads", "MLPRatios")
	for i, heads := range o.Heads {
		b.options("PVTv2", o).that(o.Channels[i]%max(heads, 1) == 0, "Channels",
			fmt.Sprintf("divisible by Heads, which are %v", o.Heads))
	}
	if !b.atLeast(x, 32) {
		return nil
	}
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		stage, name, by := fmt.Sprintf("stages.%d", i), "patch_embed", nn.Conv{Kernel: 7, Stride: 4}
		if i > 0 {
			name, by = stage+".downsample", nn.Conv{Kernel: 3, Stride: 2}
		}
		by.Filters, by.Bias = o.Channels[i], true
		image := b.conv(name+".proj", x, by)
		x = b.LayerNorm(name+".norm", b.rows(name, image), branchEps)
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			x = o.block(b, fmt.Sprintf("%s.blocks.%d", stage, j), x, image, i, drop)
			done++
		}
		x = b.image(stage, b.LayerNorm(stage+".norm", x, rowEps), image)
	}
	return b.Linear("head", b.pooled("head_drop", x), b.Config().Classes)
}

// block adds attention to the rows x of images, then a perceptron whose hidden layer is convolved.
func (o PVTv2) block(b layer, name string, x, image *G.Node, stage int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, c, wide := image.Shape()[0], o.Channels[stage], o.MLPRatios[stage]*o.Channels[stage]
	ratio := pvtReductions[stage]
	if o.Linear {
		ratio = 0
	}
	y := b.reducedAttention(name+".attn", b.LayerNorm(name+".norm1", x, rowEps), image, o.Heads[stage], ratio)
	x = b.rowResidual(name+".drop_path1", y, x, n, drop)
	y = b.Linear(name+".mlp.fc1", b.LayerNorm(name+".norm2", x, rowEps), wide)
	y = b.image(name+".mlp", y, image)
	if o.Linear {
		y = b.ReLU(name+".mlp.relu", y)
	}
	y = b.conv(name+".mlp.dwconv", y, nn.Conv{Filters: wide, Kernel: 3, Groups: wide, Bias: true})
	y = b.rows(name+".mlp", b.GELU(name+".mlp.act", y))
	return b.rowResidual(name+".drop_path2", b.Linear(name+".mlp.fc2", y, c), x, n, drop)
}

// reducedAttention is attention of the rows x of images to those of smaller ones: convolutions of ratio×ratio pixels
// each, or for a ratio of 0 of 7×7 means.
func (b layer) reducedAttention(name string, x, image *G.Node, heads, ratio int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := image.Shape()
	n, c := s[0], x.Shape()[1]
	queries := b.Linear(name+".q", x, c)
	kv, proj := b.linearLater(name+".kv", 2*c, c), b.linearLater(name+".proj", c, c)
	if ratio != 1 {
		y := b.image(name, x, image)
		if ratio == 0 {
			y = b.adaptivePool(name+".pool", y, 7)
		}
		ratio := max(ratio, 1)
		y = b.Conv(name+".sr", y, nn.Conv{Filters: c, Kernel: ratio, Stride: ratio, Bias: true})
		x = b.LayerNorm(name+".norm", b.rows(name+".sr", y), branchEps)
		if ratio == 1 {
			x = b.GELU(name+".act", x)
		}
	}
	both := kv(x)
	keys, values := b.Slice(name+".keys", both, 1, 0, c), b.Slice(name+".values", both, 1, c, 2*c)
	y := b.Attention(name+".attention", queries, keys, values, n, nn.Attention{Heads: heads})
	return proj(y)
}

// adaptivePool pools images x to size×size pixels, each the mean of a part, as PyTorch's AdaptiveAvgPool2d.
func (b layer) adaptivePool(name string, x *G.Node, size int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	height, width := x.Shape()[2], x.Shape()[3]
	if height == width && height%size == 0 {
		return b.meanTo(name, x, size, 0)
	}
	return b.resample(name, x, pooling(height, size), pooling(width, size))
}

// fanOutInitial gives convolutions He's weights, and linear layers a standard deviation of 0.02. Biases start at 0.
func fanOutInitial(p nn.Param) nn.Init {
	if len(p.Shape) == 4 && (strings.HasSuffix(p.Name, ".dwconv.weight") || strings.HasPrefix(p.Name, "pos_block.")) {
		return nn.HeNormal(1, p.Shape[2]*p.Shape[3])
	}
	return normal(.02)(p)
}
