package zoo

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name  string
		net   VOLO
		sizes []int
	}{
		{"d1", VOLO{Blocks: [4]int{4, 4, 8, 2}, Width: [2]int{192, 384}, Heads: [2]int{6, 12}}, []int{224, 384}},
		{"d2", VOLO{Blocks: [4]int{6, 4, 10, 4}, Width: [2]int{256, 512}, Heads: [2]int{8, 16}}, []int{224, 384}},
		{"d3", VOLO{Blocks: [4]int{8, 8, 16, 4}, Width: [2]int{256, 512}, Heads: [2]int{8, 16}}, []int{224, 448}},
		{"d4", VOLO{Blocks: [4]int{8, 8, 16, 4}, Width: [2]int{384, 768}, Heads: [2]int{12, 16}}, []int{224, 448}},
		{"d5", VOLO{Blocks: [4]int{12, 12, 20, 4}, Width: [2]int{384, 768}, Heads: [2]int{12, 16}, MLPRatio: 4, Stem: 128},
			[]int{224, 448, 512}},
	} {
		for _, size := range v.sizes {
			a := nn.Architecture{
				Name:          fmt.Sprintf("volo_%s_%d", v.name, size),
				Family:        "volo",
				Summary:       "VOLO-" + v.name + ", with timm's names",
				Reference:     "Yuan et al., VOLO: vision outlooker for visual recognition, 2021",
				Size:          size,
				MinSize:       32,
				Resize:        size, // timm crops some from smaller images, which it fills up
				Interpolation: bicubic,
				Block:         `^(patch_embed|network\.[0-4](?:\.\d+)?|post_network\.\d)\.`,
				Heads:         []string{"head", "aux_head"},
				Init:          truncated(.02),
				Build:         v.net.Build,
			}
			if size == 224 {
				a.Resize = cropped(size, .96)
			}
			imageNet(a)
		}
	}
}

// VOLO are the options of a net whose first stage weighs the neighbours of a pixel by that pixel alone, without keys.
// Three stages of attention follow, then a class token that attends to the patches. The logits are those of the class
// token and half the largest of the patches', in Train as in Eval; timm's forward_train, which mixes tokens of images,
// is not here. Weights fit images of one size.
type VOLO struct {
	Blocks   [4]int // of each stage; timm's layers
	Width    [2]int // elements of a token in the first stage, and in the others; timm's embed_dims
	Heads    [2]int // of them; timm's num_heads
	Stem     int    // channels of the first convolutions; 0 means 64; timm's stem_hidden_dim
	MLPRatio int    // elements of a hidden layer for each of a token; 0 means 3; timm's mlp_ratio
}

// voloEps is added to the variances of layer normalisations.
const voloEps = 1e-5

// Build adds the layers to b.
func (o VOLO) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o.Stem, o.MLPRatio = cmp.Or(o.Stem, 64), cmp.Or(o.MLPRatio, 3)
	b.options("VOLO", o).least(1, "Blocks", "Width", "Heads", "Stem", "MLPRatio").
		that(o.Width[0]%max(o.Heads[0], 1)+o.Width[1]%max(o.Heads[1], 1) == 0, "Width", "divisible by Heads")
	if !b.atLeast(x, 32) || !b.multipleOf(x, 16) {
		return nil
	}
	n, height, width := x.Shape()[0], x.Shape()[2]/16, x.Shape()[3]/16
	wide := o.Width[1]
	place := b.tokenPlaces(height, width, wide, .02)
	class := b.embedding("cls_token", 1, wide)
	for i, c := range []nn.Conv{{Kernel: 7, Stride: 2}, {Kernel: 3}, {Kernel: 3}} {
		c.Filters = o.Stem
		names := [2]string{fmt.Sprintf("patch_embed.conv.%d", 3*i), fmt.Sprintf("patch_embed.conv.%d", 3*i+1)}
		x = b.convNorm(names, x, c, (*nn.Builder).ReLU)
	}
	image := b.Conv("patch_embed.proj", x, nn.Conv{Filters: o.Width[0], Kernel: 4, Stride: 4, Bias: true})
	x = b.rows("patch_embed", image)
	for i := range o.Blocks[0] {
		x = o.outlooker(b, fmt.Sprintf("network.0.%d", i), x, image)
	}
	x = b.Conv("network.1.proj", b.image("network.1", x, image), nn.Conv{Filters: wide, Kernel: 2, Stride: 2, Bias: true})
	x = b.Reshape("by_image", b.rows("network.1.patches", x), n, height*width, wide)
	x = b.Map("places", expr.Arg(0).Add(expr.Arg(1)), x, place)
	x = b.Reshape("rows", x, n*height*width, wide)
	done, all := o.Blocks[0], sum(o.Blocks[:])
	for i, blocks := range o.Blocks[1:] {
		for j := range blocks {
			x = o.transformer(b, fmt.Sprintf("network.%d.%d", 2+i, j), x, n, b.Config().DropPathAt(done, all))
			done++
		}
	}
	y := b.Reshape("class.rows", b.Expand("class", class, n, 1, wide), n, wide)
	for i := range classDepth {
		y = o.classBlock(b, fmt.Sprintf("post_network.%d", i), y, x)
	}
	return o.head(b, y, x, n)
}

// tokenPlaces adds places of height×width patches, which the state dict has as an image.
func (b layer) tokenPlaces(height, width, c int, deviation float64) *G.Node {
	return b.AddParam(nn.Param{Name: "pos_embed", Shape: op.Shape{1, height * width, c},
		Stored: op.Shape{1, height, width, c}, Init: nn.Init{Distribution: nn.Normal, Scale: deviation}, BiasOrNorm: true})
}

// head makes the logits of the rows of class tokens, one an image, and of the patches.
func (o VOLO) head(b layer, class, patches *G.Node, n int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	classes, drop := b.Config().Classes, b.Config().Dropout
	aux := b.linearLater("aux_head", classes, o.Width[1])
	norm := b.sharedNorm("norm", o.Width[1], voloEps)
	y := b.Linear("head", b.Dropout("head_drop", norm("", class), drop), classes)
	x := aux(b.rowDropout("head_drop.patches", norm(".patches", patches), n, drop))
	if b.Err() != nil {
		return nil
	}
	x = b.Reduce("aux_head.max", b.Reshape("aux_head.images", x, n, x.Shape()[0]/n, classes), op.Max, 1)
	return b.Map("logits", expr.Arg(0).Add(expr.Arg(1).Scale(.5)), y, b.Reshape("aux_head.rows", x, n, classes))
}

// perceptron adds to rows x, of n images, those of a perceptron.
func (o VOLO) perceptron(b layer, name string, x *G.Node, n int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	y := b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, voloEps), o.MLPRatio*x.Shape()[1])
	return b.rowResidual(name+".drop_path2", y, x, n, drop)
}

// outlooker adds to the rows x of images the weighted neighbours, then a perceptron.
func (o VOLO) outlooker(b layer, name string, x, image *G.Node) *G.Node {
	y := b.outlook(name+".attn", b.LayerNorm(name+".norm1", x, voloEps), image, o.Heads[0])
	return o.perceptron(b, name, b.Add(name+".add", y, x), image.Shape()[0], 0)
}

// transformer adds attention among the rows x of n images, then a perceptron.
func (o VOLO) transformer(b layer, name string, x *G.Node, n int, drop float64) *G.Node {
	wide := o.Width[1]
	y := b.unbiased(name+".attn.qkv", b.LayerNorm(name+".norm1", x, voloEps), 3*wide)
	y = b.Linear(name+".attn.proj", b.selfAttention(name+".attention", y, n, nn.Attention{Heads: o.Heads[1]}), wide)
	return o.perceptron(b, name, b.rowResidual(name+".drop_path1", y, x, n, drop), n, drop)
}

// classBlock adds to class tokens their attention to themselves and the patches, then a perceptron.
func (o VOLO) classBlock(b layer, name string, class, patches *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, c, attn := class.Shape()[0], o.Width[1], name+".attn"
	tokens := 1 + patches.Shape()[0]/n
	norm := b.sharedNorm(name+".norm1", c, voloEps)
	token := norm("", class)
	all := b.Concat(name+".tokens", 1, b.Reshape(name+".class", token, n, 1, c),
		b.Reshape(name+".patches", norm(".patches", patches), n, tokens-1, c))
	kv := b.unbiased(attn+".kv", b.Reshape(name+".rows", all, n*tokens, c), 2*c)
	q := b.unbiased(attn+".q", token, c)
	y := b.Attention(name+".attention", q, b.Slice(attn+".keys", kv, 1, 0, c), b.Slice(attn+".values", kv, 1, c, 2*c), n,
		nn.Attention{Heads: o.Heads[1]})
	return o.perceptron(b, name, b.Add(name+".add", b.Linear(attn+".proj", y, c), class), n, 0)
}

// The height and width of outlook's windows, and of a pixel's in the grid of windows.
const outlookKernel, outlookStride = 3, 2

// outlook is VOLO's attention for the rows x of images like the given one. Around each second pixel, of each second
// row, lies a window of 3×3 pixels. A linear layer of the mean of 2×2 pixels makes the scores between the pixels of a
// window. What a pixel gets in several windows is added up.
func (b layer) outlook(name string, x, image *G.Node, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	const k = outlookKernel * outlookKernel
	n, h, w := image.Shape()[0], image.Shape()[2]/outlookStride, image.Shape()[3]/outlookStride
	c := x.Shape()[1]
	d, windows := c/heads, n*h*w*heads
	v := b.unbiased(name+".v", x, c)
	v = b.threes(name+".v.by_row", b.Reshape(name+".v.rows", v, 1, n, h, 2, 2*w*c))
	v = b.threes(name+".v.by_column", b.Reshape(name+".v.columns", v, 1, n*h*3, w, 2, c))
	v = b.Permute(name+".v.windows", b.Reshape(name+".v.cut", v, n*h, 3, w, 3, heads, d), 0, 2, 4, 1, 3, 5)
	y := b.Reduce(name+".pool", b.Reshape(name+".squares", x, n*h, 2, w, 2, c), op.Mean, 1, 3)
	y = b.Linear(name+".attn", b.Reshape(name+".pool.rows", y, n*h*w, c), heads*k*k)
	y = b.Map(name+".scaled", expr.Arg(0).Scale(1/math.Sqrt(float64(d))), b.Reshape(name+".scores", y, windows, k, k))
	y = b.MatMul(name+".mixed", b.Softmax(name+".softmax", y), b.Reshape(name+".v.by_head", v, windows, k, d), false)
	y = b.Permute(name+".rows", b.Reshape(name+".mixed.cut", y, n*h, w, heads, 3, 3, d), 0, 3, 1, 4, 2, 5)
	y = b.twos(name+".by_column", b.Reshape(name+".columns", y, 1, n*h*3, w, 3, c))
	y = b.twos(name+".by_row", b.Reshape(name+".lines", y, 1, n, h, 3, 2*w*c))
	return b.Linear(name+".proj", b.Reshape(name+".folded", y, 4*n*h*w, c), c)
}

// threes makes of pairs x [1,a,n,2,c], along an axis of 2·n pixels, [1,a,n,3,c]: each pair behind the pixel before it,
// zeros at first.
func (b layer) threes(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	second := b.Slice(name+".second", x, 3, 1, 2)
	before := b.Slice(name+".all_before", second, 2, 0, x.Shape()[2]-1)
	before = b.Pad(name+".before", before, []int{0, 0, 1, 0, 0}, make([]int, 5))
	return b.Concat(name, 3, before, x)
}

// twos is the transpose of threes: it makes [1,a,n,2,c] of x [1,a,n,3,c] by sums.
func (b layer) twos(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	before := b.Slice(name+".all_before", b.Slice(name+".first", x, 3, 0, 1), 2, 1, x.Shape()[2])
	before = b.Pad(name+".before", before, make([]int, 5), []int{0, 0, 1, 0, 0})
	second := b.Add(name+".sum", b.Slice(name+".third", x, 3, 2, 3), before)
	return b.Concat(name, 3, b.Slice(name+".second", x, 3, 1, 2), second)
}
