package zoo

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/internal/resize"
	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name      string
		net       ViT
		projector int
	}{
		{"88m", vitBase, 1024}, {"306m", vitLarge, 2048}, {"416m", vitSO400M, 5120},
	} {
		for _, projector := range []int{0, v.projector} {
			LanguageViT{Patch: 16, Width: v.net.Width, Heads: v.net.Heads, Depth: cmp.Or(v.net.Depth, 12), Hidden: v.net.Hidden,
				Grid: 48, Projector: projector}.register("qwen3_vit_"+v.name, "_merge", nn.Architecture{
				Summary:   "Qwen3's vision transformer, " + v.name[:len(v.name)-1] + " million parameters",
				Reference: "Bai et al., Qwen3-VL technical report, 2025",
				Size:      768,
			})
		}
	}
	for _, projector := range []int{0, 5120} {
		LanguageViT{Patch: 14, Width: 1024, Heads: 16, Depth: 32, Hidden: 2816, DeepSeek: true,
			Projector: projector}.register("deepseek_vit_412m", "_align", nn.Architecture{
			Summary:   "DeepSeek's vision transformer",
			Reference: "DeepSeek-AI, DeepSeek-V4.1-Flash: pushing the limits of KV cache compression, 2026",
			Size:      546,
		})
	}
}

// register registers a net whose weights are those of a language model. A net with a projector has the suffix.
func (v LanguageViT) register(name, suffix string, a nn.Architecture) {
	a.Name = name
	if v.Projector > 0 {
		a.Name += suffix
		a.Summary += ", with the projector"
	}
	a.Summary += ", with timm's names"
	a.Family, a.MinSize, a.Resize, a.Interpolation, a.Mean, a.Std = "vit", v.Patch, a.Size, bicubic, half, half
	if v.Projector > 0 && !v.DeepSeek {
		a.MinSize = 2 * v.Patch
	}
	a.Block = `^(encoder\.(?:blocks\.\d+|merger|aligner))\.`
	a.Init, a.Build = truncated(.02), v.Build
	imageNet(a)
}

// LanguageViT are the options of a language model's vision transformer, Qwen3's unless DeepSeek is set, with rotary
// positions and a head for the mean of patches: timm's Qwen3VitClassifier and DeepseekVitClassifier.
type LanguageViT struct {
	Patch  int // height and width of a patch, which divide those of the image; timm's patch_size
	Width  int // elements of a token, divided equally among the heads; timm's embed_dim
	Heads  int // timm's num_heads
	Depth  int // blocks; timm's depth
	Hidden int // elements of a block's hidden layer; 0 means 4·Width; timm's mlp_ratio·embed_dim

	// Grid is the height and width of a grid of places, which is resized to that of patches: timm's pos_embed_grid_size.
	// DeepSeek's has none.
	Grid int

	// DeepSeek divides rows by their root mean square, also behind the last block, and has SwiGLU without biases.
	DeepSeek bool

	// Projector is the number of outputs of the language model's projector, which joins the patches of squares: 2×2
	// patches, or 3×3 of DeepSeek's, zeros behind the last. 0: none. It is timm's out_features, with encoder_pool="merge"
	// or "align".
	Projector int
}

// Build adds the layers to b.
func (v LanguageViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("LanguageViT", v).least(1, "Patch", "Width", "Heads", "Depth").least(0, "Hidden", "Grid", "Projector").
		multiple("Width", "Heads").that(v.Width/max(v.Heads, 1)%4 == 0, "Width", "divisible by 4·Heads").
		that(v.DeepSeek == (v.Grid == 0), "Grid", "0 with DeepSeek, else at least 1").
		that(v.Grid <= 128, "Grid", "at most 128")
	side := v.Patch
	if v.Projector > 0 && !v.DeepSeek {
		side *= 2
	}
	if !b.multipleOf(x, side) {
		return nil
	}
	s := x.Shape()
	n, height, width := s[0], s[2]/v.Patch, s[3]/v.Patch
	blocks := Eva{Width: v.Width, Heads: v.Heads, Hidden: v.Hidden, BiasedKeys: true, RMSNorm: v.DeepSeek,
		SwiGLU: v.DeepSeek, noMLPBias: v.DeepSeek, tanh: !v.DeepSeek, Eps: rowEps}
	if v.Hidden == 0 {
		blocks.Hidden = 4 * v.Width
	}
	r := rope{height: height, width: width, heads: v.Heads, head: v.Width / v.Heads,
		apart: v.Width / v.Heads / 2}
	r.tables(b)
	var place *G.Node
	if v.Grid > 0 {
		place = b.Reshape("places.rows", b.embedding("encoder.pos_embed", v.Grid*v.Grid, v.Width), v.Grid*v.Grid, v.Width)
		place = b.resized("places", place, v.Grid, height, width, resize.Line{Corners: true})
	}
	y := b.Conv("encoder.patch_embed.proj", x, nn.Conv{Filters: v.Width, Kernel: v.Patch, Stride: v.Patch, Bias: true})
	y = b.Apply("patches", op.Tokens{}, y)
	if place != nil {
		y = b.Map("located", expr.Arg(0).Add(expr.Arg(1)), y, place)
	}
	y = b.Reshape("rows", y, n*height*width, v.Width)
	for i := range v.Depth {
		y = blocks.block(b, fmt.Sprintf("encoder.blocks.%d", i), y, n, r, b.Config().DropPathAt(i, v.Depth))
	}
	switch {
	case v.DeepSeek:
		y = b.RMSNorm("encoder.norm", y, rowEps)
	case v.Projector > 0:
		y = b.LayerNorm("encoder.merger.norm", y, rowEps)
	}
	if v.Projector > 0 {
		y = v.project(b, y, n, height, width)
	}
	if b.Err() != nil {
		return nil
	}
	c := y.Shape()[1]
	y = b.Reshape("mean.rows", b.Reduce("mean", b.Reshape("by_image", y, n, y.Shape()[0]/n, c), op.Mean, 1), n, c)
	y = b.plainNorm("norm", y, v.DeepSeek)
	return b.Linear("head", b.Dropout("head_drop", y, b.Config().Dropout), b.Config().Classes)
}

// project joins the rows of squares of patches: elements of a patch follow each other, or patches of an element for
// DeepSeek's.
func (v LanguageViT) project(b layer, y *G.Node, n, height, width int) *G.Node {
	name, k, hidden := "encoder.merger", 2, 4*v.Width
	if v.DeepSeek {
		name, k, hidden = "encoder.aligner", 3, v.Projector
	}
	w := nn.Windows{Height: height, Width: width, Rows: k, Columns: k}
	y = b.Windows(name+".squares", y, w)
	if v.DeepSeek {
		y = b.Reshape(name+".apart", y, n*w.Count(), k*k, v.Width)
		y = b.Permute(name+".by_element", y, 0, 2, 1)
	}
	y = b.Reshape(name+".joined", y, n*w.Count(), k*k*v.Width)
	return b.Linear(name+".fc2", b.GELU(name+".act", b.Linear(name+".fc1", y, hidden)), v.Projector)
}

// plainNorm normalises rows without parameters, by their root mean square or as layers do.
func (b layer) plainNorm(name string, x *G.Node, rootMeanSquare bool) *G.Node {
	if b.Err() != nil {
		return nil
	}
	filled := func(name string, v float64) *G.Node {
		c := x.Shape()[1]
		return b.Constant(name, op.Tensor{Shape: op.Shape{c}, Data: slices.Repeat([]float64{v}, c)})
	}
	if rootMeanSquare {
		return b.Apply(name, op.RMSNorm{Eps: rowEps}, x, filled(name+".ones", 1))
	}
	return b.Apply(name, op.LayerNorm{Eps: rowEps}, x, filled(name+".ones", 1), filled(name+".zeros", 0))
}
