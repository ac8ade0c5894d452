package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		size string
		net  EfficientViM
	}{
		{"m1", EfficientViM{Channels: [3]int{128, 192, 320}, Blocks: [3]int{2, 2, 2}, States: [3]int{49, 25, 9}}},
		{"m2", EfficientViM{Channels: [3]int{128, 256, 512}, Blocks: [3]int{2, 2, 2}, States: [3]int{49, 25, 9}}},
		{"m3", EfficientViM{Channels: [3]int{224, 320, 512}, Blocks: [3]int{2, 2, 2}, States: [3]int{49, 25, 9}}},
		{"m4", EfficientViM{Channels: [3]int{224, 320, 512}, Blocks: [3]int{3, 4, 2}, States: [3]int{64, 32, 16}}},
	} {
		for _, distilled := range []bool{false, true} {
			v.net.Distilled = distilled
			a := nn.Architecture{
				Name:    "efficientvim_" + v.size,
				Family:  "efficientvim",
				Summary: fmt.Sprintf("EfficientViM-%s, with timm's names", strings.ToUpper(v.size)),
				Reference: "Lee et al., EfficientViM: efficient vision Mamba with hidden state mixer based state space " +
					"duality, 2025",
				Resize:        256,
				Interpolation: bicubic,
				Block:         `^(patch_embed|stages\.\d\.(?:blocks\.\d+|downsample))\.`,
				Heads:         v.net.heads(),
				Init:          vimInitial,
				Build:         v.net.Build,
			}
			if v.size == "m4" {
				a.Size, a.Resize = 256, 292
			}
			if distilled {
				a.Name += "_dist"
				a.Summary = strings.Replace(a.Summary, ",", " with heads for a teacher's labels,", 1)
			}
			imageNet(a)
		}
	}
}

// EfficientViM are the options of a net whose blocks mix few states, which are weighted sums of all pixels.
type EfficientViM struct {
	Channels  [3]int // of each stage, the first divisible by 8; timm's embed_dim
	Blocks    [3]int // of each stage; timm's depths
	States    [3]int // of each stage's blocks; timm's state_dim
	Distilled bool   // logits are the mean of those of two kinds of heads: timm's EfficientViMDistilled
}

// heads are the names of the layers that make the logits.
func (o EfficientViM) heads() (list []string) {
	for _, kind := range o.kinds() {
		for i := range 4 {
			list = append(list, fmt.Sprintf("heads%s.%d", kind, i))
		}
	}
	return list
}

// kinds are the ends of the names of heads and of their weights.
func (o EfficientViM) kinds() []string {
	if o.Distilled {
		return []string{"", "_dist"}
	}
	return []string{""}
}

// Build adds the layers to b.
func (o EfficientViM) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("EfficientViM", o).least(1, "Channels", "Blocks", "States").
		that(o.Channels[0]%8 == 0, "Channels", "divisible by 8 in the first stage").ok() {
		return nil
	}
	c := o.Channels[0]
	for i := range 4 {
		name := fmt.Sprintf("patch_embed.conv.%d", i)
		if x = b.convNormed(name, x, nn.Conv{Filters: c >> (3 - i), Kernel: 3, Stride: 2}); i < 3 {
			x = b.ReLU(name+".act", x)
		}
	}
	var features []*G.Node // [N,C] each
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		name := fmt.Sprintf("stages.%d", i)
		var states *G.Node
		for j := range n {
			x, states = o.block(b, fmt.Sprintf("%s.blocks.%d", name, j), x, o.States[i], b.Config().DropPathAt(done, all))
			done++
		}
		features = append(features, states)
		if i < 2 {
			x = o.downsample(b, name+".downsample", x, o.Channels[i+1])
		}
	}
	if b.Err() != nil {
		return nil
	}
	images := x.Shape()[0]
	for i, y := range features { // the means of normalised states
		name := fmt.Sprintf("norm.%d", i)
		y = b.Reshape(name+".states", b.LayerNorm(name, y, vimEps), images, o.States[i], o.Channels[i])
		features[i] = b.Reshape(name+".mean", b.Reduce(name+".pool", y, op.Mean, 1), images, o.Channels[i])
	}
	features = append(features, b.GlobalAvgPool("pool", b.pixelNormBy("norm.3", x, vimEps)))
	x = b.Dropout("head_drop", b.Concat("features", 1, features...), b.Config().Dropout)
	var weights, logits []*G.Node
	for _, kind := range o.kinds() {
		weights = append(weights, b.vector("weights"+kind, 4, 1))
	}
	for i, kind := range o.kinds() {
		logits = append(logits, o.head(b, kind, x, weights[i]))
	}
	b.Order(func(name string) int {
		if strings.HasPrefix(name, "weights") {
			return 0
		}
		return 1
	})
	if o.Distilled {
		return b.Map("mean", meanOfTwo, logits[0], logits[1])
	}
	return logits[0]
}

// vimEps is added to variances.
const vimEps = 1e-5

// head adds up the logits of four linear layers of parts of x, weighted by a softmax.
func (o EfficientViM) head(b layer, kind string, x, weights *G.Node) *G.Node {
	shares := b.Softmax("weights"+kind+".softmax", b.Reshape("weights"+kind+".row", weights, 1, 4))
	from, sum := 0, expr.Const(0)
	var in []*G.Node
	for i, c := range []int{o.Channels[0], o.Channels[1], o.Channels[2], o.Channels[2]} {
		name := fmt.Sprintf("heads%s.%d", kind, i)
		y := b.Linear(name, b.Slice(name+".part", x, 1, from, from+c), b.Config().Classes)
		share := b.Reshape(name+".one", b.Slice(name+".share", shares, 1, i, i+1), 1)
		in = append(in, y, b.Expand(name+".shares", share, b.Config().Classes))
		sum = sum.Add(expr.Arg(2 * i).Mul(expr.Arg(2*i + 1)))
		from += c
	}
	return b.Map("heads"+kind, sum, in...)
}

// convNormed is a convolution and a normalisation.
func (b layer) convNormed(name string, x *G.Node, c nn.Conv) *G.Node {
	return b.BatchNorm(name+".norm", b.conv(name+".conv", x, c), 1)
}

// downsample halves the extent of x by an inverted residual between depthwise convolutions.
func (o EfficientViM) downsample(b layer, name string, x *G.Node, out int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c, wide := x.Shape()[1], 4*out
	x = b.Add(name+".add1", b.convNormed(name+".dwconv1", x, nn.Conv{Filters: c, Kernel: 3, Groups: c}), x)
	x = b.ReLU(name+".act1", b.convNormed(name+".conv.0", x, nn.Conv{Filters: wide, Kernel: 1}))
	x = b.convNormed(name+".conv.1", x, nn.Conv{Filters: wide, Kernel: 3, Stride: 2, Groups: wide})
	x = b.exciteQuarter(name+".conv.2", b.ReLU(name+".act2", x))
	x = b.convNormed(name+".conv.3", x, nn.Conv{Filters: out, Kernel: 1})
	x = b.Add(name+".add2", b.convNormed(name+".dwconv2", x, nn.Conv{Filters: out, Kernel: 3, Groups: out}), x)
	b.declared(name, "conv", "dwconv1", "dwconv2")
	return x
}

// block moves x towards four functions of it, one after the other, by trained shares of the way for each channel. It
// also returns the states, rows of each image, of the second. drop is the probability of no move in Train.
func (o EfficientViM) block(b layer, name string, x *G.Node, states int, drop float64) (y, hidden *G.Node) {
	if b.Err() != nil {
		return nil, nil
	}
	c := x.Shape()[1]
	deep := nn.Conv{Filters: c, Kernel: 3, Groups: c}
	alpha := b.AddParam(nn.Param{Name: name + ".alpha", Shape: op.Shape{4, c}, Init: nn.Init{Scale: 1e-4}})
	towards := func(i int, y *G.Node) {
		part := fmt.Sprintf("%s.alpha%d", name, i)
		share := b.Reshape(part, b.Slice(part+".row", alpha, 0, i, i+1), c)
		y = b.Map(part+".way", expr.Arg(0).Sub(expr.Arg(1)).Mul(expr.Arg(2).Sigmoid()), y, x, share)
		x = b.Add(part+".add", b.StochasticDepth(fmt.Sprintf("%s.drop_path.%d", name, i), y, drop), x)
	}
	towards(0, b.convNormed(name+".dwconv1", x, deep))
	y, hidden = o.mix(b, name+".mixer", b.pixelNormBy(name+".norm", x, vimEps), states)
	towards(1, y)
	towards(2, b.convNormed(name+".dwconv2", x, deep))
	y = b.ReLU(name+".ffn.act", b.convNormed(name+".ffn.fc1", x, nn.Conv{Filters: 4 * c, Kernel: 1}))
	towards(3, b.convNormed(name+".ffn.fc2", y, nn.Conv{Filters: c, Kernel: 1}))
	b.declared(name, "alpha", "mixer", "norm", "dwconv1", "dwconv2", "ffn")
	return x, hidden
}

// mix gives each pixel of x a weighted sum of states: gated linear functions of weighted sums of the pixels. It also
// returns the states, rows of each image.
func (o EfficientViM) mix(b layer, name string, x *G.Node, states int) (y, hidden *G.Node) {
	if b.Err() != nil {
		return nil, nil
	}
	s := x.Shape()
	n, c, pixels := s[0], s[1], s[2]*s[3]
	decay := b.AddParam(nn.Param{Name: name + ".A", Shape: op.Shape{states}, BiasOrNorm: true,
		Init: nn.Init{Distribution: nn.Uniform, Scale: 7.5, Mean: 8.5}})
	direct := b.vector(name+".D", 1, 1)
	point := func(part string, rows *G.Node, out int) *G.Node {
		in := rows.Shape()[1]
		w := b.AddParam(nn.Param{Name: name + part + ".conv.weight", Shape: op.Shape{out, in}, Stored: op.Shape{out, in, 1},
			Groups: 1, Init: nn.FanInUniform(in)})
		return b.Apply(name+part, op.Linear{}, rows, w)
	}
	rows := b.rows(name, x)
	if b.Err() != nil {
		return nil, nil
	}
	y = b.image(name+".BCdt", point(".BCdt_proj", rows, 3*states), x)
	y = b.conv(name+".dw.conv", y, nn.Conv{Filters: 3 * states, Kernel: 3, Groups: 3 * states})
	y = b.Reshape(name+".maps", y, n, 3*states, pixels)
	in, out := b.Slice(name+".B", y, 1, 0, states), b.Slice(name+".C", y, 1, states, 2*states)
	step := b.Slice(name+".dt", y, 1, 2*states, 3*states)
	// A shifts all scores of a state, which leaves their softmax as it is.
	scores := b.Map(name+".scores", expr.Arg(0).Add(expr.Arg(1)), step, decay)
	by := b.Map(name+".by", expr.Arg(0).Mul(expr.Arg(1)), b.Softmax(name+".softmax", scores), in)
	h := b.MatMul(name+".states", by, b.Reshape(name+".pixels", rows, n, pixels, c), false)
	h = b.Reshape(name+".states.rows", h, n*states, c)
	if b.Err() != nil {
		return nil, nil
	}
	h = point(".hz_proj", h, 2*c)
	gated := expr.Arg(0).Mul(expr.Arg(1).Mul(expr.Arg(1).Sigmoid()).Add(expr.Arg(2)))
	h = b.Map(name+".gated", gated, b.Slice(name+".h", h, 1, 0, c), b.Slice(name+".z", h, 1, c, 2*c),
		b.Expand(name+".D.all", direct, c))
	if b.Err() != nil {
		return nil, nil
	}
	h = point(".out_proj", h, c)
	y = b.Apply(name+".sums", op.MatMul{TransA: true}, out, b.Reshape(name+".mixed", h, n, states, c))
	return b.image(name, b.Reshape(name+".sums.rows", y, n*pixels, c), x), h
}

// vimInitial is the initial distribution of a parameter.
func vimInitial(p nn.Param) nn.Init {
	if strings.HasSuffix(p.Name, ".A") {
		return p.Init
	}
	return truncated(.02)(p)
}
