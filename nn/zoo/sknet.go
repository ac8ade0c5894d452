package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name, summary string
		net           SKNet
	}{
		{"skresnet18", "SK-ResNet-18", SKNet{Blocks: [4]int{2, 2, 2, 2}, Basic: true, Ratio: 1. / 8, Divisor: 16,
			SplitInput: true}},
		{"skresnet34", "SK-ResNet-34", SKNet{Blocks: [4]int{3, 4, 6, 3}, Basic: true, Ratio: 1. / 8, Divisor: 16,
			SplitInput: true}},
		{"skresnext50_32x4d", "SK-ResNeXt-50 32×4d", SKNet{Blocks: [4]int{3, 4, 6, 3}, Groups: 32, GroupWidth: 4,
			Ratio: 1. / 16, Divisor: 32}},
	} {
		imageNet(nn.Architecture{
			Name:          v.name,
			Family:        "resnet",
			Summary:       v.summary + ", with a choice between kernels, as timm's",
			Reference:     "Li et al., Selective kernel networks, 2019",
			Resize:        256,
			Interpolation: bicubic,
			Build:         v.net.Build,
		})
	}
}

// SKNet are the options of a residual net whose 3×3 convolutions are mixtures of two: with and without dilation.
type SKNet struct {
	Blocks             [4]int
	Channels           [4]int // as nn.ResNet's
	Basic              bool
	Groups, GroupWidth int     // as nn.ResNet's
	Ratio              float64 // of the channels between both layers of the mixture's weights; timm's rd_ratio
	Divisor            int     // of these channels; timm's rd_divisor
	SplitInput         bool    // each convolution reads half of the channels: timm's split_input
	StemConv           bool    // as nn.ResNet's
}

// Build adds the layers to b.
func (o SKNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("SKNet", o).least(1, "Divisor").least(0, "Groups", "GroupWidth", "Ratio").ok() {
		return nil
	}
	net := nn.ResNet{Blocks: o.Blocks, Channels: o.Channels, Basic: o.Basic, Groups: o.Groups, GroupWidth: o.GroupWidth,
		StemConv: o.StemConv, Branch: o.branch}
	return net.Build(builder, x)
}

// branch is the residual branch of a block.
func (o SKNet) branch(builder *nn.Builder, name string, x *G.Node, width, stride int) *G.Node {
	b := layer{builder}
	if o.Basic {
		x = o.kernels(b, name+".conv1", x, nn.Conv{Filters: width, Kernel: 3, Stride: stride})
		return b.bnConv(name+".conv2", x, nn.Conv{Filters: width, Kernel: 3}, nil)
	}
	inner, groups := width, max(o.Groups, 1)
	if o.GroupWidth > 0 {
		inner = width * o.GroupWidth / 64 * groups
	}
	x = b.bnConv(name+".conv1", x, nn.Conv{Filters: inner, Kernel: 1}, (*nn.Builder).ReLU)
	x = o.kernels(b, name+".conv2", x, nn.Conv{Filters: inner, Kernel: 3, Stride: stride, Groups: groups})
	return b.bnConv(name+".conv3", x, nn.Conv{Filters: 4 * width, Kernel: 1}, nil)
}

// kernels is a mixture of convolutions, whose weights depend on the means of the images.
func (o SKNet) kernels(b layer, name string, x *G.Node, c nn.Conv) *G.Node {
	if b.Err() != nil {
		return nil
	}
	paths := make([]*G.Node, 2)
	half := x.Shape()[1] / 2
	for i := range paths {
		part := x
		if o.SplitInput {
			part = b.Slice(fmt.Sprintf("%s.part%d", name, i), x, 1, i*half, (i+1)*half)
		}
		c.Dilation = i + 1
		paths[i] = b.bnConv(fmt.Sprintf("%s.paths.%d", name, i), part, c, (*nn.Builder).ReLU)
	}
	y := b.pixel(name+".attn.mean", b.Add(name+".sum", paths[0], paths[1]))
	y = b.conv(name+".attn.fc_reduce", y, nn.Conv{Filters: divisibleBy(float64(c.Filters)*o.Ratio, o.Divisor), Kernel: 1})
	y = b.ReLU(name+".attn.act", b.BatchNorm(name+".attn.bn", y, 1))
	y = b.conv(name+".attn.fc_select", y, nn.Conv{Filters: 2 * c.Filters, Kernel: 1})
	return b.mixture(name, paths, y, 1)
}

// mixture is Σ softmax(logits)·path over the paths, images of as many channels C. Of logits [N,paths·C,1,1] each of the
// groups of channels has those of all paths, one path after the other.
func (b layer) mixture(name string, paths []*G.Node, logits *G.Node, groups int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, channels := paths[0].Shape()[0], paths[0].Shape()[1]
	p := b.Reshape(name+".logits", logits, n*groups, len(paths), channels/groups)
	p = b.Softmax(name+".softmax", b.Permute(name+".last", p, 0, 2, 1))
	in, y := paths, expr.Expr{}
	for i := range paths {
		part := b.Slice(fmt.Sprintf("%s.weight%d", name, i), p, 2, i, i+1)
		in = append(in[:len(in):len(in)], b.Reshape(fmt.Sprintf("%s.factor%d", name, i), part, n, channels))
		term := expr.Arg(i).Mul(expr.Arg(len(paths) + i))
		if i == 0 {
			y = term
		} else {
			y = y.Add(term)
		}
	}
	return b.Apply(name+".mixture", op.Map{Expr: y}, in...)
}
