package zoo

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

// ByobAttention is the attention that some bottlenecks of a stage have in place of their 3×3 convolution: timm's blocks
// "self_attn". Images are squares.
type ByobAttention struct {
	// Kind is "bottleneck" for attention of all pixels, "halo" for that of blocks to themselves and a border, "lambda"
	// for functions of the pixels and of their distances: timm's self_attn_layer.
	Kind   string
	Blocks []int   // numbers of the stage's blocks that have it, from 0
	Heads  int     // 0 means 8 with "halo", else 4; timm's num_heads
	Query  int     // elements of a head's query; 0 means 16 with "lambda", else in proportion to Ratio; timm's dim_head
	Ratio  float64 // of queries' elements by the block's channels; 0 means 1; timm's qk_ratio
	Block  int     // side of a block with "halo"; timm's block_size
	Border int     // pixels of it on each side; timm's halo_size
	// Window is the side of the square around a pixel from which "lambda" takes functions of distances, odd; 0 means the
	// whole image: timm's r.
	Window int
}

// has reports whether block i of a stage has the attention.
func (o ByobAttention) has(i int) bool { return slices.Contains(o.Blocks, i) }

// check reports whether the options of a stage of the given number of blocks are right.
func (o ByobAttention) check(b layer, stage string, blocks int) {
	if o.Kind == "" && len(o.Blocks) == 0 {
		return
	}
	halo, lambda := o.Kind == "halo", o.Kind == "lambda"
	b.options(stage+".Attention", o).least(0, "Blocks", "Heads", "Query", "Ratio", "Block", "Border", "Window").
		that(halo || lambda || o.Kind == "bottleneck", "Kind", `"bottleneck", "halo" or "lambda"`).
		that(slices.Max(append([]int{-1}, o.Blocks...)) < blocks, "Blocks", "numbers below that of the stage's blocks").
		that(halo == (o.Block > 0), "Block", `above 0 with "halo" alone`).
		that(halo || o.Border == 0, "Border", `0 without "halo"`).
		that(o.Border <= o.Block, "Border", "at most Block").
		that(o.Window == 0 || lambda && o.Window%2 == 1 && o.Window < 1000, "Window",
			`0, or odd and below 1000 with "lambda"`)
}

// byobPixels are the extents of attention among pixels.
type byobPixels struct {
	ByobAttention
	images, side int // of the input
	query, value int // elements of a head
	stride       int
}

// add adds attention of the pixels of x, and a pooling where a stride remains.
func (o ByobAttention) add(b layer, name string, x *G.Node, stride int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s, heads, query := x.Shape(), 4, 0
	switch o.Kind {
	case "halo":
		heads = 8
	case "lambda":
		query = 16
	}
	o.Heads = cmp.Or(o.Heads, heads)
	if s[1]%o.Heads != 0 {
		b.Fail(fmt.Errorf("layer %s: %d channels are not divisible by %d heads", name, s[1], o.Heads))
		return nil
	}
	query = cmp.Or(o.Query, query, divisible(float64(s[1])*cmp.Or(o.Ratio, 1))/o.Heads)
	a := byobPixels{ByobAttention: o, images: s[0], side: s[2], query: query, value: s[1] / o.Heads, stride: stride}
	if s[2] != s[3] {
		b.Fail(fmt.Errorf("layer %s: %v: height and width must be equal", name, s))
		return nil
	}
	pixels := b.rows(name, x)
	pool := stride > 1
	var y *G.Node
	switch o.Kind {
	case "halo":
		if a.side%a.Block != 0 {
			b.Fail(fmt.Errorf("layer %s: images of %d×%[2]d pixels: height and width must be multiples of %d", name, a.side,
				a.Block))
			return nil
		}
		pool = pool && a.Block%stride != 0
		y = a.halo(b, name, pixels)
	case "lambda":
		y = a.lambda(b, name, pixels, x)
	default:
		y = a.bottleneck(b, name, pixels)
	}
	side := a.side
	if stride > 1 && !pool {
		side /= stride
	}
	y = b.Reshape(name+".mixed.images", y, a.images, side*side, s[1])
	y = b.Apply(name+".mixed", op.Planes{Height: side, Width: side}, y)
	if pool {
		if side%2 > 0 {
			b.Fail(fmt.Errorf("layer %s: images of %d×%[2]d pixels: height and width must be even: choose an input size that "+
				"is a multiple of 32", name, side))
			return nil
		}
		y = b.AvgPool(name+".pool", y, 2, 2, 0)
	}
	return y
}

// pointWeights adds the weights of a convolution 1×1 without a bias, as those of a linear layer.
func (b layer) pointWeights(name string, out, in int) *G.Node {
	return b.AddParam(nn.Param{Name: name + ".weight", Shape: op.Shape{out, in}, Stored: op.Shape{out, in, 1, 1},
		Groups: 1, Init: nn.Init{Distribution: nn.Normal, Scale: 1 / math.Sqrt(float64(in))}})
}

// tables are those of distances down and across, of which there are 2·side−1.
func (a byobPixels) tables(b layer, name string, side int) (tables [2]*G.Node) {
	for i, axis := range []string{".pos_embed.height_rel", ".pos_embed.width_rel"} {
		tables[i] = b.AddParam(nn.Param{Name: name + axis, Shape: op.Shape{2*side - 1, a.query},
			Init: nn.Init{Distribution: nn.Normal, Scale: 1 / math.Sqrt(float64(a.query))}})
	}
	return tables
}

// byobSquares are squares whose distances are numbered from the last query and the first key on.
func byobSquares(queries, keys int) squares {
	return squares{queries: queries, keys: keys, row: func(query, key int) int { return key - query + keys - 1 }}
}

// bottleneck is attention of all pixels of an image (Srinivas et al., Bottleneck transformers, 2021).
func (a byobPixels) bottleneck(b layer, name string, pixels *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	queries := a.Heads * a.query
	weights := b.pointWeights(name+".qkv", 2*queries+a.Heads*a.value, pixels.Shape()[1])
	tables := a.tables(b, name, a.side)
	var parts [3]*G.Node
	for i, part := range []string{".q", ".k", ".v"} {
		to := (i + 1) * queries
		if i == 2 {
			to = 2*queries + a.Heads*a.value
		}
		parts[i] = b.byHead(name+part, b.linearPart(name+part, pixels, i*queries, to, weights), a.images, a.Heads)
	}
	y := b.squareAttention(name, parts, tables, a.images, byobSquares(a.side, a.side))
	return b.ofHeads(name+".mixture", y, a.images)
}

// halo is attention of blocks to themselves and a border, which has zeros outside of the image (Vaswani et al., Scaling
// local self-attention for parameter efficient visual backbones, 2021).
func (a byobPixels) halo(b layer, name string, pixels *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c, across, step := pixels.Shape()[1], a.side/a.Block, 1
	if a.Block%a.stride == 0 {
		step = a.stride
	}
	side, reach := a.Block/step, a.Block+2*a.Border
	blocks := across * across
	q := b.pointWeights(name+".q", a.Heads*a.query, c)
	each := a.query + a.value // of a head's rows of keys and values
	kv := b.pointWeights(name+".kv", a.Heads*each, c)
	tables := a.tables(b, name, reach)

	gather := func(part string, rows *G.Node, index []int32) *G.Node { // pixels of blocks
		if b.Err() != nil {
			return nil
		}
		part = name + part
		width := rows.Shape()[1]
		rows = b.Reshape(part+".images", rows, a.images, a.side*a.side, width)
		rows = b.Pad(part+".pad", rows, []int{0, 0, 0}, []int{0, 1, 0}) // outside of the image
		rows = b.Gather(part, rows, 1, b.Constant(part+".index", op.Tensor{Shape: op.Shape{len(index)}, Data: index}))
		return b.Reshape(part+".rows", rows, a.images*len(index), width)
	}
	queries := gather(".within", pixels, a.places(0, side, step))
	queries = b.Apply(name+".q", op.Linear{}, queries, q)
	parts := [3]*G.Node{b.byHead(name+".q", queries, a.images*blocks, a.Heads)}
	around := a.places(-a.Border, reach, 1)
	kv = b.Reshape(name+".kv.heads", kv, a.Heads, each, c)
	for i, cut := range [][2]int{{0, a.query}, {a.query, each}} {
		part := []string{".k", ".v"}[i]
		weights := b.Slice(name+part+".kernel", kv, 1, cut[0], cut[1])
		weights = b.Reshape(name+part+".kernels", weights, a.Heads*(cut[1]-cut[0]), c)
		all := b.Apply(name+part, op.Linear{}, pixels, weights)
		parts[i+1] = b.byHead(name+part, gather(part+".around", all, around), a.images*blocks, a.Heads)
	}
	y := b.squareAttention(name, parts, tables, a.images, byobSquares(side, reach))
	y = b.ofHeads(name+".mixture", y, a.images*blocks)
	return b.FromWindows(name+".blocks", y,
		nn.Windows{Height: a.side / step, Width: a.side / step, Rows: side, Columns: side})
}

// places number the pixels of the blocks, n a row and column from first on. Those outside of the image follow all.
func (a byobPixels) places(first, n, step int) (list []int32) {
	across := a.side / a.Block
	for block := range across * across {
		top, left := block/across*a.Block+first, block%across*a.Block+first
		for i := range n * n {
			y, x := top+i/n*step, left+i%n*step
			if min(x, y) < 0 || max(x, y) >= a.side {
				list = append(list, int32(a.side*a.side))
			} else {
				list = append(list, int32(y*a.side+x))
			}
		}
	}
	return list
}

// lambda applies to queries linear functions: one of all pixels, and one of each pixel's distances from others (Bello,
// LambdaNetworks, 2021). Queries and values are normalised. Like is the image of the pixels.
func (a byobPixels) lambda(b layer, name string, pixels, like *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, tokens, queries := a.images, a.side*a.side, a.Heads*a.query
	var table *G.Node
	if distances := 2*a.side - 1; a.Window == 0 {
		table = b.AddParam(nn.Param{Name: name + ".pos_emb", Shape: op.Shape{distances, distances, a.query},
			Init: nn.Init{Distribution: nn.Normal, Scale: .02}})
	}
	weights := b.pointWeights(name+".qkv", queries+a.query+a.value, pixels.Shape()[1])
	part := func(part string, from, to int) *G.Node {
		return b.linearPart(name+part, pixels, from, to, weights)
	}
	normal := func(norm, part string, rows *G.Node) *G.Node {
		x := b.BatchNorm(name+norm, b.image(name+part, rows, like), 1)
		return b.Apply(name+part+".normal", op.Tokens{}, x)
	}
	q := normal(".norm_q", ".q", part(".q", 0, queries))
	v := normal(".norm_v", ".v", part(".v", queries+a.query, queries+a.query+a.value))
	k := b.Reshape(name+".k.tokens", part(".k", queries, queries+a.query), n, tokens, a.query)
	k = b.Softmax(name+".k.softmax", b.Permute(name+".k.elements", k, 0, 2, 1))

	y := b.MatMul(name+".content", b.Reshape(name+".q.heads", q, n, tokens*a.Heads, a.query),
		b.MatMul(name+".content.lambda", k, v, false), false)
	byPixel := b.Permute(name+".v.elements", v, 0, 2, 1)
	var lambdas *G.Node // [images·values,pixels·elements]
	if a.Window == 0 {
		lambdas = a.ofDistances(b, name, byPixel, table)
	} else {
		lambdas = a.ofNeighbours(b, name, byPixel)
	}
	// Five dimensions: devices keep values of four as images.
	lambdas = b.Reshape(name+".lambdas.apart", lambdas, 1, n, a.value, tokens, a.query)
	lambdas = b.Permute(name+".lambdas.by_pixel", lambdas, 0, 1, 3, 2, 4)
	lambdas = b.Reshape(name+".lambdas", lambdas, n*tokens, a.value, a.query)
	z := b.MatMul(name+".position", b.Reshape(name+".q.pixels", q, n*tokens, a.Heads, a.query), lambdas, true)
	return b.Add(name+".both", b.Reshape(name+".content.rows", y, n*tokens, a.Heads*a.value),
		b.Reshape(name+".position.rows", z, n*tokens, a.Heads*a.value))
}

// ofDistances are the sums of values [images,values,pixels] over pixels, times the elements that a table has for their
// distances.
func (a byobPixels) ofDistances(b layer, name string, values, table *G.Node) *G.Node {
	side, tokens, longest := a.side, a.side*a.side, 2*a.side-1
	index := make([]int32, 0, tokens*tokens)
	for i := range tokens {
		for j := range tokens {
			down, across := j/side-i/side+side-1, j%side-i%side+side-1
			index = append(index, int32(down*longest+across))
		}
	}
	table = b.Reshape(name+".table", table, longest*longest, a.query)
	pairs := b.Constant(name+".index", op.Tensor{Shape: op.Shape{len(index)}, Data: index})
	table = b.Gather(name+".pairs", table, 0, pairs)
	table = b.Permute(name+".elements", b.Reshape(name+".by_pixel", table, tokens, tokens, a.query), 0, 2, 1)
	table = b.Reshape(name+".weights", table, tokens*a.query, tokens)
	rows := b.Reshape(name+".values.images", values, a.images*a.value, tokens)
	return b.Apply(name+".distances", op.Linear{}, rows, table)
}

// ofNeighbours are convolutions of each of the values [images,values,pixels].
func (a byobPixels) ofNeighbours(b layer, name string, values *G.Node) *G.Node {
	r := a.Window
	weight := b.AddParam(nn.Param{Name: name + ".conv_lambda.weight", Shape: op.Shape{a.query, 1, r, r},
		Stored: op.Shape{a.query, 1, r, r, 1}, Groups: 1,
		Init: nn.Init{Distribution: nn.Normal, Scale: 1 / math.Sqrt(float64(a.query))}})
	bias := b.AddParam(nn.Param{Name: name + ".conv_lambda.bias", Shape: op.Shape{a.query}, BiasOrNorm: true, Groups: 1,
		Init: nn.FanInUniform(r * r)})
	o := op.Conv2D{Stride: [2]int{1, 1}, Pad: [2]int{r / 2, r / 2}, Dilation: [2]int{1, 1}, Groups: 1}
	x := b.Reshape(name+".values.images", values, a.images*a.value, 1, a.side, a.side)
	return b.Apply(name+".neighbours", op.Tokens{}, b.Apply(name+".conv_lambda", o, x, weight, bias))
}
