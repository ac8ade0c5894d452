package zoo

import (
	"fmt"
	"math"
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
		net  Hiera
	}{
		{"tiny", Hiera{Width: 96, Heads: 1, Blocks: [4]int{1, 2, 7, 2}}},
		{"small", Hiera{Width: 96, Heads: 1, Blocks: [4]int{1, 2, 11, 2}}},
		{"base", Hiera{Width: 96, Heads: 1, Blocks: [4]int{2, 3, 16, 3}}},
		{"base_plus", Hiera{Width: 112, Heads: 2, Blocks: [4]int{2, 3, 16, 3}}},
		{"large", Hiera{Width: 144, Heads: 2, Blocks: [4]int{2, 6, 36, 4}}},
		{"huge", Hiera{Width: 256, Heads: 4, Blocks: [4]int{2, 6, 36, 4}}},
		{"small_abswin", Hiera{Width: 96, Heads: 1, Blocks: [4]int{1, 2, 11, 2}, Grid: 16, LayerScale: 1e-5,
			PoolShortcut: true}},
	} {
		a := nn.Architecture{
			Name:          "hiera_" + v.name + "_224",
			Family:        "hiera",
			Summary:       "Hiera, " + strings.ReplaceAll(v.name, "_", " ") + ", with timm's names",
			Reference:     "Ryali et al., Hiera: a hierarchical vision transformer without the bells-and-whistles, 2023",
			MinSize:       32,
			Resize:        248,
			Interpolation: bicubic,
			Positions:     nn.Positions{Name: "pos_embed"},
			Init:          v.net.Initial,
			Build:         v.net.Build,
		}
		if v.net.Grid > 0 {
			a.Name, a.Size, a.Resize, a.Positions = "hiera_"+v.name+"_256", 256, 269, nn.Positions{}
		}
		imageNet(a)
	}
}

// Hiera are the options of a transformer whose stages pool tokens. Tokens attend in units of 32×32 pixels, those of the
// last two stages to all. Images are multiples of 32 pixels.
type Hiera struct {
	Width  int    // elements of a token in the first stage; they double, as do the heads, at each stage; timm's embed_dim
	Heads  int    // of the first stage; timm's num_heads
	Blocks [4]int // of each stage; timm's stages

	// Grid is the height and width of a grid of places, which is resized to that of tokens, beside which places in a unit
	// are added: timm's global_pos_size with abs_win_pos_embed. 0: each token has a place.
	Grid int

	LayerScale   float64 // initial factor of each element of a branch; 0: none; timm's init_values
	PoolShortcut bool    // shortcuts that double the elements are maxima and means; timm's use_expand_proj=False
}

// hieraUnit is the height and width of a unit in tokens of the first stage.
const hieraUnit = 8

// Build adds the layers to b.
func (o Hiera) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("Hiera", o).least(1, "Width", "Heads", "Blocks").least(0, "Grid", "LayerScale").multiple("Width", "Heads").
		that(o.Grid <= 128, "Grid", "at most 128")
	if !b.multipleOf(x, 32) {
		return nil
	}
	n, height, width := x.Shape()[0], x.Shape()[2]/4, x.Shape()[3]/4
	place := o.places(b, height, width)
	x = b.Conv("patch_embed.proj", x, nn.Conv{Filters: o.Width, Kernel: 7, Stride: 4, Pad: 3, Bias: true})
	x = b.Map("places", expr.Arg(0).Add(expr.Arg(1)), b.Apply("patches", op.Tokens{}, x), place)
	// Units follow each other. In a unit, the first of the places in blocks of 2×2 tokens follow each other, so that
	// pooling is that of quarters.
	units := n * height * width / (hieraUnit * hieraUnit)
	x = b.Reshape("units.cut", x, n, height/hieraUnit, 2, 2, 2, width/hieraUnit, 2, 2, 2, o.Width)
	x = b.Reshape("units", b.Permute("units.apart", x, 0, 1, 5, 4, 8, 3, 7, 2, 6, 9), n*height*width, o.Width)
	done, all := 0, sum(o.Blocks[:])
	for i, count := range o.Blocks {
		for j := range count {
			h := hieraBlock{width: o.Width << i, heads: o.Heads << i, images: n, units: units}
			h.drop = b.Config().DropPathAt(done, all)
			h.pools = i > 0 && j == 0
			h.within = i < 2 || i == 2 && j == 0
			x = o.block(b, fmt.Sprintf("blocks.%d", done), x, h)
			done++
		}
	}
	if b.Err() != nil {
		return nil
	}
	x = b.Reshape("head.tokens", x, n, x.Shape()[0]/n, o.Width<<3)
	x = b.Reshape("head.mean", b.Reduce("head.global_pool", x, op.Mean, 1), n, o.Width<<3)
	x = b.Dropout("head.drop", b.LayerNorm("head.norm", x, rowEps), b.Config().Dropout)
	return b.Linear("head.fc", x, b.Config().Classes)
}

// places are those of height×width tokens, [1,tokens,elements].
func (o Hiera) places(b layer, height, width int) *G.Node {
	if o.Grid == 0 {
		return b.embedding("pos_embed", height*width, o.Width)
	}
	return windowPlaces{width: o.Width, side: o.Grid, window: hieraUnit, name: "pos_embed_win", decayed: true,
		by: resize.Line{Cubic: true, Antialias: true}}.build(b, height, width)
}

// hieraBlock are the shapes of a block.
type hieraBlock struct {
	width, heads  int // of results
	images, units int
	within, pools bool
	drop          float64
}

// block adds attention to the rows x of images, then a perceptron.
func (o Hiera) block(b layer, name string, x *G.Node, h hieraBlock) *G.Node {
	if b.Err() != nil {
		return nil
	}
	pool := func(name string, x *G.Node, by op.Reduction) *G.Node {
		if b.Err() != nil || !h.pools {
			return x
		}
		rows, c := x.Shape()[0], x.Shape()[1]
		x = b.Reshape(name+".quarters", x, h.units, 4, rows/h.units/4*c)
		return b.Reshape(name+".rows", b.Reduce(name, x, by, 1), rows/4, c)
	}
	y := b.LayerNorm(name+".norm1", x, rowEps)
	switch {
	case h.pools && o.PoolShortcut:
		x = b.Concat(name+".doubled", 1, pool(name+".max", x, op.Max), pool(name+".mean", x, op.Mean))
	case h.pools:
		x = pool(name+".max", b.Linear(name+".proj", y, h.width), op.Max)
	}
	sequences := h.images
	if h.within {
		sequences = h.units
	}
	y = b.Linear(name+".attn.qkv", y, 3*h.width)
	if h.pools {
		part := func(part string, k int) *G.Node { return b.Slice(name+part, y, 1, k*h.width, (k+1)*h.width) }
		queries := pool(name+".attn.pool", part(".attn.queries", 0), op.Max)
		y = b.Attention(name+".attention", queries, part(".attn.keys", 1), part(".attn.values", 2), sequences,
			nn.Attention{Heads: h.heads})
	} else {
		y = b.selfAttention(name+".attention", y, sequences, nn.Attention{Heads: h.heads})
	}
	y = b.gammas(name+".ls1", b.Linear(name+".attn.proj", y, h.width), o.LayerScale)
	x = b.rowResidual(name+".drop_path1", y, x, h.images, h.drop)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, rowEps), 4*h.width)
	return b.rowResidual(name+".drop_path2", b.gammas(name+".ls2", y, o.LayerScale), x, h.images, h.drop)
}

// Initial is the initial distribution of a parameter, for Architecture.Init. Nets with factors of branches start as
// timm's weight_init jax says.
func (o Hiera) Initial(p nn.Param) nn.Init {
	var block int
	by := 1.
	if _, err := fmt.Sscanf(p.Name, "blocks.%d.", &block); err == nil &&
		(strings.HasSuffix(p.Name, ".attn.proj.weight") || strings.HasSuffix(p.Name, ".mlp.fc2.weight")) {
		by = math.Sqrt(2 * float64(block+1))
	}
	jax, bias := o.LayerScale > 0, p.Init.Distribution == nn.Uniform && len(p.Shape) == 1
	switch {
	case strings.HasPrefix(p.Name, "pos_embed"):
		return p.Init
	case strings.HasPrefix(p.Name, "head.fc."):
		return nn.Init{}
	case len(p.Shape) == 4 && jax:
		return nn.Init{Distribution: nn.Normal, Scale: 1 / math.Sqrt(float64(p.Shape[1:].Size()))}
	case len(p.Shape) == 4:
		return nn.Init{Distribution: nn.Normal, Scale: .02}
	case len(p.Shape) == 2 && jax: // Glorot's
		return nn.Init{Distribution: nn.Uniform, Scale: math.Sqrt(6/float64(p.Shape[0]+p.Shape[1])) / by}
	case len(p.Shape) == 2:
		return nn.Init{Distribution: nn.Normal, Scale: .02 / by}
	case bias && jax && strings.Contains(p.Name, ".mlp."):
		return nn.Init{Distribution: nn.Normal, Scale: 1e-6}
	case bias && jax:
		return nn.Init{}
	case bias && p.Name == "patch_embed.proj.bias":
		return p.Init
	case bias:
		return nn.Init{Distribution: nn.Constant, Scale: .02}
	}
	return p.Init
}
