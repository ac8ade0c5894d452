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
		name string
		net  EfficientViT
	}{
		{"b0", EfficientViT{Channels: [5]int{8, 16, 32, 64, 128}, Blocks: [5]int{1, 2, 2, 2, 2}, HeadWidth: 16,
			Head: [2]int{1024, 1280}}},
		{"b1", EfficientViT{Channels: [5]int{16, 32, 64, 128, 256}, Blocks: [5]int{1, 2, 3, 3, 4}, HeadWidth: 16,
			Head: [2]int{1536, 1600}}},
		{"b2", EfficientViT{Channels: [5]int{24, 48, 96, 192, 384}, Blocks: [5]int{1, 3, 4, 4, 6}, HeadWidth: 32,
			Head: [2]int{2304, 2560}}},
		{"b3", EfficientViT{Channels: [5]int{32, 64, 128, 256, 512}, Blocks: [5]int{1, 4, 6, 6, 9}, HeadWidth: 32,
			Head: [2]int{2304, 2560}}},
		{"l1", EfficientViT{Channels: [5]int{32, 64, 128, 256, 512}, Blocks: [5]int{1, 1, 1, 6, 6}, HeadWidth: 32,
			Head: [2]int{3072, 3200}, Large: true}},
		{"l2", EfficientViT{Channels: [5]int{32, 64, 128, 256, 512}, Blocks: [5]int{1, 2, 2, 8, 8}, HeadWidth: 32,
			Head: [2]int{3072, 3200}, Large: true}},
		{"l3", EfficientViT{Channels: [5]int{64, 128, 256, 512, 1024}, Blocks: [5]int{1, 2, 2, 8, 8}, HeadWidth: 32,
			Head: [2]int{6144, 6400}, Large: true}},
	} {
		a := nn.Architecture{
			Name:          "efficientvit_" + v.name,
			Family:        "efficientvit",
			Summary:       fmt.Sprintf("EfficientViT-%s of MIT, with timm's names", strings.ToUpper(v.name)),
			Reference:     "Cai et al., EfficientViT: multi-scale linear attention for high-resolution dense prediction, 2023",
			Resize:        235,
			Interpolation: bicubic,
			Block:         timmStage,
			Init:          torchInit,
			Build:         v.net.Build,
		}
		if v.net.Large {
			a.Resize, a.BatchNormEps = 224, 1e-7
		}
		imageNet(a)
	}
}

// EfficientViT are the options of MIT's net of inverted residuals and, in the last stages, linear attention.
type EfficientViT struct {
	Channels [5]int // of the stem and each stage; timm's widths
	// Blocks are those of the stem and each stage; stages of attention have one more, and with Large all stages; timm's
	// depths.
	Blocks    [5]int
	HeadWidth int    // elements of a head; timm's head_dim
	Head      [2]int // channels of the last convolution and of the linear layer behind it; timm's head_widths

	// Large has attention in the last stage alone, else in the last two, and full convolutions in the first two: timm's
	// EfficientVitLarge.
	Large bool
}

// act is the activation.
func (o EfficientViT) act() nn.Activation {
	if o.Large {
		return (*nn.Builder).GELUTanh
	}
	return (*nn.Builder).Hardswish
}

// Build adds the layers to b.
func (o EfficientViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("EfficientViT", o).least(1, "Channels", "Blocks", "HeadWidth", "Head").
		that(min(o.Channels[3], o.Channels[4]) >= o.HeadWidth, "Channels", "at least HeadWidth in the last stages").ok() {
		return nil
	}
	in := o.Channels[0]
	x = o.part(b, "stem.in_conv", x, nn.Conv{Filters: in, Kernel: 3, Stride: 2}, true, true)
	for i := range o.Blocks[0] {
		name := fmt.Sprintf("stem.res%d", i)
		var y *G.Node
		if o.Large {
			y = o.part(b, name+".main.conv1", x, nn.Conv{Filters: in, Kernel: 3}, true, true)
			y = o.part(b, name+".main.conv2", y, nn.Conv{Filters: in, Kernel: 3}, true, false)
		} else {
			y = o.part(b, name+".main.depth_conv", x, nn.Conv{Filters: in, Kernel: 3, Groups: in}, true, true)
			y = o.part(b, name+".main.point_conv", y, nn.Conv{Filters: in, Kernel: 1}, true, false)
		}
		x = b.Add(name+".add", y, x)
	}
	for i := range 4 {
		attends, fused, normal := i >= 2, false, i < 2
		first, later, more := 4, 4, 0
		if o.Large {
			attends, fused, first, more = i == 3, i < 2, 16, 1
		}
		if attends && o.Large {
			first, later = 24, 6
		}
		if attends {
			more = 1
		}
		out := o.Channels[i+1]
		for j := range o.Blocks[i+1] + more {
			name := fmt.Sprintf("stages.%d.blocks.%d", i, j)
			switch {
			case j == 0:
				x = o.local(b, name+".main", x, out, first*in, 2, fused, normal)
			case attends:
				x = b.Add(name+".context_module.add", o.attention(b, name+".context_module.main", x), x)
				y := o.local(b, name+".local_module.main", x, out, later*out, 1, false, false)
				x = b.Add(name+".local_module.add", y, x)
			default:
				x = b.Add(name+".add", o.local(b, name+".main", x, out, later*out, 1, fused, normal), x)
			}
		}
		in = out
	}
	x = b.conv("head.in_conv.conv", x, nn.Conv{Filters: o.Head[0], Kernel: 1})
	x = b.BatchNormEps("head.in_conv.norm", x, 1, 1e-5)
	x = b.GlobalAvgPool("head.pool", o.act()(builder, "head.in_conv.act", x))
	x = b.unbiased("head.classifier.0", x, o.Head[1])
	eps := 1e-5
	if o.Large {
		eps = 1e-7
	}
	x = o.act()(builder, "head.classifier.2", b.LayerNorm("head.classifier.1", x, eps))
	return b.Linear("head.classifier.4", b.Dropout("head.classifier.3", x, b.Config().Dropout), b.Config().Classes)
}

// part is a convolution with a normalisation, or with biases, and an activation.
func (o EfficientViT) part(b layer, name string, x *G.Node, c nn.Conv, norm, act bool) *G.Node {
	c.Bias = !norm
	if x = b.conv(name+".conv", x, c); norm {
		x = b.BatchNorm(name+".norm", x, 1)
	}
	if act {
		x = o.act()(b.Builder, name+".act", x)
	}
	return x
}

// local is an inverted residual without its shortcut, with normalisations behind all convolutions or the last.
func (o EfficientViT) local(b layer, name string, x *G.Node, out, wide, stride int, fused, norm bool) *G.Node {
	if fused {
		x = o.part(b, name+".spatial_conv", x, nn.Conv{Filters: wide, Kernel: 3, Stride: stride}, norm, true)
	} else {
		x = o.part(b, name+".inverted_conv", x, nn.Conv{Filters: wide, Kernel: 1}, norm, true)
		x = o.part(b, name+".depth_conv", x, nn.Conv{Filters: wide, Kernel: 3, Stride: stride, Groups: wide}, norm, true)
	}
	return o.part(b, name+".point_conv", x, nn.Conv{Filters: out, Kernel: 1}, true, false)
}

// attention weighs values by products of queries and keys above 0, for the pixels and for means of 5×5: timm's LiteMLA.
func (o EfficientViT) attention(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s, d := x.Shape(), o.HeadWidth
	heads := s[1] / d
	all := 3 * heads * d
	y := b.conv(name+".qkv.conv", x, nn.Conv{Filters: all, Kernel: 1})
	mean := b.conv(name+".aggreg.0.0", y, nn.Conv{Filters: all, Kernel: 5, Groups: all})
	mean = b.conv(name+".aggreg.0.1", mean, nn.Conv{Filters: all, Kernel: 1, Groups: 3 * heads})
	n, pixels := 2*heads*s[0], s[2]*s[3]
	y = b.Reshape(name+".heads", b.Concat(name+".concat", 1, y, mean), n, 3*d, pixels)
	part := func(name string, i int) *G.Node { return b.Slice(name, y, 1, i*d, (i+1)*d) }
	q, k := b.ReLU(name+".q.relu", part(name+".q", 0)), b.ReLU(name+".k.relu", part(name+".k", 1))
	last := make([]float64, d+1) // a value of 1 sums up the weights
	last[d] = 1
	v := b.Pad(name+".v.pad", part(name+".v", 2), []int{0, 0, 0}, []int{0, 1, 0})
	v = b.Map(name+".v.one", expr.Arg(0).Add(expr.Arg(1)), v,
		b.Constant(name+".one", op.Tensor{Shape: op.Shape{1, d + 1, 1}, Data: last}))
	y = b.MatMul(name+".qkv", b.MatMul(name+".kv", v, k, true), q, false)
	y = b.Map(name+".quotient", expr.Arg(0).Div(expr.Arg(1).Shift(1e-5)), b.Slice(name+".weighed", y, 1, 0, d),
		b.Slice(name+".weights", y, 1, d, d+1))
	y = b.Reshape(name+".image", y, s[0], 2*heads*d, s[2], s[3])
	return o.part(b, name+".proj", y, nn.Conv{Filters: s[1], Kernel: 1}, true, false)
}
