package zoo

import (
	"fmt"
	"math"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name string
		net  SwiftFormer
	}{
		{"xs", SwiftFormer{Blocks: [4]int{3, 3, 6, 4}, Channels: [4]int{48, 56, 112, 220}}},
		{"s", SwiftFormer{Blocks: [4]int{3, 3, 9, 6}, Channels: [4]int{48, 64, 168, 224}}},
		{"l1", SwiftFormer{Blocks: [4]int{4, 3, 10, 5}, Channels: [4]int{48, 96, 192, 384}}},
		{"l3", SwiftFormer{Blocks: [4]int{4, 4, 12, 6}, Channels: [4]int{64, 128, 320, 512}}},
	} {
		imageNet(nn.Architecture{
			Name:    "swiftformer_" + v.name,
			Family:  "swiftformer",
			Summary: fmt.Sprintf("SwiftFormer-%s, with timm's names", strings.ToUpper(v.name)),
			Reference: "Shaker et al., SwiftFormer: efficient additive attention for transformer-based real-time mobile " +
				"vision applications, 2023",
			Resize:        235,
			Interpolation: bicubic,
			Block:         `^(stem|stages\.\d\.(?:blocks\.\d+|downsample))\.`,
			Heads:         []string{"head", "head_dist"},
			Init:          swiftFormerInitial,
			Build:         v.net.Build,
		})
	}
}

// SwiftFormer are the options of a net of depthwise convolutions, with additive attention at the end of each stage.
type SwiftFormer struct {
	Blocks   [4]int // of each stage; timm's layers
	Channels [4]int // of each stage, the first even; timm's embed_dims
}

// Build adds the layers to b.
func (o SwiftFormer) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("SwiftFormer", o).least(1, "Blocks", "Channels").
		that(o.Channels[0]%2 == 0, "Channels", "even in the first stage").ok() {
		return nil
	}
	c := o.Channels[0]
	relu := nn.Activation((*nn.Builder).ReLU)
	x = b.convNorm([2]string{"stem.0", "stem.1"}, x, nn.Conv{Filters: c / 2, Kernel: 3, Stride: 2, Bias: true}, relu)
	x = b.convNorm([2]string{"stem.3", "stem.4"}, x, nn.Conv{Filters: c, Kernel: 3, Stride: 2, Bias: true}, relu)
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		c = o.Channels[i]
		if i > 0 {
			name := fmt.Sprintf("stages.%d.downsample", i)
			down := nn.Conv{Filters: c, Kernel: 3, Stride: 2, Bias: true}
			x = b.convNorm([2]string{name + ".proj", name + ".norm"}, x, down, nil)
		}
		for j := range n {
			name, drop := fmt.Sprintf("stages.%d.blocks.%d", i, j), b.Config().DropPathAt(done, all)
			if j < n-1 {
				x = b.swiftConv(name, x, 4*c, drop)
			} else {
				x = b.swiftBlock(name, b.swiftConv(name+".local_representation", x, c, 0), drop)
			}
			done++
		}
	}
	x = b.GlobalAvgPool("pool", b.BatchNorm("norm", x, 1))
	return b.twoHeads(b.Dropout("head_drop", x, b.Config().Dropout))
}

// swiftConv adds a depthwise convolution and a perceptron, times factors, to x.
func (b layer) swiftConv(name string, x *G.Node, wide int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	deep := nn.Conv{Filters: c, Kernel: 3, Groups: c, Bias: true}
	y := b.BatchNorm(name+".norm", b.conv(name+".dwconv", x, deep), 1)
	y = b.GELU(name+".act", b.conv(name+".pwconv1", y, nn.Conv{Filters: wide, Kernel: 1, Bias: true}))
	y = b.gamma(name+".layer_scale", b.conv(name+".pwconv2", y, nn.Conv{Filters: c, Kernel: 1, Bias: true}), 1)
	return b.pathAdd(name, y, x, drop)
}

// swiftBlock adds attention and a perceptron, times factors, to x.
func (b layer) swiftBlock(name string, x *G.Node, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	y := b.additive(name+".attn", x)
	norm := b.BatchNormLater(name+".linear.norm1", c, 1, 1e-5)
	first := b.convLater(name+".linear.fc1", c, nn.Conv{Filters: 4 * c, Kernel: 1, Bias: true})
	last := b.convLater(name+".linear.fc2", 4*c, nn.Conv{Filters: c, Kernel: 1, Bias: true})
	y = b.StochasticDepth(name+".drop_path1", b.gamma(name+".layer_scale_1", y, 1e-5), drop)
	x = b.Add(name+".add1", y, x)
	y = last(b.GELU(name+".linear.act", first(norm(x))))
	y = b.StochasticDepth(name+".drop_path2", b.gamma(name+".layer_scale_2", y, 1e-5), drop)
	return b.Add(name+".add2", y, x)
}

// additive multiplies the keys of pixels by a mean of their queries, whose weights are trained projections.
func (b layer) additive(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	n, c, t := s[0], s[1], s[2]*s[3]
	project := b.Reshape(name+".projection", b.AddParam(nn.Param{Name: name + ".w_g", Shape: op.Shape{c, 1},
		Init: nn.Init{Distribution: nn.Normal, Scale: 1}}), 1, c)
	rows := b.rows(name, x)
	q := b.unit(name+".query", b.Linear(name+".to_query", rows, c))
	k := b.Reshape(name+".keys", b.unit(name+".key", b.Linear(name+".to_key", rows, c)), n, t, c)
	w := b.Reshape(name+".scores", b.Apply(name+".project", op.Linear{}, q, project), n, t)
	w = b.unit(name+".weights", b.Map(name+".scaled", expr.Arg(0).Scale(1/math.Sqrt(float64(c))), w))
	times := expr.Arg(0).Mul(expr.Arg(1))
	mean := b.Map(name+".weighed", times, b.Reshape(name+".queries", q, n, t, c), b.Reshape(name+".by_pixel", w, n, t, 1))
	y := b.Map(name+".mixed", times, k, b.Reduce(name+".mean", mean, op.Sum, 1))
	y = b.Add(name+".add", b.Linear(name+".proj", b.Reshape(name+".rows2", y, n*t, c), c), q)
	return b.image(name, b.Linear(name+".final", y, c), x)
}

// unit divides rows by their Euclidean norms.
func (b layer) unit(name string, x *G.Node) *G.Node {
	squares := b.Reduce(name+".squares", b.Map(name+".squared", smallSquare, x), op.Sum, 1)
	const least = 1e-12
	norm := ofSmallSquares(expr.Arg(1)).Max(expr.Const(least * least)).Sqrt()
	return b.Map(name+".unit", expr.Arg(0).Div(norm), x, squares)
}

// swiftFormerInitial is the initial distribution of a parameter.
func swiftFormerInitial(p nn.Param) nn.Init {
	if strings.HasSuffix(p.Name, ".w_g") {
		return p.Init
	}
	return convNeXtInitial(p)
}
