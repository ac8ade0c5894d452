// Package zoo registers the nets whose weights people load: importing it is enough.
//
//	import _ "onlinerna/nn/zoo"
//
// Names, shapes and order of parameters are torchvision's or timm's, and so are the constants of batch normalisation,
// the initial distributions and the probabilities of dropout.
//
// A file has the options of an architecture and registers its nets; byoanets.go, byobnets.go, clip.go, dinov2.go,
// dinov3.go, eva02.go, lingbot.go, naflexvit.go, res2net.go, ropevit.go, sapiens2.go, siglip.go, swinv2cr.go,
// timmresnet.go, timmswin.go and timmvit.go register more nets of the options ByobNet, ViT, Eva, nn.ResNet and Swin;
// condconv.go, hardcorenas.go, mobilenetv4.go, mobilenetv5.go, pruned.go, timmefficientnet.go and timmmobilenet.go
// those of the options Mobile; cpubone.go those of LowFormer.
//
// The options are those of the constructor in torchvision or timm. Some of its arguments are fields of nn.Config
// instead: num_classes is Classes, dropout and drop_rate are Dropout, stochastic_depth_prob and drop_path_rate are
// DropPath, and zero_init_residual is ZeroInitResidual.
package zoo

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Of pixels on the scale 0 to 1, as torchvision's weights for ImageNet take them.
var (
	imageNetMean = []float64{.485, .456, .406}
	imageNetStd  = []float64{.229, .224, .225}
)

// half is the mean and the standard deviation of weights that take pixels from −1 to 1.
var half = []float64{.5, .5, .5}

// imageNet registers nets for ImageNet's images, unless their fields say otherwise.
func imageNet(list ...nn.Architecture) {
	for _, a := range list {
		if a.Size == 0 {
			a.Size = 224
		}
		if a.Mean == nil {
			a.Mean, a.Std = imageNetMean, imageNetStd
		}
		a.Channels, a.Classes = 3, 1000
		nn.Register(a)
	}
}

// bicubic is the interpolation of weights whose images are not resized bilinearly.
const bicubic = "bicubic"

// cifar registers a net for images of CIFAR.
func cifar(a nn.Architecture) {
	a.Size, a.Channels, a.Classes = 32, 3, 10
	nn.Register(a)
}

// timmBlock finds the blocks of timm's MobileNets and EfficientNets.
const timmBlock = `^(blocks\.\d+\.\d+)\.`

// timmStage finds the stem and the blocks of timm's nets that have stages.
const timmStage = `^(stem|stages\.\d\.blocks\.\d+)\.`

// deepStem finds the convolutions of a ResNet's deep stem, which timm counts as one layer.
const deepStem = `^(conv1)\.`

// layer is a *nn.Builder with the layers that families share. Sizes are odd and padded such that a stride of 1 keeps
// the extent.
type layer struct{ *nn.Builder }

// conv adds a padded convolution.
func (b layer) conv(name string, x *G.Node, c nn.Conv) *G.Node { return b.Conv(name, x, padded(c)) }

// convLater is nn's ConvLater of a padded convolution.
func (b layer) convLater(name string, channels int, c nn.Conv) func(x *G.Node) *G.Node {
	return b.ConvLater(name, channels, padded(c))
}

// padded is c with zeros around its input.
func padded(c nn.Conv) nn.Conv {
	c.Pad = (c.Kernel - 1) / 2 * max(c.Dilation, 1)
	if c.Width > 0 {
		c.PadWidth = (c.Width - 1) / 2 * max(c.Dilation, 1)
	}
	return c
}

// norm adds torchvision's Conv2dNormActivation: the convolution name.0, the batch normalisation name.1 and, unless it
// is nil, the activation.
func (b layer) norm(name string, x *G.Node, c nn.Conv, act nn.Activation) *G.Node {
	return b.convNorm([2]string{name + ".0", name + ".1"}, x, c, act)
}

// convNorm adds a convolution and a batch normalisation of these names and, unless it is nil, the activation.
func (b layer) convNorm(names [2]string, x *G.Node, c nn.Conv, act nn.Activation) *G.Node {
	return b.normThen(names[1], b.conv(names[0], x, c), 1, act)
}

// normThen adds a batch normalisation, whose factor starts as scale, and, unless it is nil, the activation.
func (b layer) normThen(name string, x *G.Node, scale float64, act nn.Activation) *G.Node {
	if x = b.BatchNorm(name, x, scale); act == nil {
		return x
	}
	return act(b.Builder, name+".activation", x)
}

// bnConv is convNorm with the names of timm's ConvNormAct and of torchvision's BasicConv2d.
func (b layer) bnConv(name string, x *G.Node, c nn.Conv, act nn.Activation) *G.Node {
	return b.convNorm([2]string{name + ".conv", name + ".bn"}, x, c, act)
}

// pixel is the mean over the pixels of x, as an image of one.
func (b layer) pixel(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	return b.Reshape(name+".reshape", b.GlobalAvgPool(name, x), x.Shape()[0], x.Shape()[1], 1, 1)
}

// excite is nn's SqueezeExcite with other names of the convolutions.
func (b layer) excite(names [2]string, x *G.Node, outputs int, act, gate nn.Activation) *G.Node {
	if b.Err() != nil {
		return nil
	}
	m := b.Conv(names[0], b.pixel(names[0]+".avgpool", x), nn.Conv{Filters: outputs, Kernel: 1, Bias: true})
	m = b.Conv(names[1], act(b.Builder, names[0]+".activation", m), nn.Conv{Filters: x.Shape()[1], Kernel: 1, Bias: true})
	return b.Scale(names[1]+".scale", x, gate(b.Builder, names[1]+".activation", m))
}

// exciteQuarter is squeeze-and-excitation by a quarter of the channels, a multiple of 8.
func (b layer) exciteQuarter(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	names := [2]string{name + ".fc1", name + ".fc2"}
	return b.excite(names, x, eights(float64(x.Shape()[1])/4), (*nn.Builder).ReLU, (*nn.Builder).Sigmoid)
}

// residual adds x, dropping whole samples of y with probability drop in Train.
func (b layer) residual(name string, y, x *G.Node, drop float64) *G.Node {
	return b.Add(name+".add", b.StochasticDepth(name+".stochastic_depth", y, drop), x)
}

// pathAdd is residual with timm's name of the layer that drops.
func (b layer) pathAdd(name string, y, x *G.Node, drop float64) *G.Node {
	return b.Add(name+".add", b.StochasticDepth(name+".drop_path", y, drop), x)
}

// pooled is the mean over pixels, followed by dropout, a layer of the given name.
func (b layer) pooled(dropout string, x *G.Node) *G.Node {
	return b.Dropout(dropout, b.GlobalAvgPool("avgpool", x), b.Config().Dropout)
}

// meanTo pools x to size×size pixels, each the mean of as many: torchvision's adaptive pooling where size divides x's
// extent. Inputs of fit×fit pixels give an x of that size.
func (b layer) meanTo(name string, x *G.Node, size, fit int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	switch {
	case s[2] == size:
		return x
	case s[2]%size != 0:
		b.Fail(fmt.Errorf("layer %s: %v is not a multiple of %d×%[3]d pixels, which the linear layers take: choose an input "+
			"size of %d", name, s, size, fit))
	}
	return b.AvgPool(name, x, s[2]/size, s[2]/size, 0)
}

// poolUp is kernel×kernel max-pooling with stride 2 of an x that is not negative, where a last window may lie outside
// in part: PyTorch's ceil_mode.
func (b layer) poolUp(name string, x *G.Node, kernel int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	if x.Shape()[2]%2 != kernel%2 {
		x = b.Pad(name+".pad", x, []int{0, 0, 0, 0}, []int{0, 0, 1, 1})
	}
	return b.MaxPool(name, x, kernel, 2, 0)
}

// atLeast fails unless the sides of images x are n pixels or more. It reports whether there is no error so far.
func (b layer) atLeast(x *G.Node, n int) bool {
	if b.Err() != nil {
		return false
	}
	if s := x.Shape(); min(s[2], s[3]) < n {
		b.Fail(fmt.Errorf("images of %d×%d pixels: height and width must be at least %d", s[2], s[3], n))
	}
	return b.Err() == nil
}

// multipleOf reports whether the sides of images x are multiples of n pixels; if not it fails with the sizes that are.
// After an earlier error it reports false.
func (b layer) multipleOf(x *G.Node, n int) bool {
	if b.Err() != nil {
		return false
	}
	s := x.Shape()
	if s[2]%n == 0 && s[3]%n == 0 {
		return true
	}
	fit := fmt.Sprint(s[2]/n*n + n)
	if s[2] > n {
		fit = fmt.Sprintf("%d or %s", s[2]/n*n, fit)
	}
	b.Fail(fmt.Errorf("images of %d×%d pixels: height and width must be multiples of %d: choose an input size of %s", s[2],
		s[3], n, fit))
	return false
}

// rows are the pixels of x [N,C,H,W], one after the other.
func (b layer) rows(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	return b.Reshape(name+".rows", b.Apply(name+".tokens", op.Tokens{}, x), s[0]*s[2]*s[3], s[1])
}

// image is the reverse of rows, of as many images of the same size as like has.
func (b layer) image(name string, rows, like *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := like.Shape()
	rows = b.Reshape(name+".images", rows, s[0], s[2]*s[3], rows.Shape()[1])
	return b.Apply(name+".planes", op.Planes{Height: s[2], Width: s[3]}, rows)
}

// matrix adds the weights of a linear layer.
func (b layer) matrix(name string, out, in int) *G.Node {
	return b.AddParam(nn.Param{Name: name + ".weight", Shape: op.Shape{out, in}, Init: nn.FanInUniform(in)})
}

// bias adds the biases of a linear layer, which start as 0.
func (b layer) bias(name string, out int) *G.Node {
	return b.vector(name+".bias", out, 0)
}

// linearLater adds the parameters of a linear layer. The function that it returns applies them.
func (b layer) linearLater(name string, out, in int) func(x *G.Node) *G.Node {
	weight, bias := b.matrix(name, out, in), b.bias(name, out)
	return func(x *G.Node) *G.Node { return b.Apply(name, op.Linear{}, x, weight, bias) }
}

// unbiased adds a linear layer of rows without biases.
func (b layer) unbiased(name string, x *G.Node, out int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	return b.Apply(name, op.Linear{}, x, b.matrix(name, out, x.Shape()[1]))
}

// linearPart are some outputs of a linear layer. Parts of its parameters are smaller than parts of all outputs.
func (b layer) linearPart(name string, rows *G.Node, from, to int, parameters ...*G.Node) *G.Node {
	in := []*G.Node{rows}
	for i, p := range parameters {
		in = append(in, b.Slice(name+[]string{".weight", ".bias"}[i], p, 0, from, to))
	}
	return b.Apply(name, op.Linear{}, in...)
}

// vector adds n numbers that start as initial.
func (b layer) vector(name string, n int, initial float64) *G.Node {
	return b.AddParam(nn.Param{Name: name, Shape: op.Shape{n}, BiasOrNorm: true, Init: nn.Init{Scale: initial}})
}

// factors adds vectors that start as initial: factors of a block's branches. They are nil if initial is 0.
func (b layer) factors(initial float64, width int, names ...string) []*G.Node {
	list := make([]*G.Node, len(names))
	for i, name := range names {
		if initial != 0 {
			list[i] = b.vector(name, width, initial)
		}
	}
	return list
}

// times multiplies x by factors, unless they are nil.
func (b layer) times(name string, x, factors *G.Node) *G.Node {
	if factors == nil {
		return x
	}
	return b.Scale(name, x, factors)
}

// gammas multiplies the channels of rows or images by trained factors name.gamma that start as initial, unless that is
// 0.
func (b layer) gammas(name string, x *G.Node, initial float64) *G.Node {
	if b.Err() != nil || initial == 0 {
		return x
	}
	return b.Scale(name, x, b.vector(name+".gamma", x.Shape()[1], initial))
}

// scalars adds a factor and a summand that n channels share. They are repeated, since gradients of channels are summed
// up faster than those of a scalar.
func (b layer) scalars(name string, n int) (scale, bias *G.Node) {
	scale, bias = b.vector(name+".scale", 1, 1), b.vector(name+".bias", 1, 0)
	return b.Expand(name+".scales", scale, n), b.Expand(name+".biases", bias, n)
}

// embedding adds n tokens, or places of tokens.
func (b layer) embedding(name string, n, width int) *G.Node {
	return b.AddParam(nn.Param{Name: name, Shape: op.Shape{1, n, width}, BiasOrNorm: true,
		Init: nn.Init{Distribution: nn.Normal, Scale: .02}})
}

// keyless is the bias of queries, keys and values, of which keys have none.
func (b layer) keyless(name string, queries, values *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	keys := b.Constant(name+".k_bias", op.New(op.T(op.Float64, queries.Shape()[0])))
	return b.Concat(name+".qkv.bias", 0, queries, keys, values)
}

// sharedNorm adds the parameters of a layer normalisation of several rows.
func (b layer) sharedNorm(name string, width int, eps float64) func(part string, x *G.Node) *G.Node {
	weight, bias := b.vector(name+".weight", width, 1), b.bias(name, width)
	return func(part string, x *G.Node) *G.Node {
		return b.Apply(name+part, op.LayerNorm{Eps: eps}, x, weight, bias)
	}
}

// perceptron has two linear layers and a GELU, and as many outputs as inputs.
func (b layer) perceptron(name string, x *G.Node, hidden int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	y := b.GELU(name+".act", b.Linear(name+".fc1", x, hidden))
	return b.Linear(name+".fc2", y, x.Shape()[1])
}

// swiGLU is a hidden layer of a perceptron: SiLU of a linear layer's outputs times those of another. They have a matrix
// each if they are separate, fc1_g and fc1_x, else one, fc1.
func (b layer) swiGLU(name string, x *G.Node, hidden int, separate bool,
	linear func(name string, x *G.Node, out int) *G.Node) *G.Node {
	gated := expr.Arg(0).Mul(expr.Arg(0).Sigmoid()).Mul(expr.Arg(1))
	if separate {
		gate := linear(name+".fc1_g", x, hidden)
		return b.Map(name+".act", gated, gate, linear(name+".fc1_x", x, hidden))
	}
	x = linear(name+".fc1", x, 2*hidden)
	gate := b.Slice(name+".gate", x, 1, 0, hidden)
	return b.Map(name+".act", gated, gate, b.Slice(name+".gated", x, 1, hidden, 2*hidden))
}

// meanWithin is the mean of those of 3×3 pixels that lie within images x, as a product: of the mean of all, zeros
// around, and of an image [1,1,height,width].
func (b layer) meanWithin(name string, x *G.Node) (mean, by *G.Node) {
	return b.meansWithin(name, x, 1)
}

// meansWithin is meanWithin with a stride.
func (b layer) meansWithin(name string, x *G.Node, stride int) (mean, by *G.Node) {
	if b.Err() != nil {
		return nil, nil
	}
	s := x.Shape()
	height, width := (s[2]-1)/stride+1, (s[3]-1)/stride+1
	t := op.New(op.T(op.Float64, 1, 1, height, width))
	count := func(i, n int) float64 { return float64(min(i*stride+1, n-1) - max(i*stride-1, 0) + 1) }
	for i := range t.Data.([]float64) {
		t.Data.([]float64)[i] = 9 / (count(i/width, s[2]) * count(i%width, s[3]))
	}
	return b.AvgPool(name+".pool", x, 3, stride, 1), b.Constant(name+".by", t)
}

// sum is that of a list.
func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

// smallSquare is the square of an eighth, for sums of squares: in float16 squares are infinite from 256 on.
var smallSquare = expr.Arg(0).Scale(1. / 8).Square()

// meanOfTwo is that of two logits.
var meanOfTwo = expr.Arg(0).Add(expr.Arg(1)).Scale(.5)

// ofSmallSquares is the sum of squares by that of smallSquares.
func ofSmallSquares(sum expr.Expr) expr.Expr { return sum.Scale(64) }

var relu6 nn.Activation = func(b *nn.Builder, name string, x *G.Node) *G.Node {
	return b.Map(name, expr.Arg(0).Clamp(0, 6), x)
}

// divisible rounds a number of channels to a multiple of 8, and not by more than a tenth down.
func divisible(channels float64) int { return divisibleBy(channels, 8) }

func divisibleBy(channels float64, by int) int {
	n := max(by, int(channels+float64(by)/2)/by*by)
	if float64(n) < .9*channels {
		n += by
	}
	return n
}

// eights rounds a number of channels to the nearest multiple of 8 that is at least 8.
func eights(channels float64) int { return max(8, int(channels+4)/8*8) }

// torchInit are PyTorch's own initial values of convolutions, which nets have that set none.
func torchInit(p nn.Param) nn.Init {
	if len(p.Shape) == 4 {
		return nn.FanInUniform(p.Shape[1:].Size())
	}
	return p.Init
}

// truncated gives linear layers weights of a standard deviation, and biases 0. Convolutions are PyTorch's own.
func truncated(deviation float64) func(p nn.Param) nn.Init {
	return func(p nn.Param) nn.Init {
		switch {
		case p.Groups > 0:
			return torchInit(p)
		case p.Init.Distribution == nn.Constant:
			return p.Init
		}
		return normal(deviation)(p)
	}
}

// normal gives linear layers weights of a standard deviation, and biases 0. Convolutions are as nn's.
func normal(deviation float64) func(p nn.Param) nn.Init {
	return func(p nn.Param) nn.Init {
		switch {
		case len(p.Shape) == 2:
			return nn.Init{Distribution: nn.Normal, Scale: deviation}
		case p.Init.Distribution == nn.Uniform: // a bias
			return nn.Init{}
		}
		return p.Init
	}
}

// google gives convolutions weights by their outputs in a group, and linear layers weights within ±1/√outputs, as timm
// does. Biases start at 0.
func google(p nn.Param) nn.Init {
	if len(p.Shape) == 4 {
		return nn.HeNormal(p.Shape[0]/max(p.Groups, 1), p.Shape[2]*p.Shape[3])
	}
	return uniform(1)(p)
}

// uniform gives linear layers weights within ±scale/√outputs, and biases 0. Convolutions are as nn's.
func uniform(scale float64) func(p nn.Param) nn.Init {
	return func(p nn.Param) nn.Init {
		switch {
		case len(p.Shape) == 2:
			return nn.Init{Distribution: nn.Uniform, Scale: scale / math.Sqrt(float64(p.Shape[0]))}
		case p.Init.Distribution == nn.Uniform:
			return nn.Init{}
		}
		return p.Init
	}
}
