package zoo

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Eva are the options of a vision transformer with rotary positions: timm's Eva, whose head takes the mean of the
// patches unless options say otherwise.
type Eva struct {
	Patch  int // height and width of a patch, which divide those of the image; timm's patch_size
	Width  int // elements of a token, divided equally among the heads; timm's embed_dim
	Heads  int // timm's num_heads
	Depth  int // blocks; 0 means 12; timm's depth
	Hidden int // elements of a block's hidden layer; 0 means 4·Width; timm's mlp_ratio·embed_dim

	// DINOv3 takes angles of rotation, and pairs, as DINOv3 does, has no trained positions, and normalises patches before
	// their mean instead of the mean: timm's rope_type="dinov3" with rope_rotate_half=True, use_abs_pos_emb=False and
	// use_fc_norm=False.
	DINOv3 bool

	// Grid is the side of the grid of patches that rotary positions are scaled to; 0 means that of the image: timm's
	// ref_feat_shape. Those of DINOv3 are scaled otherwise.
	Grid int

	// Mixed has trained frequencies of rotation by the row and by the column, for each block and pair of elements:
	// timm's rope_type="mixed". They start at random angles, and decrease as Temperature says.
	Mixed bool

	NoRope      bool    // no rotary positions: timm's use_rot_pos_emb=False
	Temperature float64 // base of the periods of rotary positions; 0 means 10,000, or 100 with DINOv3: rope_temperature
	Offset      float64 // number of the first row and column; 0 with DINOv3: timm's rope_grid_offset

	// ColumnsFirst rotates the first half of the pairs by the patch's column, the others by its row: timm's
	// rope_grid_indexing="xy".
	ColumnsFirst bool

	NoPlaces     bool // no trained positions: timm's use_abs_pos_emb=False
	NoEmbedClass bool // only tokens of patches have trained positions: timm's no_embed_class
	NoClass      bool // no class token: timm's class_token=False

	Token         bool // the head takes the class token, normalised: timm's global_pool="token"
	AttentionPool int  // heads of attention to all tokens from a trained query, for the head; 0: none; global_pool="map"
	NoNorm        bool // nothing is normalised behind the last block: timm's use_post_transformer_norm, use_fc_norm=False
	PreNorm       bool // tokens are normalised before the first block, and patches have no bias; use_pre_transformer_norm

	// PostNorm normalises results of attention and of perceptrons instead of their inputs: timm's use_post_norm.
	PostNorm bool

	Registers  int     // trained tokens behind the class token: timm's num_reg_tokens
	LayerScale float64 // initial factor of each element of a residual branch; 0 means no factors; timm's init_values

	NoQKVBias   bool // queries and values have no bias, as keys: timm's qkv_bias=False
	SeparateQKV bool // queries, keys and values have a matrix each: timm's qkv_fused=False

	BiasedKeys bool // keys have a bias, too: timm's attn_type="rope"
	NormKeys   bool // queries and keys of heads are normalised, with SeparateQKV and BiasedKeys: timm's qk_norm

	// KeyHeads are the heads of keys and values, with NormKeys, but in the first and last FullBlocks, in which all heads
	// have keys; 0 means Heads: timm's num_kv_heads.
	KeyHeads, FullBlocks int

	ScaleHeads bool // results of heads are normalised: timm's scale_attn_inner

	RMSNorm     bool // rows are divided by their root mean square instead of normalised: norm_layer=RmsNorm
	ScaleBranch bool // with LayerScale, attention has factors, perceptrons none: timm's attn_only_layer_scale

	SwiGLU      bool // the hidden layer is a product with SiLU of another's: timm's swiglu_mlp
	SeparateMLP bool // both have a matrix each, also with ScaleMLP: timm's swiglu_align_to above 0
	ScaleMLP    bool // the hidden layer is normalised: timm's scale_mlp

	// Dropout is the probability of dropping elements of tokens in Train: after their places are added, and in each block
	// after attention, in the hidden layer and after the last linear layer. It is timm's pos_drop_rate and proj_drop_rate.
	// Config has that of the head's inputs, timm's drop_rate, and DropPath, timm's drop_path_rate.
	Dropout float64

	// AttentionDropout is the probability of dropping weights of attention in Train: timm's attn_drop_rate. Training is
	// slower with it.
	AttentionDropout float64

	Eps float64 // is added to the variances of layer normalisations; 0 means 1e-6; norm_layer's eps

	tanh      bool // GELU is approximated by tanh
	noMLPBias bool // perceptrons have no biases
}

// of makes a the architecture of the net.
func (v Eva) of(a nn.Architecture) nn.Architecture {
	a.Init, a.Build, a.MinSize = evaInitial, v.Build, v.Patch
	a.Block = `^(blocks\.\d+)\.` // factors of residual branches have no layer in it
	if v.AttentionPool > 0 {
		a.Block = `^(blocks\.\d+|attn_pool)\.`
	}
	switch {
	case v.DINOv3 || v.NoPlaces:
	case v.NoEmbedClass:
		a.Positions = nn.Positions{Name: timmNames.place, Class: timmNames.class}
	default:
		a.Positions = nn.Positions{Name: timmNames.place, First: v.first()}
	}
	return a
}

// first is the number of tokens before those of patches.
func (v Eva) first() int {
	if v.NoClass {
		return v.Registers
	}
	return 1 + v.Registers
}

// Build adds the layers to b.
func (v Eva) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("Eva", v).least(1, "Patch", "Width", "Heads").
		least(0, "Depth", "Hidden", "Grid", "Registers", "LayerScale", "Eps", "KeyHeads", "FullBlocks").
		multiple("Width", "Heads").that(v.Width/max(v.Heads, 1)%4 == 0, "Width", "divisible by 4·Heads").
		that(!v.DINOv3 || v.Grid == 0, "Grid", "0 with DINOv3").
		least(0, "Temperature", "Offset", "AttentionPool").
		that(!v.DINOv3 || v.Offset == 0, "Offset", "0 with DINOv3").
		that(!v.NoRope || !v.DINOv3, "NoRope", "false with DINOv3").
		that(!v.NoClass || !v.NoEmbedClass, "NoEmbedClass", "false with NoClass").
		that(!v.Token || !v.NoClass && v.AttentionPool == 0, "Token", "false with NoClass or AttentionPool").
		that(v.Width%max(v.AttentionPool, 1) == 0, "AttentionPool", "0 or a divisor of Width").
		that(!v.NoNorm || !v.Token && v.AttentionPool == 0, "NoNorm", "false with Token or AttentionPool").
		that(!v.PostNorm || v.LayerScale == 0, "LayerScale", "0 with PostNorm").
		that(!v.BiasedKeys || !v.NoQKVBias && v.SeparateQKV == v.NormKeys, "BiasedKeys",
			"false with NoQKVBias, or SeparateQKV without NormKeys").
		that(!v.NormKeys || v.BiasedKeys, "NormKeys", "false without BiasedKeys").
		that(v.KeyHeads == 0 || v.NormKeys && v.Heads%max(v.KeyHeads, 1) == 0, "KeyHeads",
			"0, or a divisor of Heads with NormKeys").
		that(!v.Mixed || !v.DINOv3 && !v.NoRope && v.Grid == 0 && v.Offset == 0, "Mixed",
			"false with DINOv3, NoRope, Grid or Offset").
		that(!v.ScaleBranch || v.LayerScale > 0, "ScaleBranch", "false without LayerScale").
		that(!v.SeparateMLP || v.SwiGLU, "SeparateMLP", "false without SwiGLU").
		probability("Dropout", "AttentionDropout")
	v.Depth, v.Hidden, v.Eps = cmp.Or(v.Depth, 12), cmp.Or(v.Hidden, 4*v.Width), cmp.Or(v.Eps, rowEps)
	if !b.multipleOf(x, v.Patch) {
		return nil
	}
	s := x.Shape()
	n, first, height, width := s[0], v.first(), s[2]/v.Patch, s[3]/v.Patch
	tokens := first + height*width
	r := rope{height: height, width: width, first: first, heads: v.Heads, head: v.Width / v.Heads,
		centred: v.DINOv3, grid: v.Grid, temperature: v.Temperature, offset: v.Offset, columnsFirst: v.ColumnsFirst}
	if v.DINOv3 {
		r.apart = r.head / 2
	}
	if !v.NoRope && !v.Mixed {
		r.tables(b)
	}
	var all []*G.Node
	if !v.NoClass {
		all = append(all, b.Expand("class", b.embedding(timmNames.class, 1, v.Width), n, 1, v.Width))
	}
	if v.Registers > 0 {
		more := b.embedding(timmNames.registers, v.Registers, v.Width)
		all = append(all, b.Expand("registers", more, n, v.Registers, v.Width))
	}
	located := func(y *G.Node) *G.Node { return y }
	if !v.DINOv3 && !v.NoPlaces {
		places := tokens
		if v.NoEmbedClass {
			places = height * width
		}
		place := b.embedding(timmNames.place, places, v.Width)
		located = func(y *G.Node) *G.Node { return b.Map("places", expr.Arg(0).Add(expr.Arg(1)), y, place) }
	}
	y := b.Conv(timmNames.patches, x, nn.Conv{Filters: v.Width, Kernel: v.Patch, Stride: v.Patch, Bias: !v.PreNorm})
	y = b.Apply("patches", op.Tokens{}, y)
	var frequencies *G.Node
	if v.Mixed {
		frequencies = v.frequencies(b)
	}
	if v.NoEmbedClass {
		y = located(y)
	}
	if len(all) > 0 {
		y = b.Concat("tokens", 1, append(all, y)...)
	}
	if !v.NoEmbedClass {
		y = located(y)
	}
	y = b.rowDropout(timmNames.dropPlaces, b.Reshape("rows", y, n*tokens, v.Width), n, v.Dropout)
	if v.PreNorm {
		y = v.norm(b, preNorm, y)
	}
	heads := v.KeyHeads
	for i := range v.Depth {
		name := fmt.Sprintf(timmNames.block, i)
		if v.Mixed {
			r.mixed(b, name+".rope", frequencies, i, v.Depth)
		}
		if v.KeyHeads = heads; min(i, v.Depth-1-i) < v.FullBlocks || heads == 0 {
			v.KeyHeads = v.Heads
		}
		y = v.block(b, name, y, n, r, b.Config().DropPathAt(i, v.Depth))
	}
	y = v.pool(b, y, n, height, width)
	return b.Linear(timmNames.head, b.Dropout("head_drop", y, b.Config().Dropout), b.Config().Classes)
}

// pool makes the head's inputs from the rows y of n images.
func (v Eva) pool(b layer, y *G.Node, n, height, width int) *G.Node {
	first, tokens := v.first(), v.first()+height*width
	if v.AttentionPool > 0 {
		pool := ViT{Width: v.Width, Heads: v.AttentionPool, Eps: v.Eps}
		return pool.attend(b, "attn_pool", v.norm(b, timmNames.norm, y), n)
	}
	y = b.Reshape("by_image", y, n, tokens, v.Width)
	if v.Token {
		y = b.Reshape("class_rows", b.Slice("class_token", y, 1, 0, 1), n, v.Width)
		return v.norm(b, timmNames.norm, y)
	}
	if first > 0 {
		y = b.Slice("all_patches", y, 1, first, tokens)
	}
	if v.DINOv3 && !v.NoNorm {
		y = v.norm(b, timmNames.norm, y)
	}
	y = b.GlobalAvgPool("pool", b.Apply("planes", op.Planes{Height: height, Width: width}, y))
	if v.DINOv3 || v.NoNorm {
		return y
	}
	return v.norm(b, meanNorm, y)
}

// norm is a normalisation of rows.
func (v Eva) norm(b layer, name string, x *G.Node) *G.Node {
	return ViT{RMSNorm: v.RMSNorm, Eps: v.Eps}.norm(b, name, x)
}

// frequencies are those of Mixed, which have a random angle for each block and head.
func (v Eva) frequencies(b layer) *G.Node {
	half := v.Width / v.Heads / 2
	return b.AddParam(nn.Param{Name: mixedFrequencies, Shape: op.Shape{2 * v.Depth, v.Heads * half},
		Stored: op.Shape{2, v.Depth, v.Heads, half}, BiasOrNorm: true,
		Init: nn.Init{Distribution: nn.Frequencies, Scale: cmp.Or(v.Temperature, 10_000), Row: half}})
}

// mixedFrequencies is the parameter of trained frequencies.
const mixedFrequencies = "rope.freqs"

// block adds attention(norm x) to x, then perceptron(norm y) to the sum y, for the rows x of n images; with PostNorm
// norm(attention x), then norm(perceptron y). drop is the probability of dropping either in Train.
func (v Eva) block(b layer, name string, x *G.Node, n int, r rope, drop float64) *G.Node {
	gammas := []string{name + ".gamma_1", name + ".gamma_2"}
	if v.ScaleBranch {
		gammas = gammas[:1]
	}
	gamma := append(b.factors(v.LayerScale, v.Width, gammas...), nil)
	before := func(norm string, x *G.Node) *G.Node { return v.norm(b, name+norm, x) }
	after := func(_ string, x *G.Node) *G.Node { return x }
	if v.PostNorm {
		before, after = after, before
	}
	y := after(timmNames.norm1, v.attention(b, name, before(timmNames.norm1, x), n, r))
	x = b.rowResidual(name+".drop_path1", b.times(name+".scaled1", y, gamma[0]), x, n, drop)
	y = after(timmNames.norm2, v.perceptron(b, name+".mlp", before(timmNames.norm2, x), n))
	return b.rowResidual(name+".drop_path2", b.times(name+".scaled2", y, gamma[1]), x, n, drop)
}

// attention is that of a block.
func (v Eva) attention(b layer, block string, x *G.Node, n int, r rope) *G.Node {
	name := block + ".attn"
	var y *G.Node
	if v.NormKeys {
		y = v.normed(b, name, x)
	} else {
		y = b.Apply(name+".qkv", op.Linear{}, append([]*G.Node{x}, v.qkv(b, name)...)...)
	}
	if !v.NoRope {
		y = r.rotate(b, name+".rope", y, n)
	}
	y = b.selfAttention(block+".attention", y, n, nn.Attention{Heads: v.Heads, Dropout: v.AttentionDropout})
	if v.ScaleHeads {
		y = v.norm(b, name+".norm", y)
	}
	return b.rowDropout(block+timmNames.dropProj, b.Linear(block+timmNames.proj, y, v.Width), n, v.Dropout)
}

// normed are queries, keys and values of the rows x, as qkv's matrix makes them, of which each head's queries and keys
// are normalised. Neighbouring heads share keys and values if these have fewer.
func (v Eva) normed(b layer, name string, x *G.Node) *G.Node {
	var parts [3]*G.Node
	head := v.Width / v.Heads
	for i, heads := range []int{v.Heads, v.KeyHeads, v.KeyHeads} {
		parts[i] = b.Linear(name+[]string{".q_proj", ".k_proj", ".v_proj"}[i], x, heads*head)
	}
	if b.Err() != nil {
		return nil
	}
	rows := x.Shape()[0]
	for i, norm := range []string{".q_norm", ".k_norm"} {
		y := b.Reshape(name+norm+".heads", parts[i], parts[i].Shape().TotalSize()/head, head)
		parts[i] = b.Reshape(name+norm+".rows", v.norm(b, name+norm, y), parts[i].Shape()...)
	}
	for i, part := range []string{".keys", ".values"} {
		if v.KeyHeads < v.Heads { // five dimensions: devices keep values of four as images
			y := b.Reshape(name+part+".heads", parts[i+1], 1, rows, v.KeyHeads, 1, head)
			y = b.Expand(name+part, y, 1, rows, v.KeyHeads, v.Heads/v.KeyHeads, head)
			parts[i+1] = b.Reshape(name+part+".rows", y, rows, v.Width)
		}
	}
	return b.Concat(name+".qkv", 1, parts[:]...)
}

// qkv are the matrix that makes queries, keys and values, and the bias, which keys lack as a rule.
func (v Eva) qkv(b layer, name string) []*G.Node {
	c := v.Width
	if v.BiasedKeys {
		return []*G.Node{b.matrix(name+".qkv", 3*c, c), b.bias(name+".qkv", 3*c)}
	}
	bias := func(name string) *G.Node {
		if v.NoQKVBias {
			return nil
		}
		return b.vector(name, c, 0)
	}
	var weight, query, value *G.Node
	if v.SeparateQKV {
		q := b.matrix(name+".q_proj", c, c)
		query = bias(name + ".q_proj.bias")
		k := b.matrix(name+".k_proj", c, c)
		weight = b.Concat(name+".qkv.weights", 0, q, k, b.matrix(name+".v_proj", c, c))
		value = bias(name + ".v_proj.bias")
	} else {
		query, value = bias(name+".q_bias"), bias(name+".v_bias")
		weight = b.matrix(name+".qkv", 3*c, c)
	}
	if v.NoQKVBias {
		return []*G.Node{weight}
	}
	return []*G.Node{weight, b.keyless(name, query, value)}
}

// perceptron is that of a block.
func (v Eva) perceptron(b layer, name string, x *G.Node, n int) *G.Node {
	linear := func(name string, x *G.Node, out int) *G.Node {
		return ViT{NoLinearBias: v.noMLPBias}.linear(b, name, x, out)
	}
	switch {
	case v.SwiGLU:
		x = b.swiGLU(name, x, v.Hidden, v.SeparateMLP || v.ScaleMLP, linear)
	case v.tanh:
		x = b.GELUTanh(name+".gelu", linear(name+".fc1", x, v.Hidden))
	default:
		x = b.GELU(name+".gelu", linear(name+".fc1", x, v.Hidden))
	}
	x = b.rowDropout(name+".drop1", x, n, v.Dropout)
	if v.ScaleMLP {
		x = v.norm(b, name+".norm", x)
	}
	return b.rowDropout(name+".drop2", linear(name+".fc2", x, v.Width), n, v.Dropout)
}

// evaInitial is the initial distribution of a parameter, also of BEiT. The last layers of branches start the smaller
// the deeper they are.
func evaInitial(p nn.Param) nn.Init {
	deviation := .02
	switch {
	case len(p.Shape) == 4:
		return nn.FanInUniform(p.Shape[1:].Size())
	case len(p.Shape) == 1 && p.Init.Distribution == nn.Uniform && !strings.HasPrefix(p.Name, timmNames.patches):
		return nn.Init{} // a bias
	case len(p.Shape) != 2, strings.HasSuffix(p.Name, "_bias_table"), p.Name == mixedFrequencies:
		return p.Init
	case strings.HasPrefix(p.Name, timmNames.head):
		deviation *= .001
	}
	return deeper(p, nn.Init{Distribution: nn.Normal, Scale: deviation})
}

// deeper is the initial distribution x of a parameter of a block, smaller the deeper it is for the last layers of
// branches.
func deeper(p nn.Param, x nn.Init) nn.Init {
	block, rest := 0, ""
	if _, err := fmt.Sscanf(p.Name, timmNames.block+"%s", &block, &rest); err == nil &&
		(rest == timmNames.proj+".weight" || rest == timmNames.contract+".weight") {
		x.Scale /= math.Sqrt(2 * float64(block+1))
	}
	return x
}
