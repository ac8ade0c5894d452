package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name string
		net  NesT
	}{
		{"tiny", NesT{Channels: [3]int{96, 192, 384}, Heads: [3]int{3, 6, 12}, Blocks: [3]int{2, 2, 8}}},
		{"small", NesT{Channels: [3]int{96, 192, 384}, Heads: [3]int{3, 6, 12}, Blocks: [3]int{2, 2, 20}}},
		{"base", NesT{Channels: [3]int{128, 256, 512}, Heads: [3]int{4, 8, 16}, Blocks: [3]int{2, 2, 20}}},
	} {
		imageNet(nn.Architecture{
			Name:    "nest_" + v.name + "_jx",
			Family:  "nest",
			Summary: "NesT, " + v.name + ", with timm's names",
			Reference: "Zhang et al., Nested hierarchical transformer: towards accurate, data-efficient and interpretable " +
				"visual understanding, 2021",
			MinSize:       16,
			DropPath:      .5,
			Resize:        256,
			Interpolation: bicubic,
			Block:         `^(levels\.\d\.transformer_encoder\.\d+)\.`,
			Init:          convNeXtInitial,
			Build:         v.net.Build,
		})
	}
}

// NesT are the options of a transformer that attends in 16 blocks of an image, then in 4, then in one, between which
// convolutions and max-pooling join four blocks. Images are squares of a multiple of 16 pixels.
type NesT struct {
	Channels [3]int // of each level; timm's embed_dims
	Heads    [3]int // of each level; they divide the channels; timm's num_heads
	Blocks   [3]int // of each level; timm's depths
}

// Build adds the layers to b.
func (o NesT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("NesT", o).least(1, "Channels", "Heads", "Blocks")
	for i, heads := range o.Heads {
		b.options("NesT", o).that(o.Channels[i]%max(heads, 1) == 0, "Channels",
			fmt.Sprintf("divisible by Heads, which are %v", o.Heads))
	}
	if !b.multipleOf(x, 16) {
		return nil
	}
	n, size := x.Shape()[0], x.Shape()[2]/16
	if s := x.Shape(); s[2] != s[3] {
		b.Fail(fmt.Errorf("images of %d×%d pixels: height and width must be equal", s[2], s[3]))
	}
	x = b.Conv("patch_embed.proj", x, nn.Conv{Filters: o.Channels[0], Kernel: 4, Stride: 4, Bias: true})
	done, all := 0, sum(o.Blocks[:])
	for i, count := range o.Blocks {
		name, c, tokens := fmt.Sprintf("levels.%d", i), o.Channels[i], size*size<<(4-2*i)
		place := b.AddParam(nn.Param{Name: name + ".pos_embed", Shape: op.Shape{1, tokens, c}, BiasOrNorm: true,
			Stored: op.Shape{1, tokens / (size * size), size * size, c}, Init: nn.Init{Distribution: nn.Normal, Scale: .02}})
		if i > 0 {
			x = b.pixelNorm(name+".pool.norm", b.conv(name+".pool.conv", x, nn.Conv{Filters: c, Kernel: 3, Bias: true}))
			x = b.poolSame(name+".pool", x)
		}
		image := x
		x = b.Reshape(name+".sequences", b.partition(name, x, size, false), n, tokens, c)
		x = b.Reshape(name+".placed_rows", b.Map(name+".placed", expr.Arg(0).Add(expr.Arg(1)), x, place), n*tokens, c)
		for j := range count {
			drop := b.Config().DropPathAt(done, all)
			block := fmt.Sprintf("%s.transformer_encoder.%d", name, j)
			x = o.block(b, block, x, n, tokens/(size*size), o.Heads[i], drop)
			done++
		}
		x = b.join(name, x, image, size, false)
	}
	return b.Linear("head", b.pooled("head_drop", b.pixelNorm("norm", x)), b.Config().Classes)
}

// block adds to the rows x of n images attention, within as many sequences of each, then a perceptron. timm's last
// layer of attention takes the first elements of all heads, then the second ones, and so on.
func (o NesT) block(b layer, name string, x *G.Node, n, sequences, heads int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	y := b.Linear(name+".attn.qkv", b.LayerNorm(name+".norm1", x, rowEps), 3*c)
	weight, bias := b.matrix(name+".attn.proj", c, c), b.bias(name+".attn.proj", c)
	weight = b.Permute(name+".attn.by_head", b.Reshape(name+".attn.by_element", weight, c, c/heads, heads), 0, 2, 1)
	y = b.selfAttention(name+".attention", y, n*sequences, nn.Attention{Heads: heads})
	y = b.Apply(name+".attn.proj", op.Linear{}, y, b.Reshape(name+".attn.matrix", weight, c, c), bias)
	x = b.rowResidual(name+".drop_path1", y, x, n, drop)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, rowEps), 4*c)
	return b.rowResidual(name+".drop_path2", y, x, n, drop)
}

// poolSame is 3×3 max-pooling with stride 2 of images x of even extents, padded as TensorFlow's SAME does: a window
// goes on below and at the right. The last row and column, once more, do not change a maximum.
func (b layer) poolSame(name string, x *G.Node) *G.Node {
	for i, part := range []string{".row", ".column"} {
		if b.Err() != nil {
			return nil
		}
		n := x.Shape()[2+i]
		x = b.Concat(name+part+"s", 2+i, x, b.Slice(name+part, x, 2+i, n-1, n))
	}
	return b.MaxPool(name+".max", x, 3, 2, 0)
}
