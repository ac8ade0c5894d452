package nn

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// basicBlock is the branch bn2(conv2(relu(bn1(conv1 x)))), both convolutions 3×3.
func (o ResNet) basicBlock(b *Builder, name string, x *G.Node, width, stride int) *G.Node {
	y := o.strided(b, name, "1", x, Conv{Filters: width / max(o.ReduceFirst, 1), Kernel: 3, Stride: stride, Pad: 1})
	y = b.Conv(name+".conv2", y, Conv{Filters: width, Kernel: 3, Pad: 1})
	return o.excite(b, name+".se", o.norm(b, name+".bn2", y, b.lastScale()), width)
}

// strided is the convolution, normalisation and ReLU of a block of the given number. AntiAlias takes its stride.
func (o ResNet) strided(b *Builder, name, number string, x *G.Node, c Conv) *G.Node {
	smooth := o.AntiAlias != "" && c.Stride > 1
	if smooth {
		c.Stride = 1
	}
	x = b.ReLU(name+".relu"+number, o.norm(b, name+".bn"+number, b.Conv(name+".conv"+number, x, c), 1))
	if smooth {
		x = o.smooth(b, name+".aa", x)
	}
	return x
}

// smooth halves x as AntiAlias says.
func (o ResNet) smooth(b *Builder, name string, x *G.Node) *G.Node {
	s, ok := b.shape(name, x, 4)
	switch {
	case !ok:
		return nil
	case o.AntiAlias == "blur":
		return b.BlurHalf(name, x)
	case s[2]%2 > 0 || s[3]%2 > 0:
		b.Fail(fmt.Errorf("layer %s: images of %d×%d pixels: height and width must be even: choose an input size that is a "+
			"multiple of 32", name, s[2], s[3]))
	}
	return b.AvgPool(name, x, 2, 2, 0)
}

// BlurHalf convolves every second pixel of images x with the kernel 1 2 1 in both directions, over 16. The pixels
// beside the first and last ones are reflected: timm's BlurPool2d.
func (b *Builder) BlurHalf(name string, x *G.Node) *G.Node {
	s, ok := b.shape(name, x, 4)
	if !ok {
		return nil
	}
	for i, what := range []string{".rows", ".columns"} {
		axis, n := 2+i, s[2+i]
		if n < 2 {
			b.Fail(fmt.Errorf("layer %s: images of %d×%d pixels: height and width must be at least 2", name, s[2], s[3]))
			return nil
		}
		parts := []*G.Node{b.Slice(name+what+".before", x, axis, 1, 2), x}
		if n%2 == 1 { // else the last window ends with the last pixel
			parts = append(parts, b.Slice(name+what+".after", x, axis, n-2, n-1))
		}
		x = b.Concat(name+what, axis, parts...)
	}
	filter := op.New(op.T(op.Float64, s[1], 1, 3, 3))
	for i := range filter.Data.([]float64) {
		filter.Data.([]float64)[i] = []float64{1, 2, 1, 2, 4, 2, 1, 2, 1}[i%9] / 16
	}
	o := op.Conv2D{Stride: square(2), Dilation: square(1), Groups: s[1]}
	return b.Apply(name, o, x, b.Constant(name+".filt", filter))
}

// bottleneck is a branch that reduces the channels by a 1×1 convolution, to width unless o has another, convolves 3×3
// and expands to the channels, four times the width as a rule. It is block at of the net.
func (o ResNet) bottleneck(b *Builder, name string, x *G.Node, at, width, channels, stride, dilation int) *G.Node {
	groups := cmp.Or(o.Groups, 1)
	inner := width * cmp.Or(o.GroupWidth, 64) / 64 * groups
	first := inner * max(o.Scale, 1) / max(o.ReduceFirst, 1)
	if o.Inner != nil {
		first, inner = o.Inner[at][0], o.Inner[at][1]
	}
	y := b.Conv(name+".conv1", x, Conv{Filters: first, Kernel: 1})
	y = b.ReLU(name+".relu1", o.norm(b, name+".bn1", y, 1))
	c := Conv{Filters: inner, Kernel: 3, Stride: stride, Pad: dilation, Dilation: dilation, Groups: groups}
	if o.Scale == 0 {
		y = o.strided(b, name, "2", y, c)
	} else {
		s, ok := b.shape(name, x, 4)
		y = o.parts(b, name, y, c, ok && (stride > 1 || s[1] != 4*width))
	}
	y = b.Conv(name+".conv3", y, Conv{Filters: channels, Kernel: 1})
	return o.excite(b, name+".se", o.norm(b, name+".bn3", y, b.lastScale()), 4*width)
}

// parts convolves all parts of y's channels but the last. Where a block changes the shape each has its own input, and
// the last part is pooled.
func (o ResNet) parts(b *Builder, name string, y *G.Node, c Conv, changes bool) *G.Node {
	convs := make([]func(*G.Node) *G.Node, o.Scale-1) // all are before the normalisations in the state dict
	for i := range convs {
		convs[i] = b.ConvLater(fmt.Sprintf("%s.convs.%d", name, i), c.Filters, c)
	}
	var done []*G.Node
	for i := range o.Scale {
		part := b.Slice(fmt.Sprintf("%s.part%d", name, i), y, 1, i*c.Filters, (i+1)*c.Filters)
		switch {
		case i == len(convs) && changes:
			part = b.AvgPool(name+".pool", part, 3, c.Stride, 1)
		case i < len(convs):
			if i > 0 && !changes {
				part = b.Add(fmt.Sprintf("%s.add%d", name, i), done[i-1], part)
			}
			part = o.norm(b, fmt.Sprintf("%s.bns.%d", name, i), convs[i](part), 1)
			part = b.ReLU(fmt.Sprintf("%s.relu2.%d", name, i), part)
		}
		done = append(done, part)
	}
	return b.Concat(name+".concat", 1, done...)
}

// excite adds the squeeze-and-excitation of a block's result of so many channels, or its ECA.
func (o ResNet) excite(b *Builder, name string, x *G.Node, channels int) *G.Node {
	switch {
	case o.ECA:
		return b.eca(name, x, channels)
	case o.Excite == 0:
		return x
	}
	return b.SqueezeExcite(name, x, max(8, int(float64(channels)*o.Excite+4)/8*8), (*Builder).ReLU, (*Builder).Sigmoid)
}

// downsample fits the shortcut to the block's result by a 1×1 convolution where it differs in shape.
func (o ResNet) downsample(b *Builder, name string, x *G.Node, channels, stride int) *G.Node {
	if s, ok := b.shape(name, x, 4); !ok || stride == 1 && s[1] == channels {
		return x
	}
	conv, norm := name+".downsample.0", name+".downsample.1"
	if o.AvgDown {
		if stride > 1 {
			x, stride = b.Pairs(conv, x), 1
		}
		conv, norm = norm, name+".downsample.2"
	}
	c := Conv{Filters: channels, Kernel: 1, Stride: stride}
	if stride > 1 && o.DownKernel > 1 {
		c.Kernel, c.Pad = o.DownKernel, (stride-1+o.DownKernel-1)/2
	}
	return o.norm(b, norm, b.Conv(conv, x, c), 1)
}

// Pairs is the mean of 2×2 pixels. At the end of an odd extent it is that of the pixels there are, as if the last ones
// were there twice: PyTorch's AvgPool2d with ceil_mode and without count_include_pad.
func (b *Builder) Pairs(name string, x *G.Node) *G.Node {
	if _, ok := b.shape(name, x, 4); !ok {
		return nil
	}
	for i, what := range []string{".rows", ".columns"} {
		if n := x.Shape()[2+i]; n%2 == 1 && b.err == nil {
			x = b.Concat(name+what, 2+i, x, b.Slice(name+what+".last", x, 2+i, n-1, n))
		}
	}
	return b.AvgPool(name, x, 2, 2, 0)
}
