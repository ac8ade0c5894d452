package zoo

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	large := ViTamin{Stem: 160, Channels: [2]int{160, 320}, Width: 1024, Heads: 16, Depth: 31}
	xlarge := ViTamin{Stem: 192, Channels: [2]int{192, 384}, Width: 1152, Heads: 16, Depth: 32, NoPlaces: true}
	for _, v := range []struct {
		name  string
		net   ViTamin
		sizes []int
	}{
		{"small", ViTamin{Stem: 64, Channels: [2]int{64, 128}, Width: 384, Heads: 6, Depth: 14}, []int{224}},
		{"base", ViTamin{Stem: 128, Channels: [2]int{128, 256}, Width: 768, Heads: 12, Depth: 14}, []int{224}},
		{"large", large, []int{224, 256, 336, 384}},
		{"large2", large, []int{224, 256, 336, 384}},
		{"xlarge", xlarge, []int{256, 336, 384}},
	} {
		for _, size := range v.sizes {
			a := nn.Architecture{
				Name:          fmt.Sprintf("vitamin_%s_%d", v.name, size),
				Family:        "vitamin",
				Summary:       "ViTamin, " + v.name + ", with timm's names",
				Reference:     "Chen et al., ViTamin: designing scalable vision models in the vision-language era, 2024",
				Size:          size,
				MinSize:       16,
				Mean:          clipMean,
				Std:           clipStd,
				Resize:        size,
				Interpolation: bicubic,
				Block:         `^(patch_embed\.backbone\.(?:stages\.\d\.\d+|stem)|blocks\.\d+)\.`,
				Init:          v.net.initial,
				Build:         v.net.Build,
			}
			if size == 224 {
				a.Resize = 248
			}
			a.Positions = v.net.vit().positions()
			imageNet(a)
		}
	}
}

// ViTamin are the options of a vision transformer whose patches come from two stages of convolutions. The head takes
// the normalised mean of the patches.
type ViTamin struct {
	Stem     int    // channels of the stem; timm's stem_width
	Channels [2]int // of the stages of convolutions; timm's embed_dim
	Blocks   [2]int // of these stages; 0 means 2 and 4; timm's depths
	Width    int    // elements of a token, divided equally among the heads; timm's embed_dim
	Heads    int    // timm's num_heads
	Depth    int    // blocks of attention; timm's depth
	NoPlaces bool   // patches have no trained places: timm's pos_embed="none"
}

// vitaminStride is the extent of a patch in pixels.
const vitaminStride = 16

// vit are the options of the transformer.
func (o ViTamin) vit() ViT {
	return ViT{Patch: vitaminStride, Width: o.Width, Heads: o.Heads, Depth: o.Depth, Mean: true, NormMean: true,
		NoPlaces: o.NoPlaces, embed: o.stem, vitamin: &o}
}

// Build adds the layers to b.
func (o ViTamin) Build(builder *nn.Builder, x *G.Node) *G.Node {
	o.Blocks = [2]int{cmp.Or(o.Blocks[0], 2), cmp.Or(o.Blocks[1], 4)}
	if !(layer{builder}).options("ViTamin", o).least(1, "Stem", "Channels", "Blocks", "Width", "Heads", "Depth").
		multiple("Width", "Heads").ok() {
		return nil
	}
	return o.vit().Build(builder, x)
}

// stem makes patches of images x.
func (o ViTamin) stem(b layer, x *G.Node) *G.Node {
	const name = "patch_embed.backbone"
	x = b.conv(name+".stem.conv1", x, nn.Conv{Filters: o.Stem, Kernel: 3, Stride: 2, Bias: true})
	x = b.GELU(name+".stem.norm1.act", b.pixelNorm(name+".stem.norm1", x))
	x = b.conv(name+".stem.conv2", x, nn.Conv{Filters: o.Stem, Kernel: 3, Bias: true})
	for i, blocks := range o.Blocks {
		for j := range blocks {
			x = o.block(b, fmt.Sprintf("%s.stages.%d.%d", name, i, j), x, o.Channels[i], j == 0)
		}
	}
	proj := b.convLater(name+".pool.proj", o.Channels[1], nn.Conv{Filters: o.Width, Kernel: 3, Stride: 2, Bias: true})
	return proj(b.pixelNorm(name+".pool.norm", x))
}

// block adds convolutions of 1×1, 3×3, depthwise, and 1×1 pixels to x. The first of a stage halves the extents.
func (o ViTamin) block(b layer, name string, x *G.Node, out int, halves bool) *G.Node {
	if b.Err() != nil {
		return nil
	}
	shortcut, stride := x, 1
	if halves {
		stride = 2
		mean, by := b.meansWithin(name+".shortcut", x, stride)
		shortcut = b.Scale(name+".shortcut.mean", mean, by)
		if x.Shape()[1] != out {
			shortcut = b.conv(name+".shortcut.expand", shortcut, nn.Conv{Filters: out, Kernel: 1, Bias: true})
		}
	}
	wide := divisible(4 * float64(out))
	x = b.conv(name+".conv1_1x1", b.pixelNorm(name+".pre_norm", x), nn.Conv{Filters: wide, Kernel: 1, Bias: true})
	x = b.GELU(name+".act1", x)
	x = b.conv(name+".conv2_kxk", x, nn.Conv{Filters: wide, Kernel: 3, Stride: stride, Groups: wide, Bias: true})
	x = b.conv(name+".conv3_1x1", b.GELU(name+".act2", x), nn.Conv{Filters: out, Kernel: 1, Bias: true})
	return b.Add(name+".add", x, shortcut)
}

// perceptron normalises rows x, and has a product of two layers, of which one has a GELU, for its hidden layer.
func (o ViTamin) perceptron(b layer, name string, x *G.Node) *G.Node {
	x = b.LayerNorm(name+".norm", x, rowEps)
	gate := b.GELU(name+".act", b.Linear(name+".w0", x, 2*o.Width))
	x = b.Map(name+".product", expr.Arg(0).Mul(expr.Arg(1)), gate, b.Linear(name+".w1", x, 2*o.Width))
	return b.Linear(name+".w2", x, o.Width)
}

// initial is the initial distribution of a parameter.
func (o ViTamin) initial(p nn.Param) nn.Init {
	switch {
	case strings.Contains(p.Name, ".pool.proj."), strings.Contains(p.Name, "norm"):
		return torchInit(p)
	case strings.HasSuffix(p.Name, ".conv2_kxk.weight"):
		return nn.Init{Distribution: nn.Normal, Scale: math.Sqrt(2. / 9)}
	case strings.HasPrefix(p.Name, "patch_embed.") && len(p.Shape) == 4:
		return nn.HeNormal(p.Shape[0], p.Shape[2]*p.Shape[3])
	}
	return o.vit().initial(p)
}
