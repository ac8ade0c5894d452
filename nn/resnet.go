package nn

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
)

func init() {
	for _, r := range []struct {
		name, summary string
		resize        int
		o             ResNet
	}{
		{"resnet18", "ResNet-18", 0, ResNet{Blocks: [4]int{2, 2, 2, 2}, Basic: true}},
		{"resnet34", "ResNet-34", 0, ResNet{Blocks: [4]int{3, 4, 6, 3}, Basic: true}},
		{"resnet50", "ResNet-50", 232, ResNet{Blocks: [4]int{3, 4, 6, 3}}},
		{"resnet101", "ResNet-101", 232, ResNet{Blocks: [4]int{3, 4, 23, 3}}},
		{"resnet152", "ResNet-152", 232, ResNet{Blocks: [4]int{3, 8, 36, 3}}},
		{"resnext50_32x4d", "ResNeXt-50", 232, ResNet{Blocks: [4]int{3, 4, 6, 3}, Groups: 32, GroupWidth: 4}},
		{"resnext101_32x8d", "ResNeXt-101", 232, ResNet{Blocks: [4]int{3, 4, 23, 3}, Groups: 32, GroupWidth: 8}},
		{"resnext101_64x4d", "ResNeXt-101", 232, ResNet{Blocks: [4]int{3, 4, 23, 3}, Groups: 64, GroupWidth: 4}},
		{"wide_resnet50_2", "Wide ResNet-50-2", 232, ResNet{Blocks: [4]int{3, 4, 6, 3}, GroupWidth: 128}},
		{"wide_resnet101_2", "Wide ResNet-101-2", 232, ResNet{Blocks: [4]int{3, 4, 23, 3}, GroupWidth: 128}},
	} {
		a := Architecture{
			Name:    r.name,
			Family:  "resnet",
			Summary: r.summary + " v1.5, for ImageNet",
			Reference: "He et al., Deep residual learning for image recognition, 2016; v1.5: the stride in the 3×3 " +
				"convolution",
			Size:     224,
			Channels: 3,
			Classes:  1000,
			Mean:     []float64{.485, .456, .406},
			Std:      []float64{.229, .224, .225},
			Resize:   r.resize,
			Build:    r.o.Build,
		}
		switch {
		case r.o.Groups > 1:
			a.Summary = fmt.Sprintf("%s with %d groups of %d channels, for ImageNet", r.summary, r.o.Groups, r.o.GroupWidth)
			a.Reference = "Xie et al., Aggregated residual transformations for deep neural networks, 2017"
		case r.o.GroupWidth > 0:
			a.Summary = r.summary + ", of twice the inner width, for ImageNet"
			a.Reference = "Zagoruyko, Komodakis, Wide residual networks, 2016"
		}
		Register(a)
	}
}

// ResNet are the options of a residual net for ImageNet.
type ResNet struct {
	Blocks [4]int // of the stages; layers
	Basic  bool   // blocks of two 3×3 convolutions in place of bottlenecks
	Groups int    // of the 3×3 convolutions of bottlenecks; 0 means 1; torchvision's groups, timm's cardinality
	// GroupWidth is the number of channels of such a group in the first stage, doubled in each further one; 0 means 64:
	// torchvision's width_per_group, timm's base_width.
	GroupWidth int
	// Dilate doubles the dilation of the 3×3 convolutions in place of the stride 2, for each stage but the first:
	// torchvision's replace_stride_with_dilation. A stage's first block has the dilation of the stage before.
	Dilate [3]bool

	// Stem are the channels of three 3×3 convolutions in place of the 7×7 one; zero: none. They are timm's stem_width of
	// the stem_type "deep", twice, and twice that; "deep_tiered" has ¾ of it first.
	Stem [3]int
	// AvgDown pools a shortcut's 2×2 pixels before its 1×1 convolution, in place of a stride: timm's avg_down.
	AvgDown bool
	// Scale is the number of parts of a bottleneck's inner channels, each as many as GroupWidth and Groups give. 3×3
	// convolutions, one a part, take the sum of a part and the result for the part before, and leave the last part as it
	// is; 0 means one convolution for all: the scale of timm's Bottle2neck.
	Scale int
	// Excite is the share of a block's channels that a squeeze-and-excitation before the sum has, rounded to a multiple of
	// 8; 0 means none: timm's rd_ratio of the attn_layer "se", 1/16 unless given.
	Excite float64
}

// check is the error of the first option that is wrong.
func (o ResNet) check() error {
	switch {
	case slices.Min(o.Blocks[:]) < 1:
		return fmt.Errorf("nn.ResNet.Blocks is %v: must be numbers of at least 1", o.Blocks)
	case slices.Max(o.Blocks[:]) > 1000:
		return fmt.Errorf("nn.ResNet.Blocks is %v: must be numbers of at most 1000", o.Blocks)
	case o.Groups < 0:
		return fmt.Errorf("nn.ResNet.Groups is %d: must be at least 0", o.Groups)
	case o.GroupWidth < 0:
		return fmt.Errorf("nn.ResNet.GroupWidth is %d: must be at least 0", o.GroupWidth)
	case o.Basic && o.Groups > 1:
		return fmt.Errorf("nn.ResNet.Groups is %d: must be 0 with Basic, whose blocks have no groups", o.Groups)
	case o.Basic && cmp.Or(o.GroupWidth, 64) != 64:
		return fmt.Errorf("nn.ResNet.GroupWidth is %d: must be 0 with Basic, whose blocks have no groups", o.GroupWidth)
	case o.Stem != [3]int{} && slices.Min(o.Stem[:]) < 1:
		return fmt.Errorf("nn.ResNet.Stem is %v: must be numbers of at least 1, or 0 all", o.Stem)
	case o.AvgDown && o.Dilate != [3]bool{}:
		return fmt.Errorf("nn.ResNet.Dilate is %v: must be false with AvgDown", o.Dilate)
	case o.Scale < 0 || o.Scale == 1 || o.Scale > 64:
		return fmt.Errorf("nn.ResNet.Scale is %d: must be 0, or from 2 to 64", o.Scale)
	case o.Scale > 0 && (o.Basic || o.Dilate != [3]bool{}):
		return fmt.Errorf("nn.ResNet.Scale is %d: must be 0 with Basic or Dilate", o.Scale)
	case !(o.Excite >= 0 && o.Excite <= 1):
		return fmt.Errorf("nn.ResNet.Excite is %v: must be at least 0 and at most 1", o.Excite)
	case o.Basic && o.Dilate != [3]bool{}:
		return fmt.Errorf("nn.ResNet.Dilate is %v: must be false with Basic, whose blocks have no dilation", o.Dilate)
	}
	return nil
}

// Build adds the layers to b.
func (o ResNet) Build(b *Builder, x *G.Node) *G.Node {
	if err := o.check(); err != nil {
		b.Fail(err)
		return nil
	}
	x = b.ReLU("relu", b.BatchNorm("bn1", o.stem(b, x), 1))
	x = b.MaxPool("maxpool", x, 3, 2, 1)
	done, all, dilation := 0, o.Blocks[0]+o.Blocks[1]+o.Blocks[2]+o.Blocks[3], 1
	for i, n := range o.Blocks {
		dilate := i > 0 && o.Dilate[i-1]
		for j := range n {
			stride := 1
			if i > 0 && j == 0 && !dilate {
				stride = 2
			}
			name, drop := fmt.Sprintf("layer%d.%d", i+1, j), b.Config().DropPathAt(done, all)
			if o.Basic {
				x = o.basicBlock(b, name, x, 64<<i, stride, drop)
			} else {
				x = o.bottleneck(b, name, x, 64<<i, stride, dilation, drop)
			}
			if dilate && j == 0 {
				dilation *= 2
			}
			done++
		}
	}
	x = b.Dropout("dropout", b.GlobalAvgPool("avgpool", x), b.Config().Dropout)
	return b.Linear("fc", x, b.Config().Classes)
}

// stem is the first convolution, or three.
func (o ResNet) stem(b *Builder, x *G.Node) *G.Node {
	if o.Stem == [3]int{} {
		return b.Conv("conv1", x, Conv{Filters: 64, Kernel: 7, Stride: 2, Pad: 3})
	}
	x = b.Conv("conv1.0", x, Conv{Filters: o.Stem[0], Kernel: 3, Stride: 2, Pad: 1})
	x = b.Conv("conv1.3", b.ReLU("conv1.2", b.BatchNorm("conv1.1", x, 1)), Conv{Filters: o.Stem[1], Kernel: 3, Pad: 1})
	return b.Conv("conv1.6", b.ReLU("conv1.5", b.BatchNorm("conv1.4", x, 1)), Conv{Filters: o.Stem[2], Kernel: 3, Pad: 1})
}

// basicBlock is relu(bn2(conv2(relu(bn1(conv1 x)))) + shortcut x), both convolutions 3×3.
func (o ResNet) basicBlock(b *Builder, name string, x *G.Node, width, stride int, drop float64) *G.Node {
	y := b.Conv(name+".conv1", x, Conv{Filters: width, Kernel: 3, Stride: stride, Pad: 1})
	y = b.ReLU(name+".relu1", b.BatchNorm(name+".bn1", y, 1))
	y = b.Conv(name+".conv2", y, Conv{Filters: width, Kernel: 3, Pad: 1})
	y = o.excite(b, name+".se", b.BatchNorm(name+".bn2", y, b.lastScale()), width)
	y = b.StochasticDepth(name+".drop_path", y, drop)
	x = o.downsample(b, name, x, width, stride)
	return b.ReLU(name+".relu2", b.Add(name+".add", y, x))
}

// bottleneck reduces the channels by a 1×1 convolution, to width unless o has another, convolves 3×3 and expands to
// four times the width. Its residual branch is dropped with probability drop in Train.
func (o ResNet) bottleneck(b *Builder, name string, x *G.Node, width, stride, dilation int, drop float64) *G.Node {
	groups := cmp.Or(o.Groups, 1)
	inner := width * cmp.Or(o.GroupWidth, 64) / 64 * groups
	y := b.Conv(name+".conv1", x, Conv{Filters: inner * max(o.Scale, 1), Kernel: 1})
	y = b.ReLU(name+".relu1", b.BatchNorm(name+".bn1", y, 1))
	c := Conv{Filters: inner, Kernel: 3, Stride: stride, Pad: dilation, Dilation: dilation, Groups: groups}
	if o.Scale == 0 {
		y = b.ReLU(name+".relu2", b.BatchNorm(name+".bn2", b.Conv(name+".conv2", y, c), 1))
	} else {
		s, ok := b.shape(name, x, 4)
		y = o.parts(b, name, y, c, ok && (stride > 1 || s[1] != 4*width))
	}
	y = b.Conv(name+".conv3", y, Conv{Filters: 4 * width, Kernel: 1})
	y = o.excite(b, name+".se", b.BatchNorm(name+".bn3", y, b.lastScale()), 4*width)
	y = b.StochasticDepth(name+".drop_path", y, drop)
	x = o.downsample(b, name, x, 4*width, stride)
	return b.ReLU(name+".relu3", b.Add(name+".add", y, x))
}

// parts convolves all parts of y's channels but the last. Where a block changes the shape each has its own input, and
// the last part is pooled.
func (o ResNet) parts(b *Builder, name string, y *G.Node, c Conv, changes bool) *G.Node {
	s, ok := b.shape(name, y, 4)
	if !ok {
		return nil
	}
	of := slices.Clone(s)
	of[1] = c.Filters
	kernels := make([][]*G.Node, o.Scale-1) // all are before the normalisations in the state dict
	for i := range kernels {
		kernels[i] = b.kernels(fmt.Sprintf("%s.convs.%d", name, i), of, c)
	}
	var done []*G.Node
	for i := range o.Scale {
		part := b.Slice(fmt.Sprintf("%s.part%d", name, i), y, 1, i*c.Filters, (i+1)*c.Filters)
		switch {
		case i == len(kernels) && changes:
			part = b.AvgPool(name+".pool", part, 3, c.Stride, 1)
		case i < len(kernels):
			if i > 0 && !changes {
				part = b.Add(fmt.Sprintf("%s.add%d", name, i), done[i-1], part)
			}
			part = b.convolve(fmt.Sprintf("%s.convs.%d", name, i), part, c, kernels[i])
			part = b.ReLU(fmt.Sprintf("%s.relu2.%d", name, i), b.BatchNorm(fmt.Sprintf("%s.bns.%d", name, i), part, 1))
		}
		done = append(done, part)
	}
	return b.Concat(name+".concat", 1, done...)
}

// excite adds the squeeze-and-excitation of a block's result of so many channels.
func (o ResNet) excite(b *Builder, name string, x *G.Node, channels int) *G.Node {
	if o.Excite == 0 {
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
			x, stride = b.pairs(conv, x), 1
		}
		conv, norm = norm, name+".downsample.2"
	}
	return b.BatchNorm(norm, b.Conv(conv, x, Conv{Filters: channels, Kernel: 1, Stride: stride}), 1)
}

// pairs is the mean of 2×2 pixels. At the end of an odd extent it is that of the pixels there are, as if the last ones
// were there twice: PyTorch's AvgPool2d with ceil_mode and without count_include_pad.
func (b *Builder) pairs(name string, x *G.Node) *G.Node {
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

// lastScale is the initial scale of a block's last batch normalisation.
func (b *Builder) lastScale() float64 {
	if b.model.Config.ZeroInitResidual {
		return 0
	}
	return 1
}
