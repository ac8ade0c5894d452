package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	a := nn.Architecture{
		Name:    "inception_v4",
		Family:  "inception",
		Summary: "Inception v4, as timm's",
		Reference: "Szegedy et al., Inception-v4, Inception-ResNet and the impact of residual connections on " +
			"learning, 2017",
		Size:          299,
		MinSize:       inceptionV3Size,
		Resize:        341,
		Interpolation: bicubic,
		Mean:          half,
		Std:           half,
		BatchNormEps:  .001,
		Block:         `^(features\.\d+)\.`,
		Init:          torchInit,
		Build:         InceptionV4{}.Build,
	}
	imageNet(a)
	a.Name, a.Summary, a.Resize = "inception_resnet_v2", "Inception-ResNet v2, as timm's", 333
	a.Block = `^((?:repeat|repeat_1|repeat_2)\.\d+|mixed_\w+|block8|conv2d_\w+)\.`
	a.Build = InceptionV4{Residual: true}.Build
	imageNet(a)
}

// InceptionV4 are the options of Inception v4 and of Inception-ResNet v2.
type InceptionV4 struct {
	Narrow   int  // divides all channels; 0 means 1
	Residual bool // the net is Inception-ResNet v2

	// Blocks are the numbers of modules of the three kinds; 0 means 4, 7 and 3, or with Residual 10, 20 and 10, the last
	// of which is timm's block8.
	Blocks [3]int
}

// Build adds the layers to b.
func (o InceptionV4) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := inceptionV3{layer{builder}, cmp.Or(o.Narrow, 1)}
	b.options("InceptionV4", o).least(0, "Narrow", "Blocks").that(o.Narrow <= 32, "Narrow", "at most 32")
	if !b.atLeast(x, inceptionV3Size) {
		return nil
	}
	blocks := [3]int{4, 7, 3}
	if o.Residual {
		blocks = [3]int{10, 20, 10}
	}
	for i, n := range o.Blocks {
		blocks[i] = cmp.Or(n, blocks[i])
	}
	if o.Residual {
		return b.resNetV2(x, blocks)
	}
	x = b.inside("features.0", x, 32, 2)
	x = b.inside("features.1", x, 32, 1)
	x = b.same("features.2", x, 64, 3, 3)
	x = b.Concat("features.3", 1, b.MaxPool("features.3.maxpool", x, 3, 2, 0), b.inside("features.3.conv", x, 96, 2))
	x = b.Concat("features.4", 1, b.chain("features.4.branch0", x, kernel{64, 1, 1, 0}, kernel{96, 3, 3, 1}),
		b.chain("features.4.branch1", x, kernel{64, 1, 1, 0}, kernel{64, 1, 7, 0}, kernel{64, 7, 1, 0}, kernel{96, 3, 3, 1}))
	x = b.Concat("features.5", 1, b.inside("features.5.conv", x, 192, 2), b.MaxPool("features.5.maxpool", x, 3, 2, 0))
	first := 6 + blocks[0] // reduction
	second := first + 1 + blocks[1]
	for i := 6; i <= second+blocks[2]; i++ {
		name := fmt.Sprintf("features.%d", i)
		switch {
		case i < first:
			x = b.v4A(name, x)
		case i == first:
			x = b.Concat(name, 1, b.inside(name+".branch0", x, 384, 2),
				b.chain(name+".branch1", x, kernel{192, 1, 1, 0}, kernel{224, 3, 3, 0}, kernel{256, 3, 3, 2}),
				b.MaxPool(name+".branch2", x, 3, 2, 0))
		case i < second:
			x = b.v4B(name, x)
		case i == second:
			x = b.Concat(name, 1, b.chain(name+".branch0", x, kernel{192, 1, 1, 0}, kernel{192, 3, 3, 2}),
				b.chain(name+".branch1", x, kernel{256, 1, 1, 0}, kernel{256, 1, 7, 0}, kernel{320, 7, 1, 0}, kernel{320, 3, 3, 2}),
				b.MaxPool(name+".branch2", x, 3, 2, 0))
		default:
			x = b.v4C(name, x)
		}
	}
	return b.Linear("last_linear", b.pooled("head_drop", x), b.Config().Classes)
}

// kernel is a convolution of so many filters. Without a stride it keeps the extent, else it has no padding.
type kernel struct{ filters, height, width, stride int }

// chain are convolutions one after the other.
func (b inceptionV3) chain(name string, x *G.Node, list ...kernel) *G.Node {
	for i, k := range list {
		at := fmt.Sprintf("%s.%d", name, i)
		if k.stride == 0 {
			x = b.same(at, x, k.filters, k.height, k.width)
		} else {
			x = b.inside(at, x, k.filters, k.stride)
		}
	}
	return x
}

// around is a 1×1 convolution of the means over the 3×3 pixels that there are.
func (b inceptionV3) around(name string, x *G.Node, filters int) *G.Node {
	mean, by := b.meanWithin(name+".0", x)
	return b.same(name+".1", b.Scale(name+".0", mean, by), filters, 1, 1)
}

// v4A has kernels of 1×1, 3×3 and twice 3×3 pixels.
func (b inceptionV3) v4A(name string, x *G.Node) *G.Node {
	return b.Concat(name, 1, b.same(name+".branch0", x, 96, 1, 1),
		b.chain(name+".branch1", x, kernel{64, 1, 1, 0}, kernel{96, 3, 3, 0}),
		b.chain(name+".branch2", x, kernel{64, 1, 1, 0}, kernel{96, 3, 3, 0}, kernel{96, 3, 3, 0}),
		b.around(name+".branch3", x, 96))
}

// v4B has kernels of 1×7 and 7×1 pixels.
func (b inceptionV3) v4B(name string, x *G.Node) *G.Node {
	return b.Concat(name, 1, b.same(name+".branch0", x, 384, 1, 1),
		b.chain(name+".branch1", x, kernel{192, 1, 1, 0}, kernel{224, 1, 7, 0}, kernel{256, 7, 1, 0}),
		b.chain(name+".branch2", x, kernel{192, 1, 1, 0}, kernel{192, 7, 1, 0}, kernel{224, 1, 7, 0}, kernel{224, 7, 1, 0},
			kernel{256, 1, 7, 0}),
		b.around(name+".branch3", x, 128))
}

// v4C has kernels of 1×3 and 3×1 pixels side by side.
func (b inceptionV3) v4C(name string, x *G.Node) *G.Node {
	zero := b.same(name+".branch0", x, 256, 1, 1)
	one := b.same(name+".branch1_0", x, 384, 1, 1)
	row := b.same(name+".branch1_1a", one, 256, 1, 3)
	column := b.same(name+".branch1_1b", one, 256, 3, 1)
	two := b.same(name+".branch2_0", x, 384, 1, 1)
	two = b.same(name+".branch2_1", two, 448, 3, 1)
	two = b.same(name+".branch2_2", two, 512, 1, 3)
	row2 := b.same(name+".branch2_3a", two, 256, 1, 3)
	column2 := b.same(name+".branch2_3b", two, 256, 3, 1)
	return b.Concat(name, 1, zero, row, column, row2, column2, b.around(name+".branch3", x, 256))
}

// resNetV2 is Inception-ResNet v2.
func (b inceptionV3) resNetV2(x *G.Node, blocks [3]int) *G.Node {
	x = b.inside("conv2d_1a", x, 32, 2)
	x = b.inside("conv2d_2a", x, 32, 1)
	x = b.MaxPool("maxpool_3a", b.same("conv2d_2b", x, 64, 3, 3), 3, 2, 0)
	x = b.same("conv2d_3b", x, 80, 1, 1)
	x = b.MaxPool("maxpool_5a", b.inside("conv2d_4a", x, 192, 1), 3, 2, 0)
	const mixed5, mixed6, mixed7 = "mixed_5b", "mixed_6a", "mixed_7a"
	x = b.Concat(mixed5, 1, b.same(mixed5+".branch0", x, 96, 1, 1),
		b.chain(mixed5+".branch1", x, kernel{48, 1, 1, 0}, kernel{64, 5, 5, 0}),
		b.chain(mixed5+".branch2", x, kernel{64, 1, 1, 0}, kernel{96, 3, 3, 0}, kernel{96, 3, 3, 0}),
		b.around(mixed5+".branch3", x, 64))
	for i := range blocks[0] {
		name := fmt.Sprintf("repeat.%d", i)
		x = b.ReLU(name+".act", b.scaled(name, x, .17, b.same(name+".branch0", x, 32, 1, 1),
			b.chain(name+".branch1", x, kernel{32, 1, 1, 0}, kernel{32, 3, 3, 0}),
			b.chain(name+".branch2", x, kernel{32, 1, 1, 0}, kernel{48, 3, 3, 0}, kernel{64, 3, 3, 0})))
	}
	x = b.Concat(mixed6, 1, b.inside(mixed6+".branch0", x, 384, 2),
		b.chain(mixed6+".branch1", x, kernel{256, 1, 1, 0}, kernel{256, 3, 3, 0}, kernel{384, 3, 3, 2}),
		b.MaxPool(mixed6+".branch2", x, 3, 2, 0))
	for i := range blocks[1] {
		name := fmt.Sprintf("repeat_1.%d", i)
		x = b.ReLU(name+".act", b.scaled(name, x, .1, b.same(name+".branch0", x, 192, 1, 1),
			b.chain(name+".branch1", x, kernel{128, 1, 1, 0}, kernel{160, 1, 7, 0}, kernel{192, 7, 1, 0})))
	}
	x = b.Concat(mixed7, 1, b.chain(mixed7+".branch0", x, kernel{256, 1, 1, 0}, kernel{384, 3, 3, 2}),
		b.chain(mixed7+".branch1", x, kernel{256, 1, 1, 0}, kernel{288, 3, 3, 2}),
		b.chain(mixed7+".branch2", x, kernel{256, 1, 1, 0}, kernel{288, 3, 3, 0}, kernel{320, 3, 3, 2}),
		b.MaxPool(mixed7+".branch3", x, 3, 2, 0))
	for i := range blocks[2] {
		name := fmt.Sprintf("repeat_2.%d", i)
		scale, last := .2, i == blocks[2]-1
		if last {
			name, scale = "block8", 1
		}
		x = b.scaled(name, x, scale, b.same(name+".branch0", x, 192, 1, 1),
			b.chain(name+".branch1", x, kernel{192, 1, 1, 0}, kernel{224, 1, 3, 0}, kernel{256, 3, 1, 0}))
		if !last {
			x = b.ReLU(name+".relu", x)
		}
	}
	x = b.same("conv2d_7b", x, 1536, 1, 1)
	return b.Linear("classif", b.pooled("head_drop", x), b.Config().Classes)
}

// scaled adds a share of a 1×1 convolution of branches to x.
func (b inceptionV3) scaled(name string, x *G.Node, share float64, branches ...*G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	y := b.Concat(name+".concat", 1, branches...)
	y = b.conv(name+".conv2d", y, nn.Conv{Filters: x.Shape()[1], Kernel: 1, Bias: true})
	return b.Map(name+".add", expr.Arg(0).Scale(share).Add(expr.Arg(1)), y, x)
}
