package zoo

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	imageNet(nn.Architecture{
		Name:              "maxvit_t",
		Family:            "maxvit",
		Summary:           "MaxViT-T",
		Reference:         "Tu et al., MaxViT: multi-axis vision transformer, 2022",
		BatchNormEps:      .001,
		BatchNormMomentum: .01,
		DropPath:          .2,
		MinSize:           224,
		Resize:            224,
		Interpolation:     bicubic,
		Block:             `^(blocks\.\d+\.layers\.\d+)\.`,
		Init:              maxViTInitial,
		Build:             MaxViT{Stem: 64, Channels: []int{64, 128, 256, 512}, Layers: []int{2, 2, 5, 2}}.Build,
	})
}

// MaxViT are the options of a net whose layers are an MBConv and attention among neighbours and over a grid.
type MaxViT struct {
	Stem      int // channels of the first convolutions
	Channels  []int
	Layers    []int // of each stage
	Head      int   // elements of a head; 0 means 32
	Partition int   // height and width of a window and of the grid; 0 means 7

	Expansion float64 // of an MBConv's channels; 0 means 4; torchvision's expansion_ratio
	Squeeze   float64 // channels of the excitation for each output of an MBConv; 0 means 1/4; torchvision's squeeze_ratio
	MLPRatio  int     // elements of a hidden layer for each channel; 0 means 4; torchvision's mlp_ratio

	// AttentionDropout and MLPDropout are the probabilities of dropping elements in Train, after the last linear layers of
	// attention and of the perceptron: torchvision's attention_dropout and mlp_dropout. Config has that of the head's
	// inputs, and DropPath, which is stochastic_depth_prob.
	AttentionDropout, MLPDropout float64
}

// maxViTEps is added to the variances of layer normalisations.
const maxViTEps = 1e-5

// Build adds the layers to b.
func (o MaxViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if o.Head == 0 {
		o.Head = 32
	}
	if o.Partition == 0 {
		o.Partition = 7
	}
	o.Expansion, o.Squeeze, o.MLPRatio = cmp.Or(o.Expansion, 4), cmp.Or(o.Squeeze, .25), cmp.Or(o.MLPRatio, 4)
	channel := func(ratio float64) bool { // of the fewest
		return len(o.Channels) == 0 || int(float64(slices.Min(o.Channels))*ratio) > 0
	}
	b.options("MaxViT", o).least(1, "Stem", "Layers", "Channels").least(0, "Head", "Partition", "Expansion", "Squeeze").
		least(0, "MLPRatio").multiple("Channels", "Head").probability("AttentionDropout", "MLPDropout").
		that(channel(o.Expansion), "Expansion", "at least 1/Channels").
		that(channel(o.Squeeze), "Squeeze", "at least 1/Channels").
		that(len(o.Channels) == len(o.Layers), "Channels", fmt.Sprintf("as long as Layers, %v", o.Layers))
	if !b.multipleOf(x, o.Partition<<(len(o.Layers)+1)) {
		return nil
	}
	gelu := nn.Activation((*nn.Builder).GELU)
	x = b.norm("stem.0", x, nn.Conv{Filters: o.Stem, Kernel: 3, Stride: 2}, gelu)
	x = b.conv("stem.1.0", x, nn.Conv{Filters: o.Stem, Kernel: 3, Bias: true})
	done, all, in := 0, sum(o.Layers), o.Stem
	for i, n := range o.Layers {
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			name, stride := fmt.Sprintf("blocks.%d.layers.%d.layers", i, j), 1
			if j == 0 {
				stride = 2
			}
			x = o.mbConv(b, name+".MBconv", x, in, o.Channels[i], stride, drop)
			x = o.attention(b, name+".window_attention", x, false, drop)
			x = o.attention(b, name+".grid_attention", x, true, drop)
			in = o.Channels[i]
			done++
		}
	}
	x = b.LayerNorm("classifier.2", b.GlobalAvgPool("classifier.0", x), maxViTEps)
	x = b.Map("classifier.4", expr.Arg(0).Tanh(), b.Linear("classifier.3", x, in))
	weight := b.AddParam(nn.Param{Name: "classifier.5.weight", Shape: op.Shape{b.Config().Classes, in},
		Init: nn.FanInUniform(in)})
	return b.Apply("classifier.5", op.Linear{}, b.Dropout("dropout", x, b.Config().Dropout), weight)
}

// mbConv adds a normalised MBConv to x, which is pooled and projected where shapes differ.
func (o MaxViT) mbConv(b layer, name string, x *G.Node, in, out, stride int, drop float64) *G.Node {
	gelu, wide := nn.Activation((*nn.Builder).GELU), int(float64(out)*o.Expansion)
	shortcut, at := x, 0
	if stride == 2 {
		shortcut, at = b.AvgPool(name+".proj.0", x, 3, 2, 1), 1
	}
	if stride == 2 || in != out {
		shortcut = b.conv(fmt.Sprintf("%s.proj.%d", name, at), shortcut, nn.Conv{Filters: out, Kernel: 1, Bias: true})
	}
	y := b.BatchNorm(name+".layers.pre_norm", x, 1)
	y = b.norm(name+".layers.conv_a", y, nn.Conv{Filters: wide, Kernel: 1}, gelu)
	y = b.norm(name+".layers.conv_b", y, nn.Conv{Filters: wide, Kernel: 3, Stride: stride, Groups: wide}, gelu)
	y = b.SqueezeExcite(name+".layers.squeeze_excitation", y, int(float64(out)*o.Squeeze), (*nn.Builder).SiLU,
		(*nn.Builder).Sigmoid)
	y = b.conv(name+".layers.conv_c", y, nn.Conv{Filters: out, Kernel: 1, Bias: true})
	return b.residual(name, y, shortcut, drop)
}

// attention is a transformer's block for the windows of x [N,C,H,W], or for its grid.
func (o MaxViT) attention(b layer, name string, image *G.Node, grid bool, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s, p := image.Shape(), o.Partition
	n, c := s[0], s[1]
	x := b.partition(name, image, p, grid)

	y := b.LayerNorm(name+".attn_layer.0", x, maxViTEps)
	w := window{Windows: nn.Windows{Height: s[2], Width: s[3], Rows: p, Columns: p}, heads: c / o.Head,
		scale: 1 / math.Sqrt(float64(c)), qkv: ".to_qkv", proj: ".merge", index: []int{p * p, p * p}}
	y = b.rowDropout(name+".attn_layer.2", b.windowAttention(name+".attn_layer.1", y, w), n, o.AttentionDropout)
	x = b.rowResidual(name+".stochastic_dropout", y, x, n, drop)
	y = b.LayerNorm(name+".mlp_layer.0", x, maxViTEps)
	y = b.GELU(name+".mlp_layer.1.gelu", b.Linear(name+".mlp_layer.1", y, o.MLPRatio*c))
	y = b.rowDropout(name+".mlp_layer.4", b.Linear(name+".mlp_layer.3", y, c), n, o.MLPDropout)
	x = b.rowResidual(name+".mlp_layer.stochastic_dropout", y, x, n, drop)
	return b.join(name, x, image, p, grid)
}

// partition are rows of the pixels of images x [N,C,H,W] by windows of p×p pixels, or by those of a grid: pixels that
// lie H/p and W/p apart.
func (b layer) partition(name string, x *G.Node, p int, grid bool) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	n, c, height, width := s[0], s[1], s[2], s[3]
	cut := []int{n, height / p, p, width / p, p, c}
	axes := []int{0, 1, 3, 2, 4, 5} // to [image, row of windows, column of windows, row, column, channel]
	if grid {
		cut = []int{n, p, height / p, p, width / p, c}
		axes = []int{0, 2, 4, 1, 3, 5}
	}
	x = b.Apply(name+".tokens", op.Tokens{}, x)
	x = b.Permute(name+".windows", b.Reshape(name+".cut", x, cut...), axes...)
	return b.Reshape(name+".rows", x, n*height*width, c)
}

// join is the reverse of partition, for images like those of the given node.
func (b layer) join(name string, rows, like *G.Node, p int, grid bool) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := like.Shape()
	n, height, width, c := s[0], s[2], s[3], rows.Shape()[1]
	axes := []int{0, 1, 3, 2, 4, 5}
	if grid {
		axes = []int{0, 3, 1, 4, 2, 5}
	}
	x := b.Reshape(name+".apart", rows, n, height/p, width/p, p, p, c)
	x = b.Reshape(name+".images", b.Permute(name+".together", x, axes...), n, height*width, c)
	return b.Apply(name+".planes", op.Planes{Height: height, Width: width}, x)
}

// maxViTInitial is the initial distribution of a parameter.
func maxViTInitial(p nn.Param) nn.Init {
	switch {
	case len(p.Shape) > 1:
		return nn.Init{Distribution: nn.Normal, Scale: .02}
	case p.Init.Distribution == nn.Uniform: // a bias
		return nn.Init{}
	}
	return p.Init
}
