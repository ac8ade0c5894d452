package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	imageNet(nn.Architecture{
		Name:         "inception_v3",
		Family:       "inception",
		Summary:      "Inception v3, without the auxiliary head",
		Reference:    "Szegedy et al., Rethinking the Inception architecture for computer vision, 2016",
		Size:         299,
		Resize:       342,
		BatchNormEps: .001,
		Dropout:      .5,
		MinSize:      inceptionV3Size,
		Mean:         half, // torchvision's transform_input
		Std:          half,
		Block:        `^(Mixed_\d[a-e])\.`,
		Init:         spread(.1),
		Build:        InceptionV3{}.Build,
	})
}

// InceptionV3 are the options of a net of modules whose branches convolve with square kernels, and with rows and
// columns in place of large ones. It has no auxiliary head, torchvision's aux_logits: files of weights may have theirs,
// which is not read.
type InceptionV3 struct {
	Narrow int // divides all channels; 0 means 1
}

// inceptionV3Size is the smallest input's, of which the last modules see a pixel.
const inceptionV3Size = 75

// Build adds the layers to b.
func (o InceptionV3) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := inceptionV3{layer{builder}, cmp.Or(o.Narrow, 1)}
	b.options("InceptionV3", o).least(0, "Narrow").that(o.Narrow <= 32, "Narrow", "at most 32")
	if !b.atLeast(x, inceptionV3Size) {
		return nil
	}
	x = b.inside("Conv2d_1a_3x3", x, 32, 2)
	x = b.inside("Conv2d_2a_3x3", x, 32, 1)
	x = b.same("Conv2d_2b_3x3", x, 64, 3, 3)
	x = b.MaxPool("maxpool1", x, 3, 2, 0)
	x = b.same("Conv2d_3b_1x1", x, 80, 1, 1)
	x = b.inside("Conv2d_4a_3x3", x, 192, 1)
	x = b.MaxPool("maxpool2", x, 3, 2, 0)
	x = b.moduleA("Mixed_5b", x, 32)
	x = b.moduleA("Mixed_5c", x, 64)
	x = b.moduleA("Mixed_5d", x, 64)
	x = b.moduleB("Mixed_6a", x)
	for i, channels := range []int{128, 160, 160, 192} {
		x = b.moduleC(fmt.Sprintf("Mixed_6%c", 'b'+i), x, channels)
	}
	x = b.moduleD("Mixed_7a", x)
	x = b.moduleE("Mixed_7b", x)
	x = b.moduleE("Mixed_7c", x)
	return b.Linear("fc", b.pooled("dropout", x), b.Config().Classes)
}

// inceptionV3 has the net's layers, whose numbers of filters are divided by narrow.
type inceptionV3 struct {
	layer
	narrow int
}

// same is torchvision's BasicConv2d, padded such that it keeps the extent.
func (b inceptionV3) same(name string, x *G.Node, filters, height, width int) *G.Node {
	return b.basic(name, x, nn.Conv{Filters: filters / b.narrow, Kernel: height, Width: width})
}

// inside is a 3×3 BasicConv2d without padding.
func (b inceptionV3) inside(name string, x *G.Node, filters, stride int) *G.Node {
	x = b.Conv(name+".conv", x, nn.Conv{Filters: filters / b.narrow, Kernel: 3, Stride: stride})
	return b.ReLU(name+".bn.activation", b.BatchNorm(name+".bn", x, 1))
}

// means is a 1×1 convolution of the means over 3×3 pixels.
func (b inceptionV3) means(name string, x *G.Node, filters int) *G.Node {
	return b.same(name+".branch_pool", b.AvgPool(name+".avgpool", x, 3, 1, 1), filters, 1, 1)
}

// moduleA has kernels of 1×1, 5×5 and twice 3×3 pixels.
func (b inceptionV3) moduleA(name string, x *G.Node, pool int) *G.Node {
	one := b.same(name+".branch1x1", x, 64, 1, 1)
	five := b.same(name+".branch5x5_1", x, 48, 1, 1)
	five = b.same(name+".branch5x5_2", five, 64, 5, 5)
	three := b.same(name+".branch3x3dbl_1", x, 64, 1, 1)
	three = b.same(name+".branch3x3dbl_2", three, 96, 3, 3)
	three = b.same(name+".branch3x3dbl_3", three, 96, 3, 3)
	return b.Concat(name+".concat", 1, one, five, three, b.means(name, x, pool))
}

// moduleB halves the extent.
func (b inceptionV3) moduleB(name string, x *G.Node) *G.Node {
	one := b.inside(name+".branch3x3", x, 384, 2)
	two := b.same(name+".branch3x3dbl_1", x, 64, 1, 1)
	two = b.same(name+".branch3x3dbl_2", two, 96, 3, 3)
	two = b.inside(name+".branch3x3dbl_3", two, 96, 2)
	return b.Concat(name+".concat", 1, one, two, b.MaxPool(name+".maxpool", x, 3, 2, 0))
}

// moduleC has kernels of 1×7 and 7×1 pixels, of the given number of channels inside.
func (b inceptionV3) moduleC(name string, x *G.Node, channels int) *G.Node {
	one := b.same(name+".branch1x1", x, 192, 1, 1)
	two := b.same(name+".branch7x7_1", x, channels, 1, 1)
	two = b.same(name+".branch7x7_2", two, channels, 1, 7)
	two = b.same(name+".branch7x7_3", two, 192, 7, 1)
	four := b.same(name+".branch7x7dbl_1", x, channels, 1, 1)
	four = b.same(name+".branch7x7dbl_2", four, channels, 7, 1)
	four = b.same(name+".branch7x7dbl_3", four, channels, 1, 7)
	four = b.same(name+".branch7x7dbl_4", four, channels, 7, 1)
	four = b.same(name+".branch7x7dbl_5", four, 192, 1, 7)
	return b.Concat(name+".concat", 1, one, two, four, b.means(name, x, 192))
}

// moduleD halves the extent.
func (b inceptionV3) moduleD(name string, x *G.Node) *G.Node {
	three := b.same(name+".branch3x3_1", x, 192, 1, 1)
	three = b.inside(name+".branch3x3_2", three, 320, 2)
	seven := b.same(name+".branch7x7x3_1", x, 192, 1, 1)
	seven = b.same(name+".branch7x7x3_2", seven, 192, 1, 7)
	seven = b.same(name+".branch7x7x3_3", seven, 192, 7, 1)
	seven = b.inside(name+".branch7x7x3_4", seven, 192, 2)
	return b.Concat(name+".concat", 1, three, seven, b.MaxPool(name+".maxpool", x, 3, 2, 0))
}

// moduleE has kernels of 1×3 and 3×1 pixels side by side.
func (b inceptionV3) moduleE(name string, x *G.Node) *G.Node {
	one := b.same(name+".branch1x1", x, 320, 1, 1)
	two := b.same(name+".branch3x3_1", x, 384, 1, 1)
	row, column := b.cross(name+".branch3x3_2", two)
	three := b.same(name+".branch3x3dbl_1", x, 448, 1, 1)
	three = b.same(name+".branch3x3dbl_2", three, 384, 3, 3)
	row2, column2 := b.cross(name+".branch3x3dbl_3", three)
	return b.Concat(name+".concat", 1, one, row, column, row2, column2, b.means(name, x, 192))
}

// cross has kernels of a row and of a column.
func (b inceptionV3) cross(name string, x *G.Node) (row, column *G.Node) {
	return b.same(name+"a", x, 384, 1, 3), b.same(name+"b", x, 384, 3, 1)
}
