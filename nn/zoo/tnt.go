package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	small := TNT{Patch: 16, Width: 384, Inner: 24, Heads: 6, InnerHeads: 4, Depth: 12}
	legacy := small
	legacy.Legacy = true
	for _, v := range []struct {
		name, summary string
		net           TNT
	}{
		{"s_legacy", "small, patches of convolved images", legacy},
		{"s", "small", small},
		{"b", "base", TNT{Patch: 16, Width: 640, Inner: 40, Heads: 10, InnerHeads: 4, Depth: 12}},
	} {
		imageNet(nn.Architecture{
			Name:          "tnt_" + v.name + "_patch16_224",
			Family:        "tnt",
			Summary:       "TNT, " + v.summary + ", with timm's names",
			Reference:     "Han et al., Transformer in transformer, 2021",
			MinSize:       16,
			Resize:        cropped(224, .9),
			Interpolation: bicubic,
			Mean:          half,
			Std:           half,
			Block:         `^(blocks\.\d+)\.`,
			Positions:     nn.Positions{Name: "patch_pos", First: 1},
			Init:          truncated(.02),
			Build:         v.net.Build,
		})
	}
}

// TNT are the options of a vision transformer with another one inside: in a block the pixels of each patch attend to
// each other and are added to their patch, then patches and a class token do.
type TNT struct {
	Patch      int // height and width of a patch, a multiple of 4 that divides those of the image; timm's patch_size
	Width      int // elements of a patch's token, divided equally among Heads; timm's embed_dim
	Inner      int // elements of a pixel, divided equally among InnerHeads; timm's inner_dim
	Heads      int // timm's num_heads_outer
	InnerHeads int // timm's num_heads_inner
	Depth      int // blocks; timm's depth

	// Legacy convolves images before they are cut into patches, and normalises each pixel before a patch's linear layer,
	// but nothing behind it: timm's legacy.
	Legacy bool
}

// tntEps is added to the variances of layer normalisations.
const tntEps = 1e-5

// tntStride is that of the first convolution, in pixels of an image.
const tntStride = 4

// Build adds the layers to b.
func (o TNT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("TNT", o).least(1, "Patch", "Width", "Inner", "Heads", "InnerHeads", "Depth").
		multiple("Width", "Heads").multiple("Inner", "InnerHeads").
		that(o.Patch%tntStride == 0, "Patch", fmt.Sprintf("divisible by %d", tntStride))
	if !b.multipleOf(x, o.Patch) {
		return nil
	}
	s := x.Shape()
	t := tntSizes{images: s[0], patches: s[2] / o.Patch * (s[3] / o.Patch), side: o.Patch / tntStride}
	class, place := b.embedding("cls_token", 1, o.Width), b.embedding("patch_pos", 1+t.patches, o.Width)
	pixels := o.pixels(b, x, t)
	y := b.Reshape("patches.pixels", pixels, t.images*t.patches, t.side*t.side*o.Inner)
	y = b.Linear("proj", b.LayerNorm("norm1_proj", y, tntEps), o.Width)
	y = b.Reshape("patches", b.LayerNorm("norm2_proj", y, tntEps), t.images, t.patches, o.Width)
	y = b.Concat("tokens", 1, b.Expand("class", class, t.images, 1, o.Width), y)
	y = b.Map("places", expr.Arg(0).Add(expr.Arg(1)), y, place)
	y = b.Reshape("rows", y, t.images*(1+t.patches), o.Width)
	for i := range o.Depth {
		pixels, y = o.block(b, fmt.Sprintf("blocks.%d", i), pixels, y, t, b.Config().DropPathAt(i, o.Depth))
	}
	y = b.Slice("first", b.Reshape("by_image", y, t.images, 1+t.patches, o.Width), 1, 0, 1)
	y = b.LayerNorm("norm", b.Reshape("first.rows", y, t.images, o.Width), tntEps)
	return b.Linear("head", b.Dropout("head_drop", y, b.Config().Dropout), b.Config().Classes)
}

// tntSizes count images, an image's patches, and the pixels in a row of a patch.
type tntSizes struct{ images, patches, side int }

// pixels are rows of the pixels of patches, one patch after the other.
func (o TNT) pixels(b layer, x *G.Node, t tntSizes) *G.Node {
	place := b.imagePlaces("pixel_pos", o.Inner, t.side, t.side, true)
	conv := nn.Conv{Filters: o.Inner, Kernel: 7, Stride: tntStride, Bias: true}
	if o.Legacy {
		x = b.partition("pixel_embed", b.conv("pixel_embed.proj", x, conv), t.side, false)
	} else if b.Err() == nil {
		s := x.Shape()
		x = b.Reshape("pixel_embed.cut", x, s[0], s[1], s[2]/o.Patch, o.Patch, s[3]/o.Patch, o.Patch)
		x = b.Permute("pixel_embed.patches", x, 0, 2, 4, 1, 3, 5)
		x = b.Reshape("pixel_embed.images", x, t.images*t.patches, s[1], o.Patch, o.Patch)
		x = b.rows("pixel_embed", b.conv("pixel_embed.proj", x, conv))
	}
	x = b.Reshape("pixel_embed.by_patch", x, t.images*t.patches, t.side*t.side, o.Inner)
	x = b.Map("pixel_places", expr.Arg(0).Add(expr.Arg(1)), x, b.Apply("pixel_pos.rows", op.Tokens{}, place))
	return b.Reshape("pixels", x, t.images*t.patches*t.side*t.side, o.Inner)
}

// block changes the rows of pixels, then those of a class token and patches of each image. Pixels are dropped by patch,
// as timm does.
func (o TNT) block(b layer, name string, pixels, x *G.Node, t tntSizes, drop float64) (newPixels, newX *G.Node) {
	windows := t.images * t.patches
	y := o.attention(b, name+".attn_in", b.LayerNorm(name+".norm_in", pixels, tntEps), windows, o.InnerHeads)
	pixels = b.Add(name+".add_in", b.partDropout(name+".drop_path1", y, t.images, t.patches, drop), pixels)
	y = b.perceptron(name+".mlp_in", b.LayerNorm(name+".norm_mlp_in", pixels, tntEps), 4*o.Inner)
	pixels = b.Add(name+".add_mlp_in", b.partDropout(name+".drop_path2", y, t.images, t.patches, drop), pixels)

	all := t.side * t.side * o.Inner
	if o.Legacy {
		y = b.Reshape(name+".pixels", b.LayerNorm(name+".norm1_proj", pixels, tntEps), windows, all)
		y = b.Linear(name+".proj", y, o.Width)
	} else {
		y = b.LayerNorm(name+".norm1_proj", b.Reshape(name+".pixels", pixels, windows, all), tntEps)
		y = b.LayerNorm(name+".norm2_proj", b.unbiased(name+".proj", y, o.Width), tntEps)
	}
	y = b.Reshape(name+".by_image", y, t.images, t.patches, o.Width)
	y = b.Pad(name+".patches", y, []int{0, 1, 0}, []int{0, 0, 0}) // the class token's
	x = b.Add(name+".add_pixels", b.Reshape(name+".rows", y, t.images*(1+t.patches), o.Width), x)

	y = o.attention(b, name+".attn_out", b.LayerNorm(name+".norm_out", x, tntEps), t.images, o.Heads)
	x = b.rowResidual(name+".drop_path3", y, x, t.images, drop)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm_mlp", x, tntEps), 4*o.Width)
	return pixels, b.rowResidual(name+".drop_path4", y, x, t.images, drop)
}

// attention is that among the rows x of n images or patches.
func (o TNT) attention(b layer, name string, x *G.Node, n, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	weights := b.Concat(name+".weights", 0, b.matrix(name+".qk", 2*c, c), b.matrix(name+".v", c, c))
	qkv := b.Apply(name+".qkv", op.Linear{}, x, weights)
	return b.Linear(name+".proj", b.selfAttention(name+".attention", qkv, n, nn.Attention{Heads: heads}), c)
}
