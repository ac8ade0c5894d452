package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	sixty := []SelecSLSBlock{{64, 64, 2}, {64, 128, 1}, {128, 128, 2}, {128, 128, 1}, {128, 288, 1}, {288, 288, 2},
		{288, 288, 1}, {288, 288, 1}, {288, 416, 1}}
	for _, v := range []struct {
		name, summary string
		net           SelecSLS
	}{
		{"42b", "42B", SelecSLS{Stem: 32, Head: [4]int{960, 1024, 1280, 1024}, Blocks: []SelecSLSBlock{{64, 64, 2},
			{64, 128, 1}, {144, 144, 2}, {144, 288, 1}, {304, 304, 2}, {304, 480, 1}}}},
		{"60", "60", SelecSLS{Stem: 32, Head: [4]int{756, 1024, 1024, 1280}, Blocks: sixty}},
		{"60b", "60B", SelecSLS{Stem: 32, Head: [4]int{756, 1024, 1280, 1024}, Blocks: sixty}},
	} {
		imageNet(nn.Architecture{
			Name:          "selecsls" + v.name,
			Family:        "selecsls",
			Summary:       "SelecSLS-" + v.summary + ", with timm's names",
			Reference:     "Mehta et al., XNect: real-time multi-person 3D motion capture with a single RGB camera, 2020",
			Resize:        256,
			Interpolation: bicubic,
			Block:         `^(stem|features\.\d+|head)\.`,
			Build:         v.net.Build,
		})
	}
}

// SelecSLS are the options of a net whose blocks see, beside their input, the result of the last block with a stride.
type SelecSLS struct {
	Stem   int // channels of the first convolution
	Blocks []SelecSLSBlock
	Head   [4]int // channels of the last convolutions, three of 3×3 pixels with strides 2, 1 and 2, and one of 1×1
}

// SelecSLSBlock is a block. One with a stride of 2 sees its input alone.
type SelecSLSBlock struct{ Inner, Out, Stride int }

// Build adds the layers to b.
func (o SelecSLS) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("SelecSLS", o).least(1, "Stem", "Head").
		that(len(o.Blocks) > 0 && o.Blocks[0].Stride == 2, "Blocks", "some, of which the first has the stride 2")
	for i, v := range o.Blocks {
		b.options(fmt.Sprintf("SelecSLS.Blocks[%d]", i), v).least(1, "Inner", "Out", "Stride").
			that(v.Inner > 1, "Inner", "at least 2").that(v.Stride <= 2, "Stride", "1 or 2")
	}
	if b.Err() != nil {
		return nil
	}
	conv := func(name string, x *G.Node, channels, kernel, stride int) *G.Node {
		return b.norm(name, x, nn.Conv{Filters: channels, Kernel: kernel, Stride: stride}, (*nn.Builder).ReLU)
	}
	x = conv("stem", x, o.Stem, 3, 2)
	var first *G.Node
	for i, v := range o.Blocks {
		name := fmt.Sprintf("features.%d", i)
		one := conv(name+".conv1", x, v.Inner, 3, v.Stride)
		two := conv(name+".conv3", conv(name+".conv2", one, v.Inner, 1, 1), v.Inner/2, 3, 1)
		three := conv(name+".conv5", conv(name+".conv4", two, v.Inner, 1, 1), v.Inner/2, 3, 1)
		all := []*G.Node{one, two, three}
		if v.Stride == 1 {
			all = append(all, first)
		}
		if x = conv(name+".conv6", b.Concat(name+".concat", 1, all...), v.Out, 1, 1); v.Stride == 2 {
			first = x
		}
	}
	for i, channels := range o.Head {
		x = conv(fmt.Sprintf("head.%d", i), x, channels, []int{3, 3, 3, 1}[i], []int{2, 1, 2, 1}[i])
	}
	return b.Linear("fc", b.pooled("head_drop", x), b.Config().Classes)
}
