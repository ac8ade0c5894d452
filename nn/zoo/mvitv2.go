package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

func init() {
	for _, v := range []struct {
		name string
		net  MViTv2
	}{
		{"tiny", MViTv2{Width: 96, Heads: 1, Blocks: [4]int{1, 2, 5, 2}}},
		{"small", MViTv2{Width: 96, Heads: 1, Blocks: [4]int{1, 2, 11, 2}}},
		{"base", MViTv2{Width: 96, Heads: 1, Blocks: [4]int{2, 3, 16, 3}}},
		{"large", MViTv2{Width: 144, Heads: 2, Blocks: [4]int{2, 6, 36, 4}, ExpandMLP: true}},
		{"small_cls", MViTv2{Width: 96, Heads: 1, Blocks: [4]int{1, 2, 11, 2}, Class: true}},
		{"base_cls", MViTv2{Width: 96, Heads: 1, Blocks: [4]int{2, 3, 16, 3}, Class: true}},
		{"large_cls", MViTv2{Width: 144, Heads: 2, Blocks: [4]int{2, 6, 36, 4}, Class: true}},
		{"huge_cls", MViTv2{Width: 192, Heads: 3, Blocks: [4]int{4, 8, 60, 8}, Class: true}},
	} {
		imageNet(nn.Architecture{
			Name:          "mvitv2_" + v.name,
			Family:        "mvitv2",
			Summary:       "MViT V2, " + strings.Replace(v.name, "_cls", ", a class token", 1) + ", with timm's names",
			Reference:     "Li et al., MViTv2: improved multiscale vision transformers for classification and detection, 2022",
			MinSize:       32,
			Resize:        248,
			Interpolation: bicubic,
			Block:         timmStage,
			Init:          mViTInitial,
			Build:         v.net.Build,
		})
	}
}

// MViTv2 are the options of a transformer that convolves the queries, keys and values of heads, with strides. Images
// are squares of a multiple of 32 pixels.
type MViTv2 struct {
	Width  int    // elements of a token in the first stage; they double, as do the heads, at each stage; timm's embed_dim
	Heads  int    // of the first stage; timm's num_heads
	Blocks [4]int // of each stage; timm's depths

	// ExpandMLP doubles the elements in the perceptron of a stage's last block, not in the attention of the next stage's
	// first: timm's expand_attn=False.
	ExpandMLP bool

	Class bool // a class token goes into the head, in place of the mean of patches: timm's use_cls_token
}

// Build adds the layers to b.
func (o MViTv2) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("MViTv2", o).least(1, "Width", "Heads", "Blocks").multiple("Width", "Heads")
	if !b.multipleOf(x, 32) {
		return nil
	}
	if s := x.Shape(); s[2] != s[3] {
		b.Fail(fmt.Errorf("images of %d×%d pixels: height and width must be equal", s[2], s[3]))
		return nil
	}
	m := mViTBlock{images: x.Shape()[0], side: x.Shape()[2] / 4, keyStride: 4, class: o.Class}
	var class *G.Node
	if o.Class {
		class = b.AddParam(nn.Param{Name: "cls_token", Shape: op.Shape{1, 1, o.Width}, BiasOrNorm: true,
			Init: nn.Init{Distribution: nn.Normal, Scale: .02 * cutNormal}})
	}
	x = b.Conv("patch_embed.proj", x, nn.Conv{Filters: o.Width, Kernel: 7, Stride: 4, Pad: 3, Bias: true})
	if o.Class {
		x = b.Concat("tokens", 1, b.Expand("class", class, m.images, 1, o.Width), b.Apply("patches", op.Tokens{}, x))
		x = b.Reshape("rows", x, m.images*m.tokens(m.side), o.Width)
	} else {
		x = b.rows("patch_embed", x)
	}
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		m.heads, m.stride = o.Heads<<i, 1
		if i > 0 {
			m.stride, m.keyStride = 2, max(m.keyStride/2, 1)
		}
		for j := range n {
			m.within, m.out = o.Width<<i, o.Width<<i
			if o.ExpandMLP && j == n-1 && i < 3 {
				m.out *= 2
			}
			m.drop = b.Config().DropPathAt(done, all)
			x = m.add(b, fmt.Sprintf("stages.%d.blocks.%d", i, j), x)
			m.side, m.stride = m.side/m.stride, 1
			done++
		}
	}
	c := o.Width << 3
	x = b.Reshape("norm.tokens", b.LayerNorm("norm", x, rowEps), m.images, m.tokens(m.side), c)
	if o.Class {
		x = b.Slice("first", x, 1, 0, 1)
	} else {
		x = b.Reduce("mean", x, op.Mean, 1)
	}
	x = b.Reshape("head.rows", x, m.images, c)
	return b.Linear("head.fc", b.Dropout("head.drop", x, b.Config().Dropout), b.Config().Classes)
}

// mViTBlock are the shapes of a block.
type mViTBlock struct {
	images            int
	side              int // height and width of the input in tokens
	stride, keyStride int
	heads             int
	within, out       int // elements of a token, of attention and of the result
	class             bool
	drop              float64
}

// tokens are those of an image with this height and width.
func (m mViTBlock) tokens(side int) int {
	if m.class {
		return 1 + side*side
	}
	return side * side
}

// add adds attention to the rows x of images, then a perceptron.
func (m mViTBlock) add(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	in := x.Shape()[1]
	y := b.LayerNorm(name+".norm1", x, rowEps)
	if in != m.within {
		x = b.Linear(name+".shortcut_proj_attn", y, m.within)
	}
	if m.stride > 1 {
		x = m.pooled(b, name+".shortcut", b.Reshape(name+".shortcut.sequences", x, m.images, m.tokens(m.side), m.within),
			func(x *G.Node) *G.Node { return b.MaxPool(name+".shortcut_pool_attn", x, 3, 2, 1) })
		x = b.Reshape(name+".shortcut.rows", x, m.images*m.tokens(m.side/m.stride), m.within)
	}
	x = b.rowResidual(name+".drop_path1", m.attention(b, name+".attn", y), x, m.images, m.drop)
	y = b.LayerNorm(name+".norm2", x, rowEps)
	if m.out != m.within {
		x = b.Linear(name+".shortcut_proj_mlp", y, m.out)
	}
	y = b.GELU(name+".mlp.act", b.Linear(name+".mlp.fc1", y, 4*m.within))
	return b.rowResidual(name+".drop_path2", b.Linear(name+".mlp.fc2", y, m.out), x, m.images, m.drop)
}

// attention is that of convolved queries to convolved keys and values, plus the queries.
func (m mViTBlock) attention(b layer, name string, x *G.Node) *G.Node {
	c, d := m.within, m.within/m.heads
	s := squares{queries: m.side / m.stride, keys: (m.side-1)/m.keyStride + 1, class: m.class}
	tables := b.distanceTables(name, 2*max(s.queries, m.side/m.keyStride)-1, d,
		nn.Init{Distribution: nn.Normal, Scale: .02 * cutNormal}, true)
	qkv := b.Linear(name+".qkv", x, 3*c)
	proj := b.linearLater(name+".proj", c, c)
	var parts [3]*G.Node // [images·heads, tokens, elements]
	for i, part := range []string{"q", "k", "v"} {
		stride := m.keyStride
		if i == 0 {
			stride = m.stride
		}
		y := b.byHead(name+"."+part, b.Slice(name+".qkv."+part, qkv, 1, i*c, (i+1)*c), m.images, m.heads)
		y = m.pooled(b, name+"."+part, y, func(y *G.Node) *G.Node {
			return b.conv(name+".pool_"+part, y, nn.Conv{Filters: d, Kernel: 3, Stride: stride, Groups: d})
		})
		parts[i] = b.LayerNorm(name+".norm_"+part, y, rowEps)
	}
	y := b.squareAttention(name, parts, tables, m.images, s)
	y = b.ofHeads(name+".mixture", b.Add(name+".residual", y, parts[0]), m.images)
	return proj(y)
}

// pooled applies f, which pools images, to the patches of x [n,tokens,elements].
func (m mViTBlock) pooled(b layer, name string, x *G.Node, f func(*G.Node) *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	patches := x
	if m.class {
		patches = b.Slice(name+".patches", x, 1, 1, x.Shape()[1])
	}
	y := f(b.Apply(name+".planes", op.Planes{Height: m.side, Width: m.side}, patches))
	y = b.Apply(name+".tokens", op.Tokens{}, y)
	if !m.class {
		return y
	}
	return b.Concat(name+".with_class", 1, b.Slice(name+".class", x, 1, 0, 1), y)
}

// mViTInitial is the initial distribution of a parameter. Convolutions start as PyTorch's, and others are cut at two
// standard deviations.
func mViTInitial(p nn.Param) nn.Init {
	switch {
	case len(p.Shape) == 4:
		return nn.FanInUniform(p.Shape[1:].Size())
	case p.Name == "patch_embed.proj.bias", strings.Contains(p.Name, ".rel_pos_"):
		return p.Init
	}
	return normal(.02 * cutNormal)(p)
}
