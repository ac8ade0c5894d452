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
		name string
		net  XCiT
	}{
		{"nano_12", XCiT{Width: 128, Heads: 4, Depth: 12, LayerScale: 1, ClassNorm: true}},
		{"tiny_12", XCiT{Width: 192, Heads: 4, Depth: 12, LayerScale: 1}},
		{"small_12", XCiT{Width: 384, Heads: 8, Depth: 12, LayerScale: 1}},
		{"tiny_24", XCiT{Width: 192, Heads: 4, Depth: 24, LayerScale: 1e-5}},
		{"small_24", XCiT{Width: 384, Heads: 8, Depth: 24, LayerScale: 1e-5}},
		{"medium_24", XCiT{Width: 512, Heads: 8, Depth: 24, LayerScale: 1e-5}},
		{"large_24", XCiT{Width: 768, Heads: 16, Depth: 24, LayerScale: 1e-5}},
	} {
		for _, patch := range []int{16, 8} {
			v.net.Patch = patch
			for _, size := range []int{224, 384} {
				imageNet(nn.Architecture{
					Name:          fmt.Sprintf("xcit_%s_p%d_%d", v.name, patch, size),
					Family:        "xcit",
					Summary:       fmt.Sprintf("XCiT-%s/%d, with timm's names", v.name, patch),
					Reference:     "El-Nouby et al., XCiT: cross-covariance image transformers, 2021",
					Size:          size,
					MinSize:       patch,
					Resize:        size,
					Interpolation: bicubic,
					Block:         `^(patch_embed|(?:cls_attn_)?blocks\.\d+)\.`,
					Init:          classAttentionInitial,
					Build:         v.net.Build,
				})
			}
		}
	}
}

// XCiT are the options of a vision transformer whose attention is among the elements of a head.
type XCiT struct {
	Patch      int     // 8 or 16: height and width of a patch; timm's patch_size
	Width      int     // elements of a token, divided equally among the heads; timm's embed_dim
	Heads      int     // timm's num_heads
	Depth      int     // blocks among patches; timm's depth
	LayerScale float64 // initial factor of each element of a branch; 0 means 1; timm's eta
	ClassNorm  bool    // blocks of the class token normalise that alone before the perceptron: timm's tokens_norm=False
}

// Build adds the layers to b.
func (o XCiT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("XCiT", o).least(1, "Patch", "Width", "Heads", "Depth").least(0, "LayerScale").multiple("Width", "Heads").
		that(o.Patch == 8 || o.Patch == 16, "Patch", "8 or 16").
		that(o.Width%max(o.Patch/2, 1) == 0, "Width", fmt.Sprintf("divisible by %d", o.Patch/2))
	o.LayerScale = cmp.Or(o.LayerScale, 1)
	if !b.multipleOf(x, o.Patch) {
		return nil
	}
	n, class := x.Shape()[0], b.embedding("cls_token", 1, o.Width)
	last := nn.Activation((*nn.Builder).GELU)
	for i, narrow := 0, o.Patch/2; narrow > 0; i, narrow = i+2, narrow/2 {
		if narrow == 1 {
			last = nil
		}
		x = b.norm(fmt.Sprintf("patch_embed.proj.%d", i), x, nn.Conv{Filters: o.Width / narrow, Kernel: 3, Stride: 2}, last)
	}
	if b.Err() != nil {
		return nil
	}
	image := x
	x = b.rows("rows", b.Map("places", expr.Arg(0).Add(expr.Arg(1)), x, o.places(b, x)))
	for i := range o.Depth {
		x = o.block(b, fmt.Sprintf("blocks.%d", i), x, image)
	}
	y := b.Reshape("class.rows", b.Expand("class", class, n, 1, o.Width), n, o.Width)
	for i := range classDepth {
		y, x = o.classBlock(b, fmt.Sprintf("cls_attn_blocks.%d", i), y, x, i == classDepth-1)
	}
	y = b.LayerNorm("norm", y, rowEps)
	return b.Linear("head", b.Dropout("head_drop", y, b.Config().Dropout), b.Config().Classes)
}

// places are those of the pixels of x, by a convolution whose weights timm exempts from weight decay, too.
func (o XCiT) places(b layer, x *G.Node) *G.Node {
	const name = "pos_embed.token_projection"
	param := func(part string, shape ...int) *G.Node {
		return b.AddParam(nn.Param{Name: name + part, Shape: shape, Init: nn.FanInUniform(2 * wavesEach), BiasOrNorm: true})
	}
	weight := param(".weight", o.Width, 2*wavesEach, 1, 1)
	point := op.Conv2D{Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	return b.Apply(name, point, b.Constant("pos_embed.waves", waves(x.Shape()[2], x.Shape()[3])), weight,
		param(".bias", o.Width))
}

// wavesEach is the number of waves by row, and by column.
const wavesEach = 32

// waves are an image [1,2·wavesEach,height,width] of sines and cosines by row, then by column: the places of patches.
func waves(height, width int) op.Tensor {
	const each = wavesEach
	x := op.New(op.T(op.Float64, 1, 2*each, height, width))
	data := x.Data.([]float64)
	at := func(i, n, k int) float64 {
		angle := float64(i+1) / (float64(n) + 1e-6) * 2 * math.Pi / math.Pow(10000, float64(k/2*2)/each)
		if k%2 == 1 {
			return math.Cos(angle)
		}
		return math.Sin(angle)
	}
	for k := range each {
		for i := range height {
			for j := range width {
				data[(k*height+i)*width+j] = at(i, height, k)
				data[((each+k)*height+i)*width+j] = at(j, width, k)
			}
		}
	}
	return x
}

// block adds to the rows x of images attention among elements, then a convolution of neighbours, then a perceptron.
func (o XCiT) block(b layer, name string, x, image *G.Node) *G.Node {
	n, drop := image.Shape()[0], b.Config().DropPath
	gamma := b.factors(o.LayerScale, o.Width, name+".gamma1", name+".gamma3", name+".gamma2")
	y := b.covariance(name+".attn", b.LayerNorm(name+".norm1", x, rowEps), n, o.Heads)
	x = b.rowResidual(name+".drop_path1", b.Scale(name+".scaled1", y, gamma[0]), x, n, drop)

	local, by := name+".local_mp", nn.Conv{Filters: o.Width, Kernel: 3, Groups: o.Width, Bias: true}
	y = b.image(local, b.LayerNorm(name+".norm3", x, rowEps), image)
	y = b.BatchNorm(local+".bn", b.GELU(local+".act", b.conv(local+".conv1", y, by)), 1)
	y = b.rows(local, b.conv(local+".conv2", y, by))
	x = b.rowResidual(name+".drop_path3", b.Scale(name+".scaled3", y, gamma[1]), x, n, drop)

	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, rowEps), 4*o.Width)
	return b.rowResidual(name+".drop_path2", b.Scale(name+".scaled2", y, gamma[2]), x, n, drop)
}

// covariance is attention among the elements of each head, for the rows x of n images: scores are cosines of the
// elements' queries and keys over all tokens, times a trained factor for each head.
func (b layer) covariance(name string, x *G.Node, n, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	d := c / heads
	temperature := b.AddParam(nn.Param{Name: name + ".temperature", Shape: op.Shape{heads, 1, 1},
		Init: nn.Init{Distribution: nn.Constant, Scale: 1}})
	qkv := b.Linear(name+".qkv", x, 3*c)
	var parts [3]*G.Node
	for i, part := range []string{".queries", ".keys", ".values"} {
		parts[i] = b.byHead(name+part, b.Slice(name+part, qkv, 1, i*c, (i+1)*c), n, heads)
	}
	const leastNorm = 1e-12
	norm := ofSmallSquares(expr.Arg(0)).Max(expr.Const(leastNorm * leastNorm)).Sqrt()
	inverse := func(part string, x *G.Node) *G.Node { // of norms, for each head a row
		squares := b.Reduce(name+part+".squares", b.Map(name+part+".square", smallSquare, x), op.Sum, 1)
		return b.Map(name+part+".inverse", expr.Const(1).Div(norm), squares)
	}
	queries := b.Reshape(name+".queries.elements", inverse(".queries", parts[0]), n, heads, d)
	queries = b.Map(name+".queries.factors", expr.Arg(0).Mul(expr.Arg(1)), queries,
		b.Reshape(name+".temperatures", temperature, heads))
	queries = b.Reshape(name+".queries.columns", queries, n*heads, d)
	y := b.Apply(name+".products", op.MatMul{TransA: true}, parts[0], parts[1])
	y = b.Map(name+".cosines", expr.Arg(0).Mul(expr.Arg(1)).Mul(expr.Arg(2)), y, queries, inverse(".keys", parts[1]))
	y = b.MatMul(name+".mixed", parts[2], b.Softmax(name+".softmax", y), true)
	return b.Linear(name+".proj", b.ofHeads(name+".mixture", y, n), c)
}

// classBlock is a block of the class tokens, which also adds to the patches their normalisation and doubles them. The
// last leaves patches as they are, since nothing reads them.
func (o XCiT) classBlock(b layer, name string, class, patches *G.Node, last bool) (newClass, newPatches *G.Node) {
	gamma := b.factors(o.LayerScale, o.Width, name+".gamma1", name+".gamma2")
	norm := b.sharedNorm(name+".norm1", o.Width, rowEps)
	normal := norm(".patches", patches)
	y := b.classAttention(name+".attn", norm("", class), normal, o.Heads)
	class = b.Add(name+".add1", b.Scale(name+".scaled1", y, gamma[0]), class)
	norm = b.sharedNorm(name+".norm2", o.Width, rowEps)
	class = norm("", class)
	y = b.perceptron(name+".mlp", class, 4*o.Width)
	class = b.Add(name+".add2", b.Scale(name+".scaled2", y, gamma[1]), class)
	if last {
		return class, patches
	}
	x0, x1, x2 := expr.Arg(0), expr.Arg(1), expr.Arg(2)
	patches = b.Map(name+".patches", x0.Add(x1.Mul(x2)), patches, normal, gamma[0])
	if !o.ClassNorm {
		patches = norm(".patches", patches)
	}
	return class, b.Map(name+".doubled", x0.Scale(2), patches)
}
