package nn

import (
	"cmp"
	"errors"
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
	// ECA scales a block's channels before the sum by a convolution over their means (Wang et al. 2020): timm's attn_layer
	// "eca".
	ECA bool
	// GroupNorm is the number of groups of channels that are normalised in place of the batch's channels; 0: none. timm's
	// norm_layer "groupnorm" has 32.
	GroupNorm int
	// AntiAlias is "avg" or "blur": the 3×3 convolutions and the first pooling move by 1 pixel. Behind them is the mean of
	// 2×2 pixels, or a blur of every second pixel (Zhang 2019). It is timm's aa_layer, nn.AvgPool2d or BlurPool2d.
	AntiAlias string
	// StemConv has a 3×3 convolution in place of the first pooling: timm's replace_stem_pool.
	StemConv bool
	// ReduceFirst divides the channels of a block's first convolution; 0 means 1: timm's block_reduce_first.
	ReduceFirst int
	// DownKernel is the kernel of a shortcut's convolution where a stage begins, but the first one; 0 means 1: timm's
	// down_kernel_size.
	DownKernel int

	// Channels are those of the stages, of which bottlenecks have four times as many; zero: 64, 128, 256, 512.
	Channels [4]int

	// Inner are the channels of the first two convolutions of each bottleneck, and Outer those of the stages' results,
	// that pruning left; zero: those of Channels. ECA's kernels do not change. They are timm's files of "pruned" nets.
	Inner [][2]int
	Outer [4]int

	// Branch, if not nil, adds the residual branch of a block in place of these, without stochastic depth. Its result has
	// width channels with Basic, else 4·width.
	Branch func(b *Builder, name string, x *G.Node, width, stride int) *G.Node
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
	case o.ECA && o.Excite > 0:
		return fmt.Errorf("nn.ResNet.Excite is %v: must be 0 with ECA", o.Excite)
	case o.GroupNorm < 0:
		return fmt.Errorf("nn.ResNet.GroupNorm is %d: must be at least 0", o.GroupNorm)
	case o.AntiAlias != "" && o.AntiAlias != "avg" && o.AntiAlias != "blur":
		return fmt.Errorf("nn.ResNet.AntiAlias is %q: must be \"avg\", \"blur\" or \"\"", o.AntiAlias)
	case o.AntiAlias != "" && (o.StemConv || o.Scale > 0 || o.Dilate != [3]bool{}):
		return fmt.Errorf("nn.ResNet.AntiAlias is %q: must be \"\" with StemConv, Scale or Dilate", o.AntiAlias)
	case o.ReduceFirst < 0 || o.ReduceFirst > 64:
		return fmt.Errorf("nn.ResNet.ReduceFirst is %d: must be at least 0 and at most 64", o.ReduceFirst)
	case o.ReduceFirst > 1 && o.Scale > 0:
		return fmt.Errorf("nn.ResNet.ReduceFirst is %d: must be 0 with Scale", o.ReduceFirst)
	case o.DownKernel < 0 || o.DownKernel > 0 && o.DownKernel%2 == 0:
		return fmt.Errorf("nn.ResNet.DownKernel is %d: must be 0 or odd", o.DownKernel)
	case o.DownKernel > 1 && (o.AvgDown || o.Dilate != [3]bool{}):
		return fmt.Errorf("nn.ResNet.DownKernel is %d: must be 0 with AvgDown or Dilate", o.DownKernel)
	case o.Channels != [4]int{} && slices.Min(o.Channels[:]) < 1:
		return fmt.Errorf("nn.ResNet.Channels is %v: must be numbers of at least 1, or 0 all", o.Channels)
	case slices.Max(o.Channels[:]) > 1<<16:
		return fmt.Errorf("nn.ResNet.Channels is %v: must be numbers of at most 65536", o.Channels)
	case o.Inner != nil && (len(o.Inner) != o.Blocks[0]+o.Blocks[1]+o.Blocks[2]+o.Blocks[3] ||
		slices.ContainsFunc(o.Inner, func(n [2]int) bool { return min(n[0], n[1]) < 1 || max(n[0], n[1]) > 1<<16 })):
		return fmt.Errorf("nn.ResNet.Inner is %v: must be numbers from 1 to 65536, two of each block", o.Inner)
	case o.Inner == nil && o.Outer != [4]int{}:
		return fmt.Errorf("nn.ResNet.Outer is %v: must be 0 without Inner", o.Outer)
	case o.Inner != nil && (slices.Min(o.Outer[:]) < 1 || slices.Max(o.Outer[:]) > 1<<16):
		return fmt.Errorf("nn.ResNet.Outer is %v: must be numbers from 1 to 65536", o.Outer)
	case o.Inner != nil && (o.Basic || o.Scale > 0 || o.Groups > 1 || o.Branch != nil):
		return errors.New("nn.ResNet.Inner: must be nil with Basic, Scale, Groups and Branch")
	case o.Branch != nil && (o.Scale > 0 || o.Excite > 0 || o.ECA || o.AntiAlias != "" || o.ReduceFirst > 0 ||
		o.Dilate != [3]bool{}):
		return errors.New("nn.ResNet.Branch: must be nil with Scale, Excite, ECA, AntiAlias, ReduceFirst and Dilate")
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
	x = o.pool(b, b.ReLU("relu", o.norm(b, "bn1", o.stem(b, x), 1)))
	done, all, dilation := 0, o.Blocks[0]+o.Blocks[1]+o.Blocks[2]+o.Blocks[3], 1
	for i, n := range o.Blocks {
		dilate := i > 0 && o.Dilate[i-1]
		for j := range n {
			stride := 1
			if i > 0 && j == 0 && !dilate {
				stride = 2
			}
			name, drop := fmt.Sprintf("layer%d.%d", i+1, j), b.Config().DropPathAt(done, all)
			var y *G.Node
			width, relu := cmp.Or(o.Channels[i], 64<<i), ".relu3"
			channels := 4 * width
			if o.Basic {
				channels, relu = width, ".relu2"
			}
			channels = cmp.Or(o.Outer[i], channels)
			switch {
			case o.Branch != nil:
				y = o.Branch(b, name, x, width, stride)
			case o.Basic:
				y = o.basicBlock(b, name, x, width, stride)
			default:
				y = o.bottleneck(b, name, x, done, width, channels, stride, dilation)
			}
			y = b.StochasticDepth(name+".drop_path", y, drop)
			x = b.ReLU(name+relu, b.Add(name+".add", y, o.downsample(b, name, x, channels, stride)))
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
	x = b.Conv("conv1.3", b.ReLU("conv1.2", o.norm(b, "conv1.1", x, 1)), Conv{Filters: o.Stem[1], Kernel: 3, Pad: 1})
	return b.Conv("conv1.6", b.ReLU("conv1.5", o.norm(b, "conv1.4", x, 1)), Conv{Filters: o.Stem[2], Kernel: 3, Pad: 1})
}

// pool halves the images behind the stem.
func (o ResNet) pool(b *Builder, x *G.Node) *G.Node {
	switch s, ok := b.shape("maxpool", x, 4); {
	case !ok:
		return nil
	case o.StemConv:
		x = b.Conv("maxpool.0", x, Conv{Filters: s[1], Kernel: 3, Stride: 2, Pad: 1})
		return b.ReLU("maxpool.2", o.norm(b, "maxpool.1", x, 1))
	case o.AntiAlias == "avg":
		return o.smooth(b, "maxpool", x)
	case o.AntiAlias == "blur":
		return o.smooth(b, "maxpool.1", b.MaxPool("maxpool.0", x, 3, 1, 1))
	}
	return b.MaxPool("maxpool", x, 3, 2, 1)
}

// norm is a normalisation with parameters name.weight, which starts as scale, and name.bias.
func (o ResNet) norm(b *Builder, name string, x *G.Node, scale float64) *G.Node {
	if o.GroupNorm > 0 {
		return b.groupNorm(name, x, o.GroupNorm, 1e-5, scale)
	}
	return b.BatchNorm(name, x, scale)
}

// lastScale is the initial scale of a block's last batch normalisation.
func (b *Builder) lastScale() float64 {
	if b.model.Config.ZeroInitResidual {
		return 0
	}
	return 1
}
