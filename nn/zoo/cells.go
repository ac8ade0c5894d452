package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

// cells are a layer with the parts of searched cells. Their convolutions and poolings pad as TensorFlow's SAME does.
type cells struct{ layer }

// stem is the first convolution, without padding.
func (b cells) stem(name string, x *G.Node, channels int) *G.Node {
	return b.BatchNorm(name+".bn", b.Conv(name+".conv", x, nn.Conv{Filters: channels, Kernel: 3, Stride: 2}), 1)
}

// head is the mean over pixels, and a linear layer.
func (b cells) head(x *G.Node) *G.Node {
	return b.Linear("last_linear", b.pooled("head_drop", b.ReLU("act", x)), b.Config().Classes)
}

// same are the zeros that SAME adds before and behind n pixels of a convolution of stride 2.
func same(n, kernel int) (before, after int) {
	zeros := max((n-1)/2*2+kernel-n, 0)
	return zeros / 2, zeros - zeros/2
}

// conv is a convolution whose padding may differ from side to side.
func (b cells) conv(name string, x *G.Node, c nn.Conv) *G.Node {
	if c.Stride < 2 || b.Err() != nil {
		return b.layer.conv(name, x, c)
	}
	return b.Conv(name, b.padded(name, x, c.Kernel), c)
}

// padded is x with zeros for a convolution or a mean of stride 2.
func (b cells) padded(name string, x *G.Node, kernel int) *G.Node {
	s := x.Shape()
	top, bottom := same(s[2], kernel)
	left, right := same(s[3], kernel)
	return b.Pad(name+".pad", x, []int{0, 0, top, left}, []int{0, 0, bottom, right})
}

// point is a ReLU, a convolution 1×1 and its normalisation.
func (b cells) point(name string, x *G.Node, channels, stride int) *G.Node {
	x = b.Conv(name+".conv", b.ReLU(name+".act", x), nn.Conv{Filters: channels, Kernel: 1, Stride: stride})
	return b.BatchNorm(name+".bn", x, 1)
}

// separable are two convolutions of channels and then of pixels, with a ReLU before and a normalisation behind each.
func (b cells) separable(name string, x *G.Node, channels, kernel, stride int) *G.Node {
	for i := 1; i <= 2 && b.Err() == nil; i++ {
		part, in := fmt.Sprintf("%s.separable_%d", name, i), x.Shape()[1]
		x = b.ReLU(fmt.Sprintf("%s.act_%d", name, i), x)
		x = b.conv(part+".depthwise_conv2d", x, nn.Conv{Filters: in, Kernel: kernel, Stride: stride, Groups: in})
		x = b.Conv(part+".pointwise_conv2d", x, nn.Conv{Filters: channels, Kernel: 1})
		x = b.BatchNorm(fmt.Sprintf("%s.bn_sep_%d", name, i), x, 1)
		stride = 1
	}
	return x
}

// everySecond halves x: half of the channels are of pixels with even numbers, half of those with odd numbers.
func (b cells) everySecond(name string, x *G.Node, channels int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	x = b.ReLU(name+".act", x)
	s := x.Shape()
	shifted := b.Slice(name+".path_2.columns", b.Slice(name+".path_2.rows", x, 2, 1, s[2]), 3, 1, s[3])
	shifted = b.Pad(name+".path_2.pad", shifted, []int{0, 0, 0, 0}, []int{0, 0, 1, 1})
	half := nn.Conv{Filters: channels / 2, Kernel: 1, Stride: 2}
	first := b.Conv(name+".path_1.conv", x, half)
	x = b.Concat(name+".paths", 1, first, b.Conv(name+".path_2.conv", shifted, half))
	return b.BatchNorm(name+".final_path_bn", x, 1)
}

// largest is the maximum over 3×3 pixels.
func (b cells) largest(name string, x *G.Node, stride int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	if stride == 1 {
		return b.MaxPool(name, x, 3, 1, 1)
	}
	// An even extent ends with a window of two pixels. There the last are repeated, and odd ones have windows of two at
	// both ends.
	s := x.Shape()
	if s[2]%2 != s[3]%2 {
		b.Fail(fmt.Errorf("layer %s: %v: height and width must be both even, or odd", name, s))
		return nil
	}
	if s[2]%2 == 1 {
		return b.MaxPool(name, x, 3, 2, 1)
	}
	x = b.Concat(name+".rows", 2, x, b.Slice(name+".row", x, 2, s[2]-1, s[2]))
	return b.MaxPool(name, b.Concat(name+".columns", 3, x, b.Slice(name+".column", x, 3, s[3]-1, s[3])), 3, 2, 0)
}

// average is the mean over 3×3 pixels, of which zeros around the image count with a stride alone, times by.
func (b cells) average(name string, x *G.Node, stride int, by float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	if stride > 1 {
		return b.AvgPool(name, b.padded(name, x, 3), 3, 2, 0)
	}
	mean, within := b.meanWithin(name, x)
	return b.Map(name, expr.Arg(0).Mul(expr.Arg(1)).Scale(by), mean, within)
}

// normal is a cell of NASNet.
func (b cells) normal(name string, left, right *G.Node, width int) *G.Node {
	part := func(part string, x *G.Node, kernel int) *G.Node {
		return b.separable(name+".comb_iter_"+part, x, width, kernel, 1)
	}
	sum := func(i int, x, y *G.Node) *G.Node { return b.Add(fmt.Sprintf("%s.comb_iter_%d", name, i), x, y) }
	zero := sum(0, part("0_left", right, 5), part("0_right", left, 3))
	one := sum(1, part("1_left", left, 5), part("1_right", left, 3))
	two := sum(2, b.average(name+".comb_iter_2_left", right, 1, 1), left)
	three := b.average(name+".comb_iter_3", left, 1, 2)
	four := sum(4, part("4_left", right, 3), right)
	return b.Concat(name+".concat", 1, left, zero, one, two, three, four)
}

// strided is a cell of NASNet that halves images.
func (b cells) strided(name string, pooled, other *G.Node, width int) *G.Node {
	part := func(part string, x *G.Node, kernel, stride int) *G.Node {
		return b.separable(name+".comb_iter_"+part, x, width, kernel, stride)
	}
	sum := func(i int, x, y *G.Node) *G.Node { return b.Add(fmt.Sprintf("%s.comb_iter_%d", name, i), x, y) }
	zero := sum(0, part("0_left", pooled, 5, 2), part("0_right", other, 7, 2))
	most := b.largest(name+".comb_iter_1_left", pooled, 2)
	one := sum(1, most, part("1_right", other, 7, 2))
	two := sum(2, b.average(name+".comb_iter_2_left", pooled, 2, 1), part("2_right", other, 5, 2))
	three := sum(3, b.average(name+".comb_iter_3_right", zero, 1, 1), one)
	four := sum(4, part("4_left", zero, 3, 1), most)
	return b.Concat(name+".concat", 1, one, two, three, four)
}

// progressive is a cell of PNASNet. The stem's sees its input on the left, and pools it before a convolution.
func (b cells) progressive(name string, left, right *G.Node, width, stride int) *G.Node {
	part := func(part string, x *G.Node, kernel, stride int) *G.Node {
		return b.separable(name+".comb_iter_"+part, x, width, kernel, stride)
	}
	sum := func(i int, x, y *G.Node) *G.Node { return b.Add(fmt.Sprintf("%s.comb_iter_%d", name, i), x, y) }
	five := part("0_left", left, 5, stride)
	pooled := b.largest(name+".comb_iter_0_right", left, stride)
	if name == "cell_stem_0" {
		c := nn.Conv{Filters: width, Kernel: 1}
		pooled = b.convNorm([2]string{name + ".comb_iter_0_right.conv", name + ".comb_iter_0_right.bn"}, pooled, c, nil)
	}
	zero := sum(0, five, pooled)
	most := b.largest(name+".comb_iter_1_right", right, stride)
	one := sum(1, part("1_left", right, 7, stride), most)
	two := sum(2, part("2_left", right, 5, stride), part("2_right", right, 3, stride))
	three := sum(3, part("3_left", two, 3, 1), most)
	last := part("4_left", left, 3, stride)
	if stride > 1 {
		right = b.point(name+".comb_iter_4_right", right, width, stride)
	}
	return b.Concat(name+".concat", 1, zero, one, two, three, sum(4, last, right))
}
