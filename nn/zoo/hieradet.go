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
		name, words string
		net         HieraDet
		size        int
	}{
		{"tiny", "tiny", HieraDet{Width: 96, Heads: 1, Blocks: [4]int{1, 2, 7, 2}, Global: []int{5, 7, 9}}, 896},
		{"small", "small", HieraDet{Width: 96, Heads: 1, Blocks: [4]int{1, 2, 11, 2}, Global: []int{7, 10, 13}}, 896},
		{"base_plus", "base plus", HieraDet{Width: 112, Heads: 2, Blocks: [4]int{2, 3, 16, 3}, Global: []int{12, 16, 20},
			Grid: 14}, 896},
		{"large", "large", HieraDet{Width: 144, Heads: 2, Blocks: [4]int{2, 6, 36, 4}, Global: []int{23, 33, 43},
			Windows: [4]int{8, 4, 16, 8}}, 1024},
	} {
		imageNet(nn.Architecture{
			Name:          "sam2_hiera_" + v.name,
			Family:        "hiera",
			Summary:       "SAM 2's Hiera, " + v.words + ", with timm's names",
			Reference:     "Ravi et al., SAM 2: segment anything in images and videos, 2024",
			MinSize:       32,
			Size:          v.size,
			Resize:        v.size,
			Interpolation: bicubic,
			Init:          Hiera{}.Initial,
			Build:         v.net.Build,
		})
	}
}

// HieraDet are the options of a Hiera for large images: tokens attend in windows, those of a few blocks to all. The
// first block of a stage has the windows of the stage before it, and pools queries. Images are multiples of 32 pixels,
// and of 4·Windows[0].
type HieraDet struct {
	Width   int    // elements of a token in the first stage; they double, as do the heads, at each stage; timm's embed_dim
	Heads   int    // of the first stage; timm's num_heads
	Blocks  [4]int // of each stage; timm's stages
	Windows [4]int // height and width of a stage's windows in tokens; zeros mean 8, 4, 14, 7; timm's window_spec
	Global  []int  // blocks whose tokens attend to all; timm's global_att_blocks
	Grid    int    // height and width of a grid of places, which is resized; 0 means 7; timm's global_pos_size
}

// Build adds the layers to b.
func (o HieraDet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if o.Windows == [4]int{} {
		o.Windows = [4]int{8, 4, 14, 7}
	}
	o.Grid = cmp.Or(o.Grid, 7)
	even := true
	for _, w := range o.Windows[:3] {
		even = even && w%2 == 0
	}
	b.options("HieraDet", o).least(1, "Width", "Heads", "Blocks", "Windows", "Grid").multiple("Width", "Heads").
		that(o.Grid <= 128, "Grid", "at most 128").that(max(o.Windows[0], o.Windows[1], o.Windows[2], o.Windows[3]) <= 128,
		"Windows", "numbers of at most 128").that(even, "Windows", "even but for the last")
	if !b.multipleOf(x, 32) || !b.multipleOf(x, 4*o.Windows[0]) {
		return nil
	}
	d := detBlock{images: x.Shape()[0], height: x.Shape()[2] / 4, width: x.Shape()[3] / 4}
	places := windowPlaces{width: o.Width, side: o.Grid, window: o.Windows[0], name: "pos_embed_window",
		by: resize.Line{Cubic: true}}
	place := places.build(b, d.height, d.width)
	x = b.Conv("patch_embed.proj", x, nn.Conv{Filters: o.Width, Kernel: 7, Stride: 4, Pad: 3, Bias: true})
	x = b.Map("places", expr.Arg(0).Add(expr.Arg(1)), b.Apply("patches", op.Tokens{}, x), place)
	x = b.Reshape("rows", x, d.images*d.height*d.width, o.Width)
	done, all := 0, sum(o.Blocks[:])
	for i, count := range o.Blocks {
		for j := range count {
			d.out, d.heads, d.window, d.pools = o.Width<<i, o.Heads<<i, o.Windows[i], false
			if i > 0 && j == 0 {
				d.pools, d.window = true, o.Windows[i-1]
			}
			if slices.Contains(o.Global, done) {
				d.window = 0
			}
			x = d.add(b, fmt.Sprintf("blocks.%d", done), x, b.Config().DropPathAt(done, all))
			if d.pools {
				d.height, d.width = d.height/2, d.width/2
			}
			done++
		}
	}
	c := o.Width << 3
	x = b.Reshape("head.tokens", x, d.images, d.height*d.width, c)
	x = b.Reshape("head.mean", b.Reduce("head.global_pool", x, op.Mean, 1), d.images, c)
	x = b.Dropout("head.drop", b.LayerNorm("head.norm", x, rowEps), b.Config().Dropout)
	return b.Linear("head.fc", x, b.Config().Classes)
}

// detBlock are the shapes of a block.
type detBlock struct {
	images, height, width int // of the input in tokens
	out, heads            int // elements of a result
	window                int // height and width in tokens; 0: tokens attend to all
	pools                 bool
}

// add adds attention to the rows x of images, then a perceptron. drop is the probability of dropping either in Train.
func (d detBlock) add(b layer, name string, x *G.Node, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c, proj := x.Shape()[1], []*G.Node(nil)
	if c != d.out {
		proj = ViT{}.linearParams(b, name+".proj", d.out, c)
	}
	y := b.LayerNorm(name+".norm1", x, rowEps)
	if proj != nil {
		x = b.Apply(name+".proj", op.Linear{}, append([]*G.Node{y}, proj...)...)
	}
	if d.pools {
		x = b.halved(name+".pool", x, d.height, d.width)
	}
	height, width := d.height, d.width // within which queries are pooled
	if d.window > 0 {
		y = b.Windows(name+".windows", y, nn.Windows{Height: d.height, Width: d.width, Rows: d.window, Columns: d.window})
		height, width = d.window, d.window
	}
	if y = b.Linear(name+".attn.qkv", y, 3*d.out); b.Err() != nil {
		return nil
	}
	n, heads := y.Shape()[0]/(height*width), nn.Attention{Heads: d.heads}
	after := nn.Windows{Height: d.height, Width: d.width, Rows: d.window, Columns: d.window}
	if d.pools {
		part := func(part string, k int) *G.Node { return b.Slice(name+part, y, 1, k*d.out, (k+1)*d.out) }
		queries := b.halved(name+".attn.q_pool", part(".attn.queries", 0), height, width)
		y = b.Attention(name+".attention", queries, part(".attn.keys", 1), part(".attn.values", 2), n, heads)
		after = nn.Windows{Height: d.height / 2, Width: d.width / 2, Rows: d.window / 2, Columns: d.window / 2}
	} else {
		y = b.selfAttention(name+".attention", y, n, heads)
	}
	if d.window > 0 {
		y = b.FromWindows(name+".images", y, after)
	}
	x = b.rowResidual(name+".drop_path1", b.Linear(name+".attn.proj", y, d.out), x, d.images, drop)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, rowEps), 4*d.out)
	return b.rowResidual(name+".drop_path2", y, x, d.images, drop)
}

// halved are the maxima of 2×2 tokens in the rows of images of height×width.
func (b layer) halved(name string, rows *G.Node, height, width int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := rows.Shape()
	x := b.Reshape(name+".images", rows, s[0]/(height*width), height*width, s[1])
	x = b.Apply(name+".planes", op.Planes{Height: height, Width: width}, x)
	return b.rows(name, b.MaxPool(name, x, 2, 2, 0))
}
