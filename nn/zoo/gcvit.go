package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

func init() {
	deep := [4]int{3, 4, 19, 5}
	for _, v := range []struct {
		name string
		net  GCViT
	}{
		{"xxtiny", GCViT{Width: 64, Blocks: [4]int{2, 2, 6, 2}, Heads: 2, MLPRatio: 3}},
		{"xtiny", GCViT{Width: 64, Blocks: [4]int{3, 4, 6, 5}, Heads: 2, MLPRatio: 3}},
		{"tiny", GCViT{Width: 64, Blocks: deep, Heads: 2, MLPRatio: 3}},
		{"small", GCViT{Width: 96, Blocks: deep, Heads: 3, MLPRatio: 2, LayerScale: 1e-5}},
		{"base", GCViT{Width: 128, Blocks: deep, Heads: 4, MLPRatio: 2, LayerScale: 1e-5}},
	} {
		imageNet(nn.Architecture{
			Name:          "gcvit_" + v.name,
			Family:        "gcvit",
			Summary:       "GC ViT, " + v.name + ", with timm's names",
			Reference:     "Hatamizadeh et al., Global context vision transformers, 2022",
			MinSize:       32,
			Resize:        256,
			Interpolation: bicubic,
			Block:         timmStage,
			Init:          torchInit,
			Build:         v.net.Build,
		})
	}
}

// GCViT are the options of a transformer whose windows attend by turns by their own queries and by those of the whole
// image. Images are multiples of 32 pixels; windows are a 32nd of them, and a 16th in the third stage.
type GCViT struct {
	Width      int     // channels of the first stage; they double from one to the next, as do the heads; timm's embed_dim
	Blocks     [4]int  // of each stage; timm's depths
	Heads      int     // of the first stage; timm's num_heads[0]
	MLPRatio   int     // elements of a hidden layer for each channel; timm's mlp_ratio
	LayerScale float64 // initial factor of each channel of a branch; 0: none; timm's layer_scale
}

// gcViTEps is added to the variances of layer normalisations.
const gcViTEps = 1e-5

// Build adds the layers to b.
func (o GCViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("GCViT", o).least(1, "Width", "Blocks", "Heads", "MLPRatio").least(0, "LayerScale").
		multiple("Width", "Heads")
	if !b.multipleOf(x, 32) {
		return nil
	}
	unit := nn.Windows{Rows: x.Shape()[2] / 32, Columns: x.Shape()[3] / 32}
	x = b.conv("stem.conv1", x, nn.Conv{Filters: o.Width, Kernel: 3, Stride: 2, Bias: true})
	x = o.down(b, "stem.down", x, o.Width)
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		stage, w := fmt.Sprintf("stages.%d", i), unit
		if i > 0 {
			x = o.down(b, stage+".downsample", x, o.Width<<i)
		}
		if i == 2 {
			w.Rows, w.Columns = 2*w.Rows, 2*w.Columns
		}
		query := o.query(b, stage+".global_block", x, []int{3, 2, 0, 0}[i])
		if b.Err() != nil {
			return nil
		}
		image := x
		x, w.Height, w.Width = b.rows(stage, x), x.Shape()[2], x.Shape()[3]
		for j := range n {
			name, drop := fmt.Sprintf("%s.blocks.%d", stage, j), b.Config().DropPathAt(done, all)
			by := query
			if j%2 == 0 {
				by = nil
			}
			x = o.block(b, name, x, by, w, o.Heads<<i, drop)
			done++
		}
		if i == 3 {
			x = b.LayerNorm(stage+".norm", x, gcViTEps)
		}
		x = b.image(stage, x, image)
	}
	return b.byobHead(x)
}

// down convolves images and halves their extents, between normalisations.
func (o GCViT) down(b layer, name string, x *G.Node, out int) *G.Node {
	x = o.mbConv(b, name+".conv_block", b.pixelNormBy(name+".norm1", x, gcViTEps))
	x = b.conv(name+".reduction", x, nn.Conv{Filters: out, Kernel: 3, Stride: 2})
	return b.pixelNormBy(name+".norm2", x, gcViTEps)
}

// mbConv adds to images x a depthwise convolution and one of pixels, with an excitation between.
func (o GCViT) mbConv(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	y := b.GELU(name+".act", b.conv(name+".conv_dw", x, nn.Conv{Filters: c, Kernel: 3, Groups: c}))
	m := b.Conv(name+".se.fc1", b.pixel(name+".se.mean", y), nn.Conv{Filters: eights(float64(c) / 4), Kernel: 1})
	m = b.Conv(name+".se.fc2", b.GELU(name+".se.act", m), nn.Conv{Filters: c, Kernel: 1})
	y = b.Scale(name+".se.scale", y, b.Sigmoid(name+".se.gate", m))
	return b.Add(name+".add", b.conv(name+".conv_pw", y, nn.Conv{Filters: c, Kernel: 1}), x)
}

// query is the rows of the image's queries: of images of a window's size, after so many halvings.
func (o GCViT) query(b layer, name string, x *G.Node, halvings int) *G.Node {
	for i := range max(halvings, 1) {
		x = o.mbConv(b, fmt.Sprintf("%s.blocks.conv%d", name, i+1), x)
		if i < halvings {
			x = b.MaxPool(fmt.Sprintf("%s.blocks.pool%d", name, i+1), x, 3, 2, 1)
		}
	}
	return b.rows(name, x)
}

// block adds to the rows x of images attention in windows, by the queries of images or, if they are nil, by their own.
// Then it adds a perceptron.
func (o GCViT) block(b layer, name string, x, query *G.Node, w nn.Windows, heads int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	n := x.Shape()[0] / (w.Height * w.Width)
	y := b.FromWindows(name+".images", o.attention(b, name+".attn",
		b.Windows(name+".windows", b.LayerNorm(name+".norm1", x, gcViTEps), w), query, n, w, heads), w)
	x = b.rowResidual(name+".drop_path1", b.gammas(name+".ls1", y, o.LayerScale), x, n, drop)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, gcViTEps), o.MLPRatio*c)
	return b.rowResidual(name+".drop_path2", b.gammas(name+".ls2", y, o.LayerScale), x, n, drop)
}

// attention is that of the rows x of the windows of n images.
func (o GCViT) attention(b layer, name string, x, query *G.Node, n int, w nn.Windows, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c, tokens := x.Shape()[1], w.Rows*w.Columns
	table := b.AddParam(nn.Param{Name: name + ".rel_pos.relative_position_bias_table", BiasOrNorm: true,
		Shape: op.Shape{(2*w.Rows - 1) * (2*w.Columns - 1), heads}, Init: nn.Init{Distribution: nn.Normal, Scale: .02}})
	bias := b.biasByPair(name+".rel_pos", table, window{Windows: w, heads: heads})
	if query == nil {
		x = b.selfAttention(name+".attention", b.Linear(name+".qkv", x, 3*c), n*w.Count(), nn.Attention{Heads: heads}, bias)
		return b.Linear(name+".proj", x, c)
	}
	kv := b.Linear(name+".qkv", x, 2*c)
	keys, values := b.Slice(name+".keys", kv, 1, 0, c), b.Slice(name+".values", kv, 1, c, 2*c)
	query = b.Expand(name+".queries", b.Reshape(name+".query", query, n, 1, tokens*c), n, w.Count(), tokens*c)
	query = b.Reshape(name+".query_rows", query, n*w.Count()*tokens, c)
	x = b.Attention(name+".attention", query, keys, values, n*w.Count(), nn.Attention{Heads: heads}, bias)
	return b.Linear(name+".proj", x, c)
}
