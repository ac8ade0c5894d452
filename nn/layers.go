package nn

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// Conv describes a convolution. Zero Stride, Dilation and Groups mean 1.
type Conv struct {
	Filters  int // output channels
	Kernel   int // height, and width unless Width has it
	Stride   int
	Pad      int // rows of zeros at each side, and columns unless Width is set
	Dilation int
	Groups   int
	Bias     bool

	// Width and PadWidth are the kernel's width and the columns of zeros at each side, of kernels that are not square. A
	// zero Width means Kernel and Pad.
	Width, PadWidth int

	// StdEps standardises the weights w of each filter: (w − mean)/√(variance + StdEps) (Qiao et al. 2019). 0 leaves
	// them as they are. It is the eps of timm's StdConv2d.
	StdEps float64
	// Gain multiplies standardised weights by Gain/√(weights of a filter) and by a parameter name.gain [Filters,1,1,1],
	// which starts as 1. 0 does not. It is the gamma of timm's ScaledStdConv2d.
	Gain float64
}

// kernel is the height and the width of the kernel.
func (c Conv) kernel() [2]int { return [2]int{c.Kernel, cmp.Or(c.Width, c.Kernel)} }

// pad is the rows and columns of zeros at each side.
func (c Conv) pad() [2]int {
	if c.Width == 0 {
		return square(c.Pad)
	}
	return [2]int{c.Pad, c.PadWidth}
}

// ok reports whether the fields make a convolution.
func (c Conv) ok() bool {
	return c.Filters > 0 && c.Kernel > 0 && min(c.Stride, c.Pad, c.Dilation, c.Groups, c.Width, c.PadWidth) >= 0 &&
		(c.Width > 0 || c.PadWidth == 0) && c.StdEps >= 0 && c.Gain >= 0 && (c.StdEps > 0 || c.Gain == 0)
}

// Conv adds a convolution of x [N,C,H,W] with parameters name.weight [Filters,C/Groups,height,width] and, if asked for,
// name.bias [Filters] and name.gain. The first two start as HeNormal and, as PyTorch's, FanInUniform.
func (b *Builder) Conv(name string, x *G.Node, c Conv) *G.Node {
	s, ok := b.shape(name, x, 4)
	if !ok {
		return nil
	}
	return b.ConvLater(name, s[1], c)(x)
}

// ConvLater adds the parameters of a Conv of images with the given channels. The function that it returns convolves
// images by them: nets may list their tensors in another order than they use them.
func (b *Builder) ConvLater(name string, channels int, c Conv) func(x *G.Node) *G.Node {
	kernels := b.kernels(name, channels, c)
	return func(x *G.Node) *G.Node { return b.convolve(name, x, c, kernels) }
}

// ConvBy is Conv by weights [Filters,C/Groups,height,width] that other layers make, without a bias.
func (b *Builder) ConvBy(name string, x, weights *G.Node, c Conv) *G.Node {
	if !b.claim(name) {
		return nil
	}
	return b.convolve(name, x, c, []*G.Node{weights})
}

// kernels adds the parameters of a convolution of images with the given channels.
func (b *Builder) kernels(name string, channels int, c Conv) []*G.Node {
	if !b.claim(name) {
		return nil
	}
	if !c.ok() {
		b.err = fmt.Errorf("layer %s: %+v is no convolution", name, c)
		return nil
	}
	groups := max(c.Groups, 1)
	if channels%groups != 0 || c.Filters%groups != 0 {
		b.err = fmt.Errorf("layer %s: %d groups do not divide %d channels and %d filters", name, groups, channels,
			c.Filters)
		return nil
	}
	kernel := c.kernel()
	list := []*G.Node{b.param(Param{
		Name:   name + ".weight",
		Shape:  op.Shape{c.Filters, channels / groups, kernel[0], kernel[1]},
		Init:   HeNormal(c.Filters, kernel[0]*kernel[1]),
		Groups: groups,
	})}
	if c.Bias {
		list = append(list, b.param(Param{
			Name:       name + ".bias",
			Shape:      op.Shape{c.Filters},
			Init:       FanInUniform(channels / groups * kernel[0] * kernel[1]),
			Groups:     groups,
			BiasOrNorm: true,
		}))
	}
	if c.Gain > 0 {
		list = append(list, b.param(Param{Name: name + ".gain", Shape: op.Shape{c.Filters, 1, 1, 1}, Init: Init{Scale: 1}}))
	}
	return list
}

// standardised are the parameters of kernels, with the weights that a convolution of StdEps takes.
func (b *Builder) standardised(name string, c Conv, kernels []*G.Node) []*G.Node {
	if b.err != nil || c.StdEps == 0 {
		return kernels
	}
	w := op.Shape(kernels[0].Shape())
	list := slices.Clone(kernels)
	var scale *G.Node
	if c.Gain > 0 {
		last := len(list) - 1
		scale = b.apply(name, op.Reshape{Shape: op.Shape{c.Filters}}, b.apply(name, op.Taps{}, list[last]))
		scale = b.apply(name, op.Map{Expr: x0.Scale(c.Gain / math.Sqrt(float64(w[1:].Size())))}, scale)
		list = list[:last]
	} else {
		scale = b.filled(name+".ones", c.Filters, 1)
	}
	x := b.apply(name, op.Taps{}, list[0])
	x = b.apply(name, op.GroupNorm{Groups: c.Filters, Eps: c.StdEps}, x, scale, b.filled(name+".zeros", c.Filters, 0))
	list[0] = b.apply(name, op.Filters{Height: w[2], Width: w[3]}, x)
	return list
}

// filled is a vector of a constant.
func (b *Builder) filled(name string, n int, v float64) *G.Node {
	return b.Constant(name, op.Tensor{Shape: op.Shape{n}, Data: slices.Repeat([]float64{v}, n)})
}

// convolve convolves x with the parameters of kernels.
func (b *Builder) convolve(name string, x *G.Node, c Conv, kernels []*G.Node) *G.Node {
	s, ok := b.shape(name, x, 4)
	if !ok {
		return nil
	}
	if b.model.Config.BlurPool && c.Stride > 1 && s[1] >= 16 {
		x = b.blur(name, x)
	}
	pad := c.pad()
	if b.model.Arch.SamePadding && c.Stride > 1 {
		x, pad = b.same(name, x, s, c)
	}
	o := op.Conv2D{
		Stride:   square(max(c.Stride, 1)),
		Pad:      pad,
		Dilation: square(max(c.Dilation, 1)),
		Groups:   max(c.Groups, 1),
	}
	return b.apply(name, o, append([]*G.Node{x}, b.standardised(name, c, kernels)...)...)
}

// same pads x, of shape s, as TensorFlow's SAME does for a convolution, if that adds more zeros behind x than before.
// Otherwise the convolution itself pads by the returned numbers.
func (b *Builder) same(name string, x *G.Node, s op.Shape, c Conv) (*G.Node, [2]int) {
	before, after := make([]int, 4), make([]int, 4)
	for i := 2; i < 4; i++ {
		zeros := max(0, (s[i]-1)/c.Stride*c.Stride+(c.kernel()[i-2]-1)*max(c.Dilation, 1)+1-s[i])
		before[i], after[i] = zeros/2, zeros-zeros/2
	}
	if slices.Equal(before, after) {
		return x, [2]int{before[2], before[3]}
	}
	return b.apply(name, op.Pad{Before: before, After: after}, x), [2]int{}
}

// blur convolves each channel of x with the kernel 1 2 1 in both directions, over 16, zeros around: the mean of two and
// two again.
func (b *Builder) blur(name string, x *G.Node) *G.Node {
	two, one := square(2), square(1)
	x = b.apply(name, op.AvgPool{Kernel: two, Stride: one, Pad: one}, x)
	return b.apply(name, op.AvgPool{Kernel: two, Stride: one}, x)
}

// BatchNorm adds a batch normalisation of x [N,C,H,W] with parameters name.weight and name.bias [C] and running
// statistics. scale is the initial value of name.weight, 1 as a rule; the variance's ε is Architecture.BatchNormEps.
//
// In Train it normalises with the statistics of the batch and updates the running ones by running ← (1−m)·running +
// m·(mean, unbiased variance), m being Model.BatchNormMomentum. Where Config.Freeze has both parameters it normalises
// with the running ones, which stay.
func (b *Builder) BatchNorm(name string, x *G.Node, scale float64) *G.Node {
	return b.BatchNormEps(name, x, scale, b.model.Arch.BatchNormEps)
}

// BatchNormEps is BatchNorm with an ε of its own.
func (b *Builder) BatchNormEps(name string, x *G.Node, scale, eps float64) *G.Node {
	s, ok := b.shape(name, x, 4)
	if !ok {
		return nil
	}
	return b.BatchNormLater(name, s[1], scale, eps)(x)
}

// BatchNormLater adds the parameters and statistics of BatchNormEps for c channels. The function that it returns
// applies them, once: nets may list their tensors in another order than they use them.
func (b *Builder) BatchNormLater(name string, c int, scale, eps float64) func(x *G.Node) *G.Node {
	if !b.claim(name) {
		return func(*G.Node) *G.Node { return nil }
	}
	m := b.model
	weight := b.param(Param{Name: name + ".weight", Shape: op.Shape{c}, Init: Init{Scale: scale}, BiasOrNorm: true})
	bias := b.param(Param{Name: name + ".bias", Shape: op.Shape{c}, Init: Init{}, BiasOrNorm: true})
	st := Stat{Name: name, Channels: c}
	st.Node = b.input(name+".running", op.T(m.Config.DType, 2, c))
	if k := len(m.Params); b.err == nil {
		st.Frozen = m.Params[k-2].Frozen && m.Params[k-1].Frozen
	}
	i := len(m.Stats)
	m.Stats = append(m.Stats, st)
	dtype := m.Config.DType.String()
	m.entries = append(m.entries,
		Entry{name + ".running_mean", op.Shape{c}, dtype, RunningMean, i, nil, false},
		Entry{name + ".running_var", op.Shape{c}, dtype, RunningVar, i, nil, false},
		Entry{name + ".num_batches_tracked", op.Shape{}, "int64", BatchesTracked, i, nil, false})
	return func(x *G.Node) *G.Node {
		s, ok := b.shape(name, x, 4)
		if !ok {
			return nil
		}
		st := &m.Stats[i]
		st.Count = s[0] * s[2] * s[3]
		used, fixed := st.Node, m.Config.Mode == Eval || st.Frozen
		if !fixed {
			if m.BatchNormMomentum == nil {
				m.BatchNormMomentum = b.batchInput("batch_norm_momentum", op.T(m.Config.DType, 1))
			}
			st.Batch = b.apply(name, op.BatchNormStats{}, x)
			st.Update = b.apply(name, op.BatchNormUpdate{Count: st.Count}, st.Node, st.Batch, m.BatchNormMomentum)
			used = st.Batch
		}
		y := b.apply(name, op.BatchNorm{Eps: eps, Fixed: fixed}, x, used, weight, bias)
		if b.err == nil && st.Update != nil {
			m.Updates = append(m.Updates, st.Update)
		}
		return y
	}
}

// Linear adds x Wᵀ + b for x [N,I], with parameters name.weight [out,I] and name.bias [out]. Both start as
// FanInUniform.
func (b *Builder) Linear(name string, x *G.Node, out int) *G.Node {
	s, ok := b.shape(name, x, 2)
	if !ok || !b.claim(name) {
		return nil
	}
	w := b.param(Param{Name: name + ".weight", Shape: op.Shape{out, s[1]}, Init: FanInUniform(s[1])})
	bias := b.param(Param{Name: name + ".bias", Shape: op.Shape{out}, Init: FanInUniform(s[1]), BiasOrNorm: true})
	return b.apply(name, op.Linear{}, x, w, bias)
}

// ReLU adds max(x, 0).
func (b *Builder) ReLU(name string, x *G.Node) *G.Node { return b.Apply(name, op.ReLU{}, x) }

// Add adds x + y, of equal shapes.
func (b *Builder) Add(name string, x, y *G.Node) *G.Node { return b.Apply(name, op.Add{}, x, y) }

// MaxPool adds the maximum over kernel×kernel windows of x [N,C,H,W].
func (b *Builder) MaxPool(name string, x *G.Node, kernel, stride, pad int) *G.Node {
	return b.Apply(name, op.MaxPool{Kernel: square(kernel), Stride: square(stride), Pad: square(pad)}, x)
}

// AvgPool adds the mean over kernel×kernel windows of x [N,C,H,W], padding included.
func (b *Builder) AvgPool(name string, x *G.Node, kernel, stride, pad int) *G.Node {
	return b.Apply(name, op.AvgPool{Kernel: square(kernel), Stride: square(stride), Pad: square(pad)}, x)
}

// GlobalAvgPool adds the mean over H and W: [N,C,H,W] → [N,C].
func (b *Builder) GlobalAvgPool(name string, x *G.Node) *G.Node {
	return b.Apply(name, op.GlobalAvgPool{}, x)
}

// Flatten adds [N,…] → [N,rest].
func (b *Builder) Flatten(name string, x *G.Node) *G.Node { return b.Apply(name, op.Flatten{}, x) }

// Shortcut adds a shortcut without parameters (option A of He et al. 2016): every stride-th row and column of
// x [N,C,H,W], with zero channels on both sides up to the given number.
func (b *Builder) Shortcut(name string, x *G.Node, stride, channels int) *G.Node {
	return b.Apply(name, op.Shortcut{Stride: stride, Channels: channels}, x)
}

func square(n int) [2]int { return [2]int{n, n} }
