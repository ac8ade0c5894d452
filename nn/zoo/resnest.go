package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	deep, wide, fifty := [3]int{32, 32, 64}, [3]int{64, 64, 128}, [4]int{3, 4, 6, 3}
	for _, v := range []struct {
		name          string
		size, resize  int
		interpolation string
		net           ResNeSt
	}{
		{"14d", 224, 256, "", ResNeSt{Blocks: [4]int{1, 1, 1, 1}, Stem: deep, Radix: 2}},
		{"26d", 224, 256, "", ResNeSt{Blocks: [4]int{2, 2, 2, 2}, Stem: deep, Radix: 2}},
		{"50d", 224, 256, "", ResNeSt{Blocks: fifty, Stem: deep, Radix: 2}},
		{"50d_1s4x24d", 224, 256, bicubic,
			ResNeSt{Blocks: fifty, Stem: deep, Radix: 1, Groups: 4, GroupWidth: 24, PoolFirst: true}},
		{"50d_4s2x40d", 224, 256, bicubic,
			ResNeSt{Blocks: fifty, Stem: deep, Radix: 4, Groups: 2, GroupWidth: 40, PoolFirst: true}},
		{"101e", 256, 292, "", ResNeSt{Blocks: [4]int{3, 4, 23, 3}, Stem: wide, Radix: 2}},
		{"200e", 320, 352, bicubic, ResNeSt{Blocks: [4]int{3, 24, 36, 3}, Stem: wide, Radix: 2}},
		{"269e", 416, 448, bicubic, ResNeSt{Blocks: [4]int{3, 30, 48, 8}, Stem: wide, Radix: 2}},
	} {
		imageNet(nn.Architecture{
			Name:          "resnest" + v.name,
			Family:        "resnet",
			Summary:       "ResNeSt-" + v.name + ", split attention, as timm's",
			Reference:     "Zhang et al., ResNeSt: split-attention networks, 2022",
			Size:          v.size,
			Resize:        v.resize,
			Interpolation: v.interpolation,
			Block:         deepStem,
			Init:          zeroLast(false),
			Build:         v.net.Build,
		})
	}
}

// ResNeSt are the options of a residual net whose 3×3 convolutions are mixtures of groups of channels.
type ResNeSt struct {
	Blocks             [4]int
	Channels           [4]int // as nn.ResNet's
	Stem               [3]int // as nn.ResNet's
	Radix              int    // results that are mixed; with 1 a gate scales the only one
	Groups, GroupWidth int    // as nn.ResNet's
	PoolFirst          bool   // the mean of 3×3 pixels that takes a stride lies before the convolutions: timm's avd_first
}

// Build adds the layers to b. Stochastic depth drops residual branches, where timm's drops inputs of shortcuts.
func (o ResNeSt) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("ResNeSt", o).least(1, "Radix").least(0, "Groups", "GroupWidth").
		that(o.Radix <= 64, "Radix", "at most 64").ok() {
		return nil
	}
	net := nn.ResNet{Blocks: o.Blocks, Channels: o.Channels, Groups: o.Groups, GroupWidth: o.GroupWidth, Stem: o.Stem,
		AvgDown: true, Branch: o.branch}
	return net.Build(builder, x)
}

// branch is the residual branch of a block.
func (o ResNeSt) branch(builder *nn.Builder, name string, x *G.Node, width, stride int) *G.Node {
	b, inner := layer{builder}, width
	if o.GroupWidth > 0 {
		inner = width * o.GroupWidth / 64 * max(o.Groups, 1)
	}
	x = b.convNorm([2]string{name + ".conv1", name + ".bn1"}, x, nn.Conv{Filters: inner, Kernel: 1}, (*nn.Builder).ReLU)
	if stride > 1 && o.PoolFirst {
		x = b.AvgPool(name+".avd_first", x, 3, stride, 1)
	}
	x = o.split(b, name+".conv2", x, inner)
	if stride > 1 && !o.PoolFirst {
		x = b.AvgPool(name+".avd_last", x, 3, stride, 1)
	}
	return b.convNorm([2]string{name + ".conv3", name + ".bn3"}, x, nn.Conv{Filters: 4 * width, Kernel: 1}, nil)
}

// split is a mixture of results of a grouped convolution, each of so many channels. Its weights depend on the
// means of the images.
func (o ResNeSt) split(b layer, name string, x *G.Node, channels int) *G.Node {
	groups := max(o.Groups, 1)
	c := nn.Conv{Filters: channels * o.Radix, Kernel: 3, Groups: groups * o.Radix}
	x = b.convNorm([2]string{name + ".conv", name + ".bn0"}, x, c, (*nn.Builder).ReLU)
	if b.Err() != nil {
		return nil
	}
	paths := []*G.Node{x}
	y := x
	if o.Radix > 1 {
		for i := range o.Radix {
			part := b.Slice(fmt.Sprintf("%s.part%d", name, i), x, 1, i*channels, (i+1)*channels)
			if i == 0 {
				paths, y = []*G.Node{part}, part
				continue
			}
			paths, y = append(paths, part), b.Add(fmt.Sprintf("%s.sum%d", name, i), y, part)
		}
	}
	inner := max(32, divisible(float64(channels*o.Radix)/4))
	y = b.conv(name+".fc1", b.pixel(name+".mean", y), nn.Conv{Filters: inner, Kernel: 1, Groups: groups, Bias: true})
	y = b.ReLU(name+".act1", b.BatchNorm(name+".bn1", y, 1))
	y = b.conv(name+".fc2", y, nn.Conv{Filters: c.Filters, Kernel: 1, Groups: groups, Bias: true})
	if o.Radix == 1 {
		return b.Scale(name+".scale", x, b.Sigmoid(name+".gate", y))
	}
	return b.mixture(name, paths, y, groups)
}
