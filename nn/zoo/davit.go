package zoo

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name string
		net  DaViT
	}{
		{"tiny", DaViT{Width: 96, Blocks: [4]int{1, 1, 3, 1}, Heads: 3}},
		{"small", DaViT{Width: 96, Blocks: [4]int{1, 1, 9, 1}, Heads: 3}},
		{"base", DaViT{Width: 128, Blocks: [4]int{1, 1, 9, 1}, Heads: 4}},
		{"base_fl", DaViT{Width: 128, Blocks: [4]int{1, 1, 9, 1}, Heads: 4, Window: 12, Florence: true}},
		{"huge_fl", DaViT{Width: 256, Blocks: [4]int{1, 1, 9, 1}, Heads: 8, Window: 12, Florence: true}},
	} {
		a := nn.Architecture{
			Name:          "davit_" + v.name,
			Family:        "davit",
			Summary:       "DaViT, " + v.name + ", with timm's names",
			Reference:     "Ding et al., DaViT: dual attention vision transformers, 2022",
			MinSize:       32,
			Resize:        235,
			Interpolation: bicubic,
			Block:         timmStage,
			Init:          daViTInitial,
			Build:         v.net.Build,
		}
		if size, ok := strings.CutSuffix(v.name, "_fl"); ok {
			a.Summary = "DaViT, " + size + ", Florence-2's image tower, with timm's names"
			a.Reference = "Xiao et al., Florence-2: advancing a unified representation for a variety of vision tasks, 2024"
			a.Size, a.Resize = 768, cropped(768, .95)
		}
		imageNet(a)
	}
}

// DaViT are the options of a transformer whose blocks attend among the pixels of windows, then among the channels of
// heads.
type DaViT struct {
	Width  int    // channels of the first stage; they double from one to the next, as do the heads; timm's embed_dims[0]
	Blocks [4]int // of each stage; timm's depths
	Heads  int    // of the first stage; timm's num_heads[0]
	Window int    // height and width of a window; 0 means 7; timm's window_size

	// Florence has other scores among channels and their scale by the number of pixels, overlapping convolutions between
	// stages, and other names of blocks: timm's channel_attn_v2 and named_blocks, with down_kernel_size=3.
	Florence bool
}

// daViTEps is added to the variances of layer normalisations.
const daViTEps = 1e-5

// Build adds the layers to b.
func (o DaViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if o.Window == 0 {
		o.Window = 7
	}
	b.options("DaViT", o).least(1, "Width", "Blocks", "Heads", "Window").multiple("Width", "Heads").
		that(o.Window <= 128, "Window", "at most 128")
	if !b.atLeast(x, 32) {
		return nil
	}
	x = b.conv("stem.conv", b.fill("stem", x, 4), nn.Conv{Filters: o.Width, Kernel: 7, Stride: 4, Bias: true})
	x = b.pixelNormBy("stem.norm", x, daViTEps)
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		stage, heads := fmt.Sprintf("stages.%d", i), o.Heads<<i
		if i > 0 {
			name := stage + ".downsample"
			x = b.pixelNormBy(name+".norm", x, daViTEps)
			if o.Florence {
				x = b.conv(name+".conv", x, nn.Conv{Filters: o.Width << i, Kernel: 3, Stride: 2, Bias: true})
			} else {
				x = b.Conv(name+".conv", b.fill(name, x, 2), nn.Conv{Filters: o.Width << i, Kernel: 2, Stride: 2, Bias: true})
			}
		}
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			name := fmt.Sprintf("%s.blocks.%d", stage, j)
			parts := [2]string{".0", ".1"}
			if o.Florence {
				parts = [2]string{".spatial_block", ".channel_block"}
			}
			x = o.block(b, name+parts[0], x, heads, false, drop)
			x = o.block(b, name+parts[1], x, heads, true, drop)
			done++
		}
	}
	x = b.LayerNorm("head.norm", b.GlobalAvgPool("head.global_pool", x), daViTEps)
	return b.Linear("head.fc", b.Dropout("head.drop", x, b.Config().Dropout), b.Config().Classes)
}

// fill adds zeros below and at the right of images, up to multiples of n pixels.
func (b layer) fill(name string, x *G.Node, n int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	below, right := (n-x.Shape()[2]%n)%n, (n-x.Shape()[3]%n)%n
	if below+right == 0 {
		return x
	}
	return b.Pad(name+".filled", x, make([]int, 4), []int{0, 0, below, right})
}

// block adds to images x attention, in windows or among channels, then a perceptron. Convolved neighbours are added
// before either.
func (o DaViT) block(b layer, name string, x *G.Node, heads int, channels bool, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	n, c := s[0], s[1]
	near := nn.Conv{Filters: c, Kernel: 3, Groups: c, Bias: true}
	image := b.Add(name+".cpe1", x, b.conv(name+".cpe1.proj", x, near))
	x = b.rows(name+".cpe1", image)
	y := b.LayerNorm(name+".norm1", x, daViTEps)
	if channels {
		y = o.channelAttention(b, name+".attn", y, n, heads)
	} else {
		y = b.rowWindows(name+".attn", y, nn.Windows{Height: s[2], Width: s[3], Rows: o.Window, Columns: o.Window}, heads)
	}
	x = b.image(name+".attn.joined", b.rowResidual(name+".drop_path1", y, x, n, drop), image)
	x = b.rows(name+".cpe2", b.Add(name+".cpe2", x, b.conv(name+".cpe2.proj", x, near)))
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, daViTEps), 4*c)
	return b.image(name, b.rowResidual(name+".drop_path2", y, x, n, drop), image)
}

// channelAttention is attention of the rows x of n images among the elements of heads: the scores of two are the
// product of one's keys and the other's values over all pixels, and they weigh queries. With Florence the product is of
// queries and keys, and they weigh values.
func (o DaViT) channelAttention(b layer, name string, x *G.Node, n, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	qkv := b.Linear(name+".qkv", x, 3*c)
	var parts [3]*G.Node
	for i, part := range []string{".queries", ".keys", ".values"} {
		parts[i] = b.byHead(name+part, b.Slice(name+part, qkv, 1, i*c, (i+1)*c), n, heads)
	}
	left, right, weighed, count := parts[1], parts[2], parts[0], c/heads
	if o.Florence {
		left, right, weighed, count = parts[0], parts[1], parts[2], x.Shape()[0]/n
	}
	y := b.Apply(name+".products", op.MatMul{TransA: true}, left, right)
	y = b.Map(name+".scaled", expr.Arg(0).Scale(1/math.Sqrt(float64(count))), y)
	y = b.MatMul(name+".mixed", weighed, b.Softmax(name+".softmax", y), true)
	return b.Linear(name+".proj", b.ofHeads(name+".mixture", y, n), c)
}

// convBias finds the biases of convolutions.
var convBias = regexp.MustCompile(`(?:\.conv|\.cpe[12]\.proj)\.bias$`)

// daViTInitial is the initial distribution of a parameter. Convolutions start as PyTorch's.
func daViTInitial(p nn.Param) nn.Init {
	switch {
	case len(p.Shape) == 4:
		return nn.FanInUniform(p.Shape[1:].Size())
	case convBias.MatchString(p.Name):
		return p.Init
	}
	return normal(.02)(p)
}
