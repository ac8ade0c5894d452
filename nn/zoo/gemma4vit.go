package zoo

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	v := GemmaViT{Patch: 16, Width: 1152, Heads: 16, Depth: 27, Hidden: 4304, Places: 10240, Standard: true}
	imageNet(nn.Architecture{
		Name:          "gemma4_vit_570m",
		Family:        "vit",
		Summary:       "Gemma 4's vision transformer, 570 million parameters, with timm's names",
		Reference:     "Gemma Team, Gemma 4 technical report, 2026",
		MinSize:       16,
		Size:          768,
		Resize:        768,
		Interpolation: bicubic,
		Mean:          zeros3,
		Std:           ones3,
		Block:         `^(encoder\.blocks\.\d+)\.`,
		Init:          gemmaInitial,
		Build:         v.Build,
	})
}

// GemmaViT are the options of Gemma 4's vision transformer, with a head for the mean of patches: timm's
// Gemma4VitClassifier.
type GemmaViT struct {
	Patch    int  // height and width of a patch, which divide those of the image; timm's patch_size
	Width    int  // elements of a token, divided equally among the heads; timm's embed_dim
	Heads    int  // timm's num_heads
	Depth    int  // blocks; timm's depth
	Hidden   int  // elements of a block's hidden layer; timm's intermediate_size
	Places   int  // the most patches of a row or column; timm's position_embedding_size
	Standard bool // the state dict has two vectors that a language model takes, not the head: timm's standardize
}

// Build adds the layers to b.
func (v GemmaViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o := b.options("GemmaViT", v).least(1, "Patch", "Width", "Heads", "Depth", "Hidden", "Places").
		multiple("Width", "Heads").that(v.Width/max(v.Heads, 1)%4 == 0, "Width", "divisible by 4·Heads")
	if !b.multipleOf(x, v.Patch) {
		return nil
	}
	s := x.Shape()
	n, height, width := s[0], s[2]/v.Patch, s[3]/v.Patch
	if !o.that(max(height, width) <= v.Places, "Places", "at least the rows and columns of patches").ok() {
		return nil
	}
	if v.Standard {
		b.Buffer("encoder.std_bias", make([]float64, v.Width), v.Width)
		b.Buffer("encoder.std_scale", slices.Repeat([]float64{1}, v.Width), v.Width)
	}
	r := rope{height: height, width: width, heads: v.Heads, head: v.Width / v.Heads, apart: v.Width / v.Heads / 4,
		temperature: 100, columnsFirst: true}
	r.tables(b)
	const table = "encoder.patch_embed.position_embedding_table"
	places := b.AddParam(nn.Param{Name: table, Shape: op.Shape{2 * v.Places, v.Width},
		Stored: op.Shape{2, v.Places, v.Width}, BiasOrNorm: true})
	place := b.Map(table+".sum", expr.Arg(0).Add(expr.Arg(1)),
		b.Reshape(table+".columns", b.Slice(table+".across", places, 0, 0, width), 1, width, v.Width),
		b.Reshape(table+".rows", b.Slice(table+".down", places, 0, v.Places, v.Places+height), height, 1, v.Width))
	y := v.patches(b, b.Map("scaled", expr.Arg(0).Shift(-.5).Scale(2), x))
	y = b.Map("located", expr.Arg(0).Add(expr.Arg(1)), b.Reshape("patches", y, n, height*width, v.Width),
		b.Reshape(table+".all", place, 1, height*width, v.Width))
	y = b.Reshape("rows", y, n*height*width, v.Width)
	for i := range v.Depth {
		y = v.block(b, fmt.Sprintf("encoder.blocks.%d", i), y, n, r, b.Config().DropPathAt(i, v.Depth))
	}
	y = b.Reduce("mean", b.Reshape("by_image", y, n, height*width, v.Width), op.Mean, 1)
	y = b.plainNorm("norm", b.Reshape("mean.rows", y, n, v.Width), true)
	return b.Linear("head", b.Dropout("head_drop", y, b.Config().Dropout), b.Config().Classes)
}

// patches are the products of a matrix and the patches of images x, channel by channel.
func (v GemmaViT) patches(b layer, x *G.Node) *G.Node {
	const name = "encoder.patch_embed.input_proj"
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	c, pixels := s[1], v.Patch*v.Patch
	weight := b.matrix(name, v.Width, c*pixels)
	weight = b.Permute(name+".by_pixel", b.Reshape(name+".channels", weight, v.Width, c, pixels), 0, 2, 1)
	x = b.Windows(name+".pixels", b.rows(name, x), nn.Windows{Height: s[2], Width: s[3], Rows: v.Patch, Columns: v.Patch})
	x = b.Reshape(name+".patches", x, s[0]*s[2]*s[3]/pixels, pixels*c)
	return b.Apply(name, op.Linear{}, x, b.Reshape(name+".matrix", weight, v.Width, pixels*c))
}

// block adds attention to the rows x of n images, then a perceptron, each between two normalisations. drop is the
// probability of dropping either in Train.
func (v GemmaViT) block(b layer, name string, x *G.Node, n int, r rope, drop float64) *G.Node {
	y := v.attention(b, name+".attn", b.RMSNorm(name+".norm1", x, rowEps), n, r)
	x = b.rowResidual(name+".drop_path1", b.RMSNorm(name+".norm2", y, rowEps), x, n, drop)
	y = b.RMSNorm(name+".norm3", x, rowEps)
	gate := b.GELUTanh(name+".mlp.act", v.linear(b, name+".mlp.gate_proj", y, v.Hidden))
	y = b.Scale(name+".mlp.gated", v.linear(b, name+".mlp.up_proj", y, v.Hidden), gate)
	y = b.RMSNorm(name+".norm4", v.linear(b, name+".mlp.down_proj", y, v.Width), rowEps)
	return b.rowResidual(name+".drop_path2", y, x, n, drop)
}

// linear is a linear layer without biases.
func (GemmaViT) linear(b layer, name string, x *G.Node, out int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	return b.Apply(name, op.Linear{}, x, b.matrix(name+".linear", out, x.Shape()[1]))
}

// attention is that of a block: heads of queries, keys and values are normalised, values without factors.
func (v GemmaViT) attention(b layer, name string, x *G.Node, n int, r rope) *G.Node {
	head := v.Width / v.Heads
	var parts [3]*G.Node
	for i, part := range []string{".q_proj", ".k_proj", ".v_proj"} {
		parts[i] = v.linear(b, name+part, x, v.Width)
	}
	proj := b.matrix(name+".o_proj.linear", v.Width, v.Width)
	if b.Err() != nil {
		return nil
	}
	rows := x.Shape()[0]
	for i, part := range []string{".q_norm", ".k_norm", ".v_norm"} {
		y := b.Reshape(name+part+".heads", parts[i], rows*v.Heads, head)
		if i < 2 {
			y = b.RMSNorm(name+part, y, rowEps)
		} else {
			y = b.plainNorm(name+part, y, true)
		}
		parts[i] = b.Reshape(name+part+".rows", y, rows, v.Width)
	}
	y := r.rotate(b, name+".rope", b.Concat(name+".qkv", 1, parts[:]...), n)
	y = b.selfAttention(name+".attention", y, n, nn.Attention{Heads: v.Heads, Scale: 1})
	return b.Apply(name+".o_proj", op.Linear{}, y, proj)
}

// gemmaInitial is the initial distribution of a parameter. Normal numbers are cut at two standard deviations.
func gemmaInitial(p nn.Param) nn.Init {
	switch {
	case p.Name == "head.weight":
		return p.Init
	case p.Name == "head.bias":
		return nn.Init{}
	}
	if len(p.Shape) == 2 {
		return nn.Init{Distribution: nn.Normal, Scale: .02 * cutNormal}
	}
	return p.Init
}
