package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/internal/resize"
	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name string
		net  CrossViT
	}{
		{"tiny", CrossViT{Width: [2]int{96, 192}, Blocks: 4, Heads: 3, MLPRatio: 4}},
		{"small", CrossViT{Width: [2]int{192, 384}, Blocks: 4, Heads: 6, MLPRatio: 4}},
		{"base", CrossViT{Width: [2]int{384, 768}, Blocks: 4, Heads: 12, MLPRatio: 4}},
		{"9", CrossViT{Width: [2]int{128, 256}, Blocks: 3, Heads: 4, MLPRatio: 3}},
		{"15", CrossViT{Width: [2]int{192, 384}, Blocks: 5, Heads: 6, MLPRatio: 3}},
		{"18", CrossViT{Width: [2]int{224, 448}, Blocks: 6, Heads: 7, MLPRatio: 3}},
	} {
		v.net.Depth, v.net.Scale = 3, 224./240
		v.net.register(v.name, 240)
		if v.net.MLPRatio == 3 {
			v.net.Convs = true
			v.net.register(v.name+"_dagger", 240)
		}
		if v.net.Blocks > 4 {
			v.net.Scale = 384. / 408
			v.net.register(v.name+"_dagger", 408)
		}
	}
}

// register registers the net.
func (o CrossViT) register(name string, size int) {
	a := nn.Architecture{
		Name:          fmt.Sprintf("crossvit_%s_%d", name, size),
		Family:        "crossvit",
		Summary:       "CrossViT-" + strings.ReplaceAll(name, "_dagger", "†") + ", with timm's names",
		Reference:     "Chen et al., CrossViT: cross-attention multi-scale vision transformer for image classification, 2021",
		Size:          size,
		MinSize:       size / 10,
		Resize:        size,
		Interpolation: bicubic,
		Block:         `^(blocks\.\d+\.blocks\.\d\.\d+)\.`,
		Heads:         []string{"head.0", "head.1"},
		Init:          crossViTInitial,
		Build:         o.Build,
	}
	if size == 240 {
		a.Resize = 274
	}
	imageNet(a)
}

// CrossViT are the options of two vision transformers, of patches of 12×12 and of 16×16 pixels, whose class tokens
// attend to the other's patches. The second takes a smaller image.
type CrossViT struct {
	Width    [2]int  // elements of a token of either, divided equally among the heads; timm's embed_dim
	Depth    int     // times that they exchange; the length of timm's depth
	Blocks   int     // of the second before each of them; the first has one; timm's depth[0][1]
	Heads    int     // timm's num_heads
	MLPRatio int     // elements of a hidden layer for each of a token; timm's mlp_ratio
	Convs    bool    // patches are made by several convolutions; timm's multi_conv
	Scale    float64 // height and width of the second's image by those of the first's; timm's img_scale
}

// crossPatches are the heights and widths of patches.
var crossPatches = [2]int{12, 16}

// fits reports whether patches divide the images of this height and width, and gives that of the second.
func (o CrossViT) fits(size int) (small int, ok bool) {
	small = int(float64(size) * o.Scale)
	return small, size%crossPatches[0] == 0 && small%crossPatches[1] == 0 && small > 0
}

// Build adds the layers to b.
func (o CrossViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("CrossViT", o).least(1, "Width", "Depth", "Blocks", "Heads", "MLPRatio").multiple("Width", "Heads").
		that(o.Scale > 0 && o.Scale <= 1, "Scale", "above 0 and at most 1").
		that(!o.Convs || o.Width[0]%4 == 0 && o.Width[1]%4 == 0, "Width", "divisible by 4 with Convs")
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	size, n := s[2], s[0]
	small, ok := o.fits(size)
	if !ok || s[3] != size {
		fit := size + 1
		for _, ok := o.fits(fit); !ok && fit < 1<<16; _, ok = o.fits(fit) {
			fit++
		}
		b.Fail(fmt.Errorf("images of %d×%d pixels: patches of 12×12 and 16×16 do not fill the two images: "+
			"choose an input size of %d", s[2], s[3], fit))
		return nil
	}
	var places, class, rows [2]*G.Node
	var tokens [2]int
	for i, side := range []int{size / crossPatches[0], small / crossPatches[1]} {
		tokens[i] = 1 + side*side
		places[i] = b.embedding(fmt.Sprintf("pos_embed_%d", i), tokens[i], o.Width[i])
		class[i] = b.embedding(fmt.Sprintf("cls_token_%d", i), 1, o.Width[i])
	}
	for i := range rows {
		name, image := fmt.Sprintf("patch_embed.%d.proj", i), x
		if i == 1 && small != size {
			m := lineMatrix(resize.Line{Cubic: true}, size, small)
			image = b.resample("small", x, m, m)
		}
		y := o.patches(b, name, image, i)
		first := b.Expand(name+".class", class[i], n, 1, o.Width[i])
		y = b.Concat(name+".all", 1, first, b.Apply(name+".tokens", op.Tokens{}, y))
		y = b.Map(name+".places", expr.Arg(0).Add(expr.Arg(1)), y, places[i])
		rows[i] = b.Reshape(name+".rows", y, n*tokens[i], o.Width[i])
	}
	for k := range o.Depth {
		rows = o.exchange(b, fmt.Sprintf("blocks.%d", k), rows, n, tokens, k)
	}
	var first, logits [2]*G.Node
	for i := range rows {
		name := fmt.Sprintf("norm.%d", i)
		first[i] = b.LayerNorm(name, b.token(name, rows[i], n), rowEps)
	}
	for i := range rows {
		name := fmt.Sprintf("head.%d", i)
		logits[i] = b.Linear(name, b.Dropout(name+".drop", first[i], b.Config().Dropout), b.Config().Classes)
	}
	return b.Map("mean", meanOfTwo, logits[0], logits[1])
}

// patches convolves the patches of images.
func (o CrossViT) patches(b layer, name string, x *G.Node, i int) *G.Node {
	c := o.Width[i]
	if !o.Convs {
		return b.Conv(name, x, nn.Conv{Filters: c, Kernel: crossPatches[i], Stride: crossPatches[i], Bias: true})
	}
	x = b.ReLU(name+".1", b.Conv(name+".0", x, nn.Conv{Filters: c / 4, Kernel: 7, Stride: 4, Pad: 3, Bias: true}))
	second, third := nn.Conv{Kernel: 3, Stride: 2, Pad: 1}, nn.Conv{Kernel: 3, Stride: 2, Pad: 1}
	if i == 0 {
		second, third = nn.Conv{Kernel: 3, Stride: 3}, nn.Conv{Kernel: 3, Pad: 1}
	}
	second.Filters, second.Bias, third.Filters, third.Bias = c/2, true, c, true
	return b.Conv(name+".4", b.ReLU(name+".3", b.Conv(name+".2", x, second)), third)
}

// token are the first rows of n sequences, one each.
func (b layer) token(name string, rows *G.Node, n int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := rows.Shape()
	y := b.Reshape(name+".sequences", rows, n, s[0]/n, s[1])
	return b.Reshape(name+".class_rows", b.Slice(name+".class", y, 1, 0, 1), n, s[1])
}

// behind are the rows of n sequences with other first rows.
func (b layer) behind(name string, class, rows *G.Node, n int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := rows.Shape()
	t, c := s[0]/n, s[1]
	y := b.Slice(name+".patches", b.Reshape(name+".others", rows, n, t, c), 1, 1, t)
	y = b.Concat(name+".joined", 1, b.Reshape(name+".first", class, n, 1, c), y)
	return b.Reshape(name+".joined_rows", y, n*t, c)
}

// exchange are the blocks of both transformers, after which the class token of either attends to the other's patches.
func (o CrossViT) exchange(b layer, name string, rows [2]*G.Node, n int, tokens [2]int, k int) [2]*G.Node {
	drop := func(i int) float64 { return b.Config().DropPathAt(k*o.Blocks+i, o.Depth*o.Blocks) }
	for i := range rows {
		count := 1
		if i == 1 {
			count = o.Blocks
		}
		for j := range count {
			rows[i] = b.plainBlock(fmt.Sprintf("%s.blocks.%d.%d", name, i, j), rows[i], n, o.Heads, o.MLPRatio, drop(j))
		}
	}
	// translate makes a class token one of the other transformer.
	translate := func(name string, x *G.Node, out int) *G.Node {
		return b.Linear(name+".2", b.GELU(name+".1", b.LayerNorm(name+".0", x, rowEps)), out)
	}
	var class [2]*G.Node
	for i := range rows {
		name := fmt.Sprintf("%s.projs.%d", name, i)
		class[i] = translate(name, b.token(name, rows[i], n), o.Width[1-i])
	}
	for i := range rows {
		name := fmt.Sprintf("%s.fusion.%d", name, i)
		class[i] = o.fuse(b, name, class[i], rows[1-i], n, drop(o.Blocks-1))
	}
	for i := range rows {
		name := fmt.Sprintf("%s.revert_projs.%d", name, i)
		rows[i] = b.behind(name, translate(name, class[i], o.Width[i]), rows[i], n)
	}
	return rows
}

// fuse adds to class tokens attention to themselves and to patches, whose first rows are left out.
func (o CrossViT) fuse(b layer, name string, class, rows *G.Node, n int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := class.Shape()[1]
	y := b.LayerNorm(name+".norm1", b.behind(name, class, rows, n), rowEps)
	q := b.Linear(name+".attn.wq", b.token(name+".attn", y, n), c)
	k, v := b.Linear(name+".attn.wk", y, c), b.Linear(name+".attn.wv", y, c)
	y = b.Linear(name+".attn.proj", b.Attention(name+".attention", q, k, v, n, nn.Attention{Heads: o.Heads}), c)
	return b.pathAdd(name, y, class, drop)
}

// crossViTInitial is the initial distribution of a parameter. Convolutions start as PyTorch's.
func crossViTInitial(p nn.Param) nn.Init {
	switch {
	case len(p.Shape) == 4:
		return nn.FanInUniform(p.Shape[1:].Size())
	case strings.HasPrefix(p.Name, "patch_embed."):
		return p.Init
	}
	return normal(.02)(p)
}
