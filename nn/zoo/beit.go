package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

func init() {
	base := BEiT{Patch: 16, Width: 768, Heads: 12, LayerScale: .1}
	large := BEiT{Patch: 16, Width: 1024, Heads: 16, Depth: 24, LayerScale: 1e-5}
	for _, size := range []struct {
		name         string
		size, resize int
		net          BEiT
	}{
		{"base", 224, 248, base}, {"base", 384, 384, base},
		{"large", 224, 248, large}, {"large", 384, 384, large}, {"large", 512, 512, large},
	} {
		a := size.net.of(nn.Architecture{
			Name:          fmt.Sprintf("beit_%s_patch16_%d", size.name, size.size),
			Family:        "beit",
			Summary:       "BEiT, " + size.name + ", with timm's names",
			Reference:     "Bao et al., BEiT: BERT pre-training of image transformers, 2022",
			Size:          size.size,
			MinSize:       16,
			Mean:          half,
			Std:           half,
			Resize:        size.resize,
			Interpolation: bicubic,
		})
		imageNet(a)
		if size.size > 224 {
			continue
		}
		size.net.LayerScale = 1e-5
		a.Name = fmt.Sprintf("beitv2_%s_patch16_%d", size.name, size.size)
		a.Summary = "BEiT v2, " + size.name + ", with timm's names"
		a.Reference = "Peng et al., BEiT v2: masked image modeling with vector-quantized visual tokenizers, 2022"
		a.Mean, a.Std, a.Build = nil, nil, size.net.Build
		if size.name == "large" {
			a.Resize = 235
		}
		imageNet(a)
	}
}

// BEiT are the options of a vision transformer whose tokens know their places by biases of attention, as timm's with
// use_rel_pos_bias. The head takes the mean of the patches.
type BEiT struct {
	Patch  int // height and width of a patch, which divide those of the image; timm's patch_size
	Width  int // elements of a token, divided equally among the heads; timm's embed_dim
	Heads  int // timm's num_heads
	Depth  int // blocks; 0 means 12; timm's depth
	Hidden int // elements of a block's hidden layer; 0 means 4·Width; timm's mlp_ratio·embed_dim

	LayerScale float64 // initial factor of each element of a residual branch; 0 means no factors; timm's init_values

	// Dropout is the probability of dropping elements of tokens in Train: before the first block, and in each after
	// attention, the GELU and the last linear layer: timm's pos_drop_rate and proj_drop_rate. Config has that of the
	// head's inputs, drop_rate, and DropPath, drop_path_rate.
	Dropout float64

	// AttentionDropout is the probability of dropping weights of attention in Train: timm's attn_drop_rate. Training is
	// slower with it.
	AttentionDropout float64
}

// of makes a the architecture of the net.
func (o BEiT) of(a nn.Architecture) nn.Architecture {
	a.Init, a.Build, a.Block = evaInitial, o.Build, `^(blocks\.\d+)\.`
	return a
}

// mostPatches is the most patches of an image: all their scores are kept.
const mostPatches = 1 << 14

// Build adds the layers to b.
func (o BEiT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o.Depth, o.Hidden = cmp.Or(o.Depth, 12), cmp.Or(o.Hidden, 4*o.Width)
	b.options("BEiT", o).least(1, "Patch", "Width", "Heads").least(0, "Depth", "Hidden", "LayerScale").
		multiple("Width", "Heads").probability("Dropout", "AttentionDropout")
	if !b.multipleOf(x, o.Patch) {
		return nil
	}
	s := x.Shape()
	n, height, width := s[0], s[2]/o.Patch, s[3]/o.Patch
	if height*width > mostPatches {
		b.Fail(fmt.Errorf("images of %d×%d patches: there must be at most %d patches", height, width, mostPatches))
		return nil
	}
	tokens := 1 + height*width
	class := b.embedding("cls_token", 1, o.Width)
	y := b.Conv("patch_embed.proj", x, nn.Conv{Filters: o.Width, Kernel: o.Patch, Stride: o.Patch, Bias: true})
	y = b.Concat("tokens", 1, b.Expand("class", class, n, 1, o.Width), b.Apply("patches", op.Tokens{}, y))
	y = b.rowDropout("pos_drop", b.Reshape("rows", y, n*tokens, o.Width), n, o.Dropout)
	p := beitPlaces{n: n, tokens: tokens, offsets: (2*height-1)*(2*width-1) + 3,
		index: b.Constant("offsets", classOffsets(height, width))}
	for i := range o.Depth {
		y = o.block(b, fmt.Sprintf("blocks.%d", i), y, p, b.Config().DropPathAt(i, o.Depth))
	}
	y = b.Slice("places", b.Reshape("by_image", y, n, tokens, o.Width), 1, 1, tokens)
	y = b.GlobalAvgPool("pool", b.Apply("planes", op.Planes{Height: height, Width: width}, y))
	y = b.Dropout("dropout", b.LayerNorm("fc_norm", y, rowEps), b.Config().Dropout)
	return b.Linear("head", y, b.Config().Classes)
}

// beitPlaces are the tokens of n images, and the offsets between them.
type beitPlaces struct {
	n, tokens, offsets int
	index              *G.Node // of the offsets of pairs
}

// block adds attention(norm x) to x, then perceptron(norm y) to the sum y. drop is the probability of dropping either
// in Train.
func (o BEiT) block(b layer, name string, x *G.Node, p beitPlaces, drop float64) *G.Node {
	gamma := b.factors(o.LayerScale, o.Width, name+".gamma_1", name+".gamma_2")
	y := b.LayerNorm(name+".norm1", x, rowEps)
	queries, values := b.vector(name+".attn.q_bias", o.Width, 0), b.vector(name+".attn.v_bias", o.Width, 0)
	table := b.AddParam(nn.Param{Name: name + ".attn.relative_position_bias_table", Shape: op.Shape{p.offsets, o.Heads},
		BiasOrNorm: true})
	bias := b.Permute(name+".by_head", b.Gather(name+".by_pair", table, 0, p.index), 1, 0)
	bias = b.Reshape(name+".bias", bias, o.Heads, p.tokens, p.tokens)
	qkv := b.Apply(name+".attn.qkv", op.Linear{}, y, b.matrix(name+".attn.qkv", 3*o.Width, o.Width),
		b.keyless(name+".attn", queries, values))
	y = b.selfAttention(name+".attention", qkv, p.n, nn.Attention{Heads: o.Heads, Dropout: o.AttentionDropout}, bias)
	y = b.rowDropout(name+".attn.proj_drop", b.Linear(name+".attn.proj", y, o.Width), p.n, o.Dropout)
	x = b.rowResidual(name+".drop_path1", b.times(name+".scaled1", y, gamma[0]), x, p.n, drop)
	y = b.GELU(name+".mlp.act", b.Linear(name+".mlp.fc1", b.LayerNorm(name+".norm2", x, rowEps), o.Hidden))
	y = b.Linear(name+".mlp.fc2", b.rowDropout(name+".mlp.drop1", y, p.n, o.Dropout), o.Width)
	y = b.times(name+".scaled2", b.rowDropout(name+".mlp.drop2", y, p.n, o.Dropout), gamma[1])
	return b.rowResidual(name+".drop_path2", y, x, p.n, drop)
}

// classOffsets numbers the offsets between a class token and the tokens of patches. The last three are those from the
// class token to a patch, from a patch to it, and to itself.
func classOffsets(height, width int) op.Tensor {
	patches := nn.Windows{Height: height, Width: width, Rows: height, Columns: width}.Offsets().Data.([]int32)
	tokens, offsets := 1+height*width, int32((2*height-1)*(2*width-1))
	index := make([]int32, tokens*tokens)
	for i := range index {
		switch from, to := i/tokens, i%tokens; {
		case from == 0 && to == 0:
			index[i] = offsets + 2
		case from == 0:
			index[i] = offsets
		case to == 0:
			index[i] = offsets + 1
		default:
			index[i] = patches[(from-1)*(tokens-1)+to-1]
		}
	}
	return op.Tensor{Shape: op.Shape{len(index)}, Data: index}
}
