package zoo

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for i, v := range []struct {
		width, depth, dropout float64
		size, resize          int
		interpolation         string
		tf                    [2]int // size and shorter side of TensorFlow's weights
	}{
		{1, 1, .2, 224, 256, bicubic, [2]int{224, 256}}, {1, 1.1, .2, 240, 255, "", [2]int{240, 272}},
		{1.1, 1.2, .3, 288, 288, bicubic, [2]int{260, 292}}, {1.2, 1.4, .3, 300, 320, bicubic, [2]int{300, 331}},
		{1.4, 1.8, .4, 380, 384, bicubic, [2]int{380, 412}}, {1.6, 2.2, .4, 456, 456, bicubic, [2]int{456, 488}},
		{1.8, 2.6, .5, 528, 528, bicubic, [2]int{528, 560}}, {2, 3.1, .5, 600, 600, bicubic, [2]int{600, 632}},
	} {
		o := EfficientNet{Width: v.width, Depth: v.depth}
		a := o.of(fmt.Sprintf("efficientnet_b%d", i), fmt.Sprintf("EfficientNet-B%d", i), v.dropout)
		a.Reference = "Tan, Le, EfficientNet: rethinking model scaling for convolutional neural networks, 2019"
		a.Size, a.Resize, a.Interpolation = v.size, v.resize, v.interpolation
		if i >= 5 {
			a.BatchNormEps, a.BatchNormMomentum = .001, .01
		}
		imageNet(a, o.tensorFlow(a, v.tf))
		if i == 5 { // timm's own B0 to B4 are torchvision's, and of B6 and B7 it has no weights
			timm := o.timm(a)
			timm.Name, timm.Size, timm.Resize = "timm_"+a.Name, 448, 448
			imageNet(timm)
		}
	}
	for _, v := range []struct {
		name         string
		width, depth float64
		tf           [2]int
		mean         []float64
	}{{"b8", 2.2, 3.6, [2]int{672, 704}, half}, {"l2", 4.3, 5.3, [2]int{475, 507}, nil}} {
		o := EfficientNet{Width: v.width, Depth: v.depth}
		tf := o.tensorFlow(o.of("efficientnet_"+v.name, "EfficientNet-"+strings.ToUpper(v.name), .5), v.tf)
		tf.Reference = "Tan, Le, EfficientNet: rethinking model scaling for convolutional neural networks, 2019"
		tf.Mean, tf.Std = v.mean, v.mean
		imageNet(tf)
	}
	for i, v := range []struct {
		width, depth, dropout float64
		size                  int
		resize                [2]int // of timm's own weights and of TensorFlow's
	}{
		{1, 1, .2, 224, [2]int{256, 256}}, {1, 1.1, .2, 240, [2]int{272, 272}}, {1.1, 1.2, .3, 260, [2]int{292, 292}},
		{1.2, 1.4, .3, 300, [2]int{331, 331}}, {1.4, 1.8, .3, 380, [2]int{412, 413}},
	} {
		o := EfficientNet{Width: v.width, Depth: v.depth, Last: 1280, Lite: true}
		a := o.of(fmt.Sprintf("efficientnet_lite%d", i), fmt.Sprintf("EfficientNet-Lite%d", i), v.dropout)
		a.Reference = "Tan, Le, EfficientNet: rethinking model scaling for convolutional neural networks, 2019"
		a.Size, a.Resize = v.size, v.resize[0]
		tf := o.tensorFlow(a, [2]int{v.size, v.resize[1]})
		if tf.Mean, tf.Std = half, half; i >= 3 {
			tf.Interpolation = ""
		}
		imageNet(o.timm(a), tf)
	}
	for _, v := range []struct {
		name    string
		net     EfficientNet
		dropout float64
		size    int // of torchvision's weights, 0 without a net
		tf      [2]int
		mean    []float64 // of TensorFlow's weights; nil: ImageNet's
		same    bool      // torchvision's weights are TensorFlow's, and take images as these
	}{
		{"S", EfficientNet{Stages: efficientV2S}, .2, 384, [2]int{300, 300}, half, false},
		{"M", EfficientNet{Stages: efficientV2M}, .3, 480, [2]int{384, 384}, half, false},
		{"L", EfficientNet{Stages: efficientV2L}, .4, 480, [2]int{384, 384}, half, true},
		{"XL", EfficientNet{Stages: efficientV2XL}, .4, 0, [2]int{384, 384}, half, false},
		{"B0", EfficientNet{Stages: efficientV2B}, .2, 0, [2]int{192, 219}, nil, false},
		{"B1", EfficientNet{Stages: efficientV2B, Depth: 1.1}, .2, 0, [2]int{192, 217}, nil, false},
		{"B2", EfficientNet{Stages: efficientV2B, Width: 1.1, Depth: 1.2}, .3, 0, [2]int{208, 233}, nil, false},
		{"B3", EfficientNet{Stages: efficientV2B, Width: 1.2, Depth: 1.4, Nearest: true}, .3, 0, [2]int{240, 266}, half, false},
	} {
		v.net.Last = 1280
		a := v.net.of("efficientnet_v2_"+strings.ToLower(v.name), "EfficientNetV2-"+v.name, v.dropout)
		a.Reference = "Tan, Le, EfficientNetV2: smaller models and faster training, 2021"
		a.BatchNormEps, a.Size, a.Resize = .001, v.size, v.size
		tf := v.net.tensorFlow(a, v.tf)
		tf.Name, tf.Mean, tf.Std = "tf_efficientnetv2_"+strings.ToLower(v.name), v.mean, v.mean
		if v.same {
			a.Interpolation, a.Mean, a.Std = bicubic, half, half
		}
		if imageNet(tf); v.size > 0 {
			imageNet(a)
		}
	}
}

// of is torchvision's net.
func (o EfficientNet) of(name, summary string, dropout float64) nn.Architecture {
	return nn.Architecture{Name: name, Family: "efficientnet", Summary: summary, Dropout: dropout, DropPath: .2,
		Block: `^(features\.\d+\.\d+)\.block\.`, Init: uniform(1), Build: o.Build}
}

// timm is timm's net that differs from a in its names, its initial values and the constants of batch normalisation.
func (o EfficientNet) timm(a nn.Architecture) nn.Architecture {
	o.Timm = true
	a.Summary += ", as timm's"
	a.Interpolation, a.BatchNormEps, a.BatchNormMomentum = bicubic, 0, 0
	a.Block, a.Init, a.Build = timmBlock, google, o.Build
	return a
}

// tensorFlow is timm's net of TensorFlow's weights, which take images of size[0] pixels of size[1].
func (o EfficientNet) tensorFlow(a nn.Architecture, size [2]int) nn.Architecture {
	a.Summary += " with TensorFlow's padding"
	a = o.timm(a)
	a.Name, a.Size, a.Resize = "tf_"+a.Name, size[0], size[1]
	a.BatchNormEps, a.SamePadding = .001, true
	return a
}

// EfficientNet are the options of a net of MBConv blocks.
type EfficientNet struct {
	// Width and Depth are factors of the channels and of the blocks of a stage; 0 means 1. They are torchvision's
	// width_mult and depth_mult, timm's channel_multiplier and depth_multiplier.
	Width, Depth float64

	Stages []MBConv // nil means those of EfficientNet-B0; torchvision's inverted_residual_setting

	// Last are the channels of the last convolution, before Width; 0 means four times those before it: torchvision's
	// last_channel, timm's num_features.
	Last int

	Nearest bool // channels are the nearest multiples of 8, also those more than a tenth below: timm's round_limit=0
	Timm    bool // names are timm's, else torchvision's

	// Lite has ReLU6 for the activation and no excitation. Width leaves the first and the last convolution as they are,
	// and Depth the first and the last stage: timm's fix_stem and fix_first_last.
	Lite bool
}

// MBConv are the options of a stage.
type MBConv struct {
	Fused           bool // a convolution takes the place of the expansion and the depthwise one, without excitation
	Expansion       int
	Kernel, Stride  int
	In, Out, Blocks int
}

var (
	efficientB0 = []MBConv{
		{false, 1, 3, 1, 32, 16, 1}, {false, 6, 3, 2, 16, 24, 2}, {false, 6, 5, 2, 24, 40, 2}, {false, 6, 3, 2, 40, 80, 3},
		{false, 6, 5, 1, 80, 112, 3}, {false, 6, 5, 2, 112, 192, 4}, {false, 6, 3, 1, 192, 320, 1},
	}
	efficientV2B = []MBConv{
		{true, 1, 3, 1, 32, 16, 1}, {true, 4, 3, 2, 16, 32, 2}, {true, 4, 3, 2, 32, 48, 2}, {false, 4, 3, 2, 48, 96, 3},
		{false, 6, 3, 1, 96, 112, 5}, {false, 6, 3, 2, 112, 192, 8},
	}
	efficientV2S = []MBConv{
		{true, 1, 3, 1, 24, 24, 2}, {true, 4, 3, 2, 24, 48, 4}, {true, 4, 3, 2, 48, 64, 4}, {false, 4, 3, 2, 64, 128, 6},
		{false, 6, 3, 1, 128, 160, 9}, {false, 6, 3, 2, 160, 256, 15},
	}
	efficientV2M = []MBConv{
		{true, 1, 3, 1, 24, 24, 3}, {true, 4, 3, 2, 24, 48, 5}, {true, 4, 3, 2, 48, 80, 5}, {false, 4, 3, 2, 80, 160, 7},
		{false, 6, 3, 1, 160, 176, 14}, {false, 6, 3, 2, 176, 304, 18}, {false, 6, 3, 1, 304, 512, 5},
	}
	efficientV2L = []MBConv{
		{true, 1, 3, 1, 32, 32, 4}, {true, 4, 3, 2, 32, 64, 7}, {true, 4, 3, 2, 64, 96, 7}, {false, 4, 3, 2, 96, 192, 10},
		{false, 6, 3, 1, 192, 224, 19}, {false, 6, 3, 2, 224, 384, 25}, {false, 6, 3, 1, 384, 640, 7},
	}
	efficientV2XL = []MBConv{
		{true, 1, 3, 1, 32, 32, 4}, {true, 4, 3, 2, 32, 64, 8}, {true, 4, 3, 2, 64, 96, 8}, {false, 4, 3, 2, 96, 192, 16},
		{false, 6, 3, 1, 192, 256, 24}, {false, 6, 3, 2, 256, 512, 32}, {false, 6, 3, 1, 512, 640, 8},
	}
)

// check reports whether the options are right.
func (o EfficientNet) check(b layer) bool {
	b.options("EfficientNet", o).least(0, "Width", "Depth", "Last").
		that(o.Stages == nil || len(o.Stages) > 0, "Stages", "nil or have a stage")
	for i, s := range o.Stages {
		in := s.In
		if i > 0 {
			in = o.Stages[i-1].Out
		}
		b.options(fmt.Sprintf("EfficientNet.Stages[%d]", i), s).
			least(1, "Expansion", "Kernel", "Stride", "In", "Out", "Blocks").that(s.Kernel%2 == 1, "Kernel", "odd").
			that(s.In == in, "In", fmt.Sprintf("%d, the Out of the stage before", in))
	}
	return b.Err() == nil
}

// Build adds the layers to b.
func (o EfficientNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !o.check(b) {
		return nil
	}
	stages := o.Stages
	if stages == nil {
		stages = efficientB0
	}
	channels := func(n int) int {
		wide := float64(n) * cmp.Or(o.Width, 1)
		if o.Nearest {
			return eights(wide)
		}
		return divisible(wide)
	}
	blocks := func(i int) int {
		if o.Lite && (i == 0 || i == len(stages)-1) {
			return stages[i].Blocks
		}
		return int(math.Ceil(float64(stages[i].Blocks) * cmp.Or(o.Depth, 1)))
	}
	all, done := 0, 0
	for i := range stages {
		all += blocks(i)
	}
	end := fmt.Sprintf("features.%d", len(stages)+1)
	stem, head := [2]string{"features.0.0", "features.0.1"}, [2]string{end + ".0", end + ".1"}
	block, first, dropout, classifier := "features.%d.%d", 1, "classifier.0", "classifier.1"
	if o.Timm {
		stem, head = [2]string{"conv_stem", "bn1"}, [2]string{"conv_head", "bn2"}
		block, first, dropout, classifier = "blocks.%d.%d", 0, "dropout", "classifier"
	}
	in, last := channels(stages[0].In), channels(o.Last)
	if o.Lite {
		in, last = stages[0].In, o.Last
	}
	x = b.convNorm(stem, x, nn.Conv{Filters: in, Kernel: 3, Stride: 2}, o.act())
	for i, s := range stages {
		n := blocks(i)
		s.In, s.Out = in, channels(s.Out)
		for j := range n {
			of, drop := o.names(fmt.Sprintf(block, first+i, j), s), b.Config().DropPath*float64(done)/float64(all)
			if s.Fused {
				x = o.fusedMBConv(b, of, x, s, drop)
			} else {
				x = o.mbConv(b, of, x, s, drop)
			}
			s.In, s.Stride = s.Out, 1
			done++
		}
		in = s.Out
	}
	if o.Last == 0 {
		last = 4 * in
	}
	x = b.convNorm(head, x, nn.Conv{Filters: last, Kernel: 1}, o.act())
	return b.Linear(classifier, b.pooled(dropout, x), b.Config().Classes)
}

// act is the activation.
func (o EfficientNet) act() nn.Activation {
	if o.Lite {
		return relu6
	}
	return (*nn.Builder).SiLU
}

// names are those of a block's parts. A fused block's convolution has the place of the depthwise one.
func (o EfficientNet) names(block string, s MBConv) blockNames {
	n := namesOf(block, o.Timm, s.Expansion > 1 && !s.Fused, !s.Fused && !o.Lite)
	if o.Timm && s.Fused {
		n.deep[0], n.project[0] = block+".conv", block+".conv_pwl"
		if s.Expansion > 1 {
			n.deep[0] = block + ".conv_exp"
		}
	}
	return n
}

func (o EfficientNet) mbConv(b layer, of blockNames, x *G.Node, s MBConv, drop float64) *G.Node {
	y, wide := x, divisible(float64(s.In*s.Expansion))
	if wide != s.In {
		y = b.convNorm(of.expand, y, nn.Conv{Filters: wide, Kernel: 1}, o.act())
	}
	deep := nn.Conv{Filters: wide, Kernel: s.Kernel, Stride: s.Stride, Groups: wide}
	y = b.convNorm(of.deep, y, deep, o.act())
	if !o.Lite {
		y = b.excite(of.excite, y, max(1, s.In/4), (*nn.Builder).SiLU, (*nn.Builder).Sigmoid)
	}
	y = b.convNorm(of.project, y, nn.Conv{Filters: s.Out, Kernel: 1}, nil)
	return b.connect(of.name, y, x, s, drop)
}

func (o EfficientNet) fusedMBConv(b layer, of blockNames, x *G.Node, s MBConv, drop float64) *G.Node {
	wide := divisible(float64(s.In * s.Expansion))
	if wide == s.In {
		y := b.convNorm(of.deep, x, nn.Conv{Filters: s.Out, Kernel: s.Kernel, Stride: s.Stride}, o.act())
		return b.connect(of.name, y, x, s, drop)
	}
	y := b.convNorm(of.deep, x, nn.Conv{Filters: wide, Kernel: s.Kernel, Stride: s.Stride}, o.act())
	y = b.convNorm(of.project, y, nn.Conv{Filters: s.Out, Kernel: 1}, nil)
	return b.connect(of.name, y, x, s, drop)
}

// connect adds x where the block keeps its shape.
func (b layer) connect(name string, y, x *G.Node, s MBConv, drop float64) *G.Node {
	if s.Stride != 1 || s.In != s.Out {
		return y
	}
	return b.residual(name, y, x, drop)
}
