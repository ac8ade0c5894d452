package zoo

import (
	"cmp"
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	eighteen, thirtyFour := [4]int{2, 2, 2, 2}, [4]int{3, 4, 6, 3}
	hundred, most := [4]int{3, 4, 23, 3}, [4]int{3, 8, 36, 3}
	bit := func(blocks [4]int, width int) ResNetV2 {
		return ResNetV2{Blocks: blocks, Width: width, Fixed: true, GroupNorm: 32, StdEps: 1e-8}
	}
	for _, v := range []struct {
		name         string
		size, resize int
		net          ResNetV2
	}{
		{"18", 224, 248, ResNetV2{Blocks: eighteen, Basic: true}},
		{"18d", 224, 248, ResNetV2{Blocks: eighteen, Basic: true, Deep: true, AvgDown: true}},
		{"34", 224, 248, ResNetV2{Blocks: thirtyFour, Basic: true}},
		{"34d", 224, 248, ResNetV2{Blocks: thirtyFour, Basic: true, Deep: true, AvgDown: true}},
		{"50", 224, 235, ResNetV2{Blocks: thirtyFour}},
		{"50d_gn", 224, 235, ResNetV2{Blocks: thirtyFour, Deep: true, AvgDown: true, GroupNorm: 32}},
		{"50d_evos", 224, 235, ResNetV2{Blocks: thirtyFour, Deep: true, AvgDown: true, EvoNorm: 32}},
		{"101", 224, 235, ResNetV2{Blocks: hundred}},
		{"50x1_bit", 224, 256, bit(thirtyFour, 1)},
		{"50x3_bit", 448, 448, bit(thirtyFour, 3)},
		{"101x1_bit", 448, 448, bit(hundred, 1)},
		{"101x3_bit", 448, 448, bit(hundred, 3)},
		{"152x2_bit", 224, 256, bit(most, 2)},
		{"152x4_bit", 480, 480, bit(most, 4)},
	} {
		size, kind, _ := strings.Cut(v.name, "_")
		a := nn.Architecture{
			Name:          "resnetv2_" + v.name,
			Family:        "resnet",
			Summary:       "ResNet-" + strings.ToUpper(size) + " v2, normalised before convolutions, as timm's",
			Reference:     "He et al., Identity mappings in deep residual networks, 2016",
			Size:          v.size,
			Resize:        v.resize,
			Interpolation: bicubic,
			Mean:          half,
			Std:           half,
			Block:         timmStage,
			Init:          headOf("head.fc"),
			Build:         v.net.Build,
		}
		switch kind {
		case "gn":
			a.Summary = strings.Replace(a.Summary, "normalised", "group-normalised", 1)
		case "evos":
			a.Summary = strings.Replace(a.Summary, "normalised", "normalised by evolved layers", 1)
			a.Reference = evoReference
		case "bit":
			a.Summary = "BiT ResNet-" + size + " v2, group normalisation, standardised weights, as timm's"
			a.Reference = "Kolesnikov et al., Big Transfer (BiT): general visual representation learning, 2020"
			if v.resize == v.size {
				a.Interpolation = ""
			}
		}
		imageNet(a)
	}
}

// headOf gives a last layer weights of a standard deviation of 0.01 and biases 0.
func headOf(name string) func(p nn.Param) nn.Init {
	return func(p nn.Param) nn.Init {
		switch p.Name {
		case name + ".weight":
			return nn.Init{Distribution: nn.Normal, Scale: .01}
		case name + ".bias":
			return nn.Init{}
		}
		return p.Init
	}
}

// ResNetV2 are the options of a residual net whose blocks normalise before they convolve.
type ResNetV2 struct {
	Blocks [4]int // of the stages; timm's layers
	// Channels are those of the stages; zero: 256, 512, 1024, 2048, or a quarter of them with Basic.
	Channels [4]int
	Width    int  // factor of all channels; 0 means 1; timm's width_factor
	Basic    bool // blocks of two 3×3 convolutions in place of bottlenecks
	Stem     int  // channels of the stem before Width; 0 means 64; timm's stem_chs
	Deep     bool // three 3×3 convolutions in place of the 7×7 one: timm's stem_type "deep"
	Fixed    bool // zeros around the first pooling, which count: timm's stem_type "fixed"
	AvgDown  bool // shortcuts pool 2×2 pixels in place of a stride: timm's avg_down
	// GroupNorm is the number of groups of channels that are normalised in place of the batch's channels; 0: none. timm's
	// norm_layer GroupNormAct has 32.
	GroupNorm int
	EvoNorm   int     // groups whose deviation normalises them, with gates in place of ReLU; timm's EvoNorm2dS0 has 32
	StdEps    float64 // of standardised weights; 0: they are not standardised; the eps of timm's StdConv2d

	// hybrid makes features for a vision transformer: blocks normalise behind convolutions, and the first pooling pads as
	// TensorFlow's SAME. It is timm's preact=False with the stem_type "same".
	hybrid bool
}

// Build adds the layers to b.
func (o ResNetV2) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	check := b.options("ResNetV2", o).least(1, "Blocks").
		least(0, "Channels", "Width", "Stem", "GroupNorm", "EvoNorm", "StdEps").
		that(o.GroupNorm == 0 || o.EvoNorm == 0, "EvoNorm", "0 with GroupNorm").
		that(!o.Deep || !o.Fixed, "Fixed", "false with Deep")
	if !check.ok() {
		return nil
	}
	x = o.stages(b, "", o.stem(b, "stem.", x))
	x = b.Dropout("head.drop", b.GlobalAvgPool("head.global_pool", o.norm(b, "norm", x)), b.Config().Dropout)
	return b.convHead("head.fc", x)
}

// width is the factor of all channels.
func (o ResNetV2) width() int { return cmp.Or(o.Width, 1) }

// stages adds the blocks, whose names begin with a prefix.
func (o ResNetV2) stages(b layer, prefix string, x *G.Node) *G.Node {
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		channels := 256 << i
		if o.Basic {
			channels /= 4
		}
		channels = cmp.Or(o.Channels[i], channels) * o.width()
		for j := range n {
			stride := 1
			if i > 0 && j == 0 {
				stride = 2
			}
			name := fmt.Sprintf("%sstages.%d.blocks.%d", prefix, i, j)
			if o.hybrid {
				x = o.hybridBlock(b, name, x, channels, stride, j == 0)
			} else {
				x = o.block(b, name, x, channels, stride, j == 0, b.Config().DropPathAt(done, all))
			}
			done++
		}
	}
	return x
}

// convHead is a linear layer whose weights are those of a 1×1 convolution.
func (b layer) convHead(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, classes := x.Shape()[0], b.Config().Classes
	x = b.Reshape(name+".pixel", x, n, x.Shape()[1], 1, 1)
	return b.Reshape(name+".flatten", b.Conv(name, x, nn.Conv{Filters: classes, Kernel: 1, Bias: true}), n, classes)
}

// stem quarters the images. Names begin with a prefix.
func (o ResNetV2) stem(b layer, prefix string, x *G.Node) *G.Node {
	channels := cmp.Or(o.Stem, 64) * o.width()
	if o.Deep {
		x = o.norm(b, prefix+"norm1", o.conv(b, prefix+"conv1", x, nn.Conv{Filters: channels / 2, Kernel: 3, Stride: 2}))
		x = o.norm(b, prefix+"norm2", o.conv(b, prefix+"conv2", x, nn.Conv{Filters: channels / 2, Kernel: 3}))
		x = o.conv(b, prefix+"conv3", x, nn.Conv{Filters: channels, Kernel: 3})
	} else {
		x = o.conv(b, prefix+"conv", x, nn.Conv{Filters: channels, Kernel: 7, Stride: 2})
	}
	switch {
	case o.hybrid:
		return b.poolUp(prefix+"pool", o.norm(b, prefix+"norm", x), 3)
	case o.Fixed:
		one := []int{0, 0, 1, 1}
		return b.MaxPool(prefix+"pool", b.Pad(prefix+"pad", x, one, one), 3, 2, 0)
	}
	return b.MaxPool(prefix+"pool", x, 3, 2, 1)
}

// conv adds a convolution.
func (o ResNetV2) conv(b layer, name string, x *G.Node, c nn.Conv) *G.Node {
	c.StdEps = o.StdEps
	return b.conv(name, x, c)
}

// norm adds a normalisation and a ReLU.
func (o ResNetV2) norm(b layer, name string, x *G.Node) *G.Node {
	if o.EvoNorm > 0 {
		return b.evoNorm(name, x, o.EvoNorm, 1e-5, 1, true)
	}
	return b.ReLU(name+".act", o.normOnly(b, name, x))
}

// normOnly adds a normalisation.
func (o ResNetV2) normOnly(b layer, name string, x *G.Node) *G.Node {
	if o.GroupNorm > 0 {
		return b.GroupNorm(name, x, o.GroupNorm, 1e-5)
	}
	return b.BatchNorm(name, x, 1)
}

// hybridBlock is a bottleneck whose normalisations follow its convolutions.
func (o ResNetV2) hybridBlock(b layer, name string, x *G.Node, channels, stride int, first bool) *G.Node {
	shortcut := x
	if first {
		shortcut = o.conv(b, name+".downsample.conv", x, nn.Conv{Filters: channels, Kernel: 1, Stride: stride})
		shortcut = o.normOnly(b, name+".downsample.norm", shortcut)
	}
	inner := divisible(float64(channels) / 4)
	x = o.norm(b, name+".norm1", o.conv(b, name+".conv1", x, nn.Conv{Filters: inner, Kernel: 1}))
	x = o.norm(b, name+".norm2", o.conv(b, name+".conv2", x, nn.Conv{Filters: inner, Kernel: 3, Stride: stride}))
	x = o.normOnly(b, name+".norm3", o.conv(b, name+".conv3", x, nn.Conv{Filters: channels, Kernel: 1}))
	return b.ReLU(name+".act3", b.Add(name+".add", x, shortcut))
}

// block adds its branch to x, or to a 1×1 convolution of the normalised x where a stage begins. A basic block has that
// only if it changes the shape.
func (o ResNetV2) block(b layer, name string, x *G.Node, channels, stride int, first bool, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	down := nn.Conv{Filters: channels, Kernel: 1, Stride: stride, StdEps: o.StdEps}
	if o.AvgDown {
		down.Stride = 1
	}
	shortcut, first := x, first && (!o.Basic || stride > 1 || x.Shape()[1] != channels)
	var shorten func(x *G.Node) *G.Node
	if first { // its parameters are before the normalisation's
		shorten = b.ConvLater(name+".downsample.conv", x.Shape()[1], down)
	}
	x = o.norm(b, name+".norm1", x)
	if first {
		shortcut = x
		if o.AvgDown && stride > 1 {
			shortcut = b.Pairs(name+".downsample.pool", x)
		}
		shortcut = shorten(shortcut)
	}
	if o.Basic {
		x = o.conv(b, name+".conv1", x, nn.Conv{Filters: channels, Kernel: 3, Stride: stride})
		x = o.conv(b, name+".conv2", o.norm(b, name+".norm2", x), nn.Conv{Filters: channels, Kernel: 3})
	} else {
		inner := divisible(float64(channels) / 4)
		x = o.conv(b, name+".conv1", x, nn.Conv{Filters: inner, Kernel: 1})
		x = o.conv(b, name+".conv2", o.norm(b, name+".norm2", x), nn.Conv{Filters: inner, Kernel: 3, Stride: stride})
		x = o.conv(b, name+".conv3", o.norm(b, name+".norm3", x), nn.Conv{Filters: channels, Kernel: 1})
	}
	return b.pathAdd(name, x, shortcut, drop)
}
