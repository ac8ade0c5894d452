package zoo

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, small := range []bool{false, true} {
		size := "large"
		if small {
			size = "small"
		}
		a := nn.Architecture{
			Name:              "mobilenet_v3_" + size,
			Family:            "mobilenet",
			Summary:           "MobileNetV3, " + size,
			Reference:         "Howard et al., Searching for MobileNetV3, 2019",
			BatchNormEps:      .001,
			BatchNormMomentum: .01,
			Dropout:           .2,
			Init:              normal(.01),
			Build:             MobileNetV3{Small: small}.Build,
		}
		if !small {
			a.Resize = 232
		}
		imageNet(a)
		for _, v := range []struct {
			width          float64
			plain, tf      bool // timm has weights without and with TensorFlow's padding
			name, describe string
		}{
			{.5, small, false, "050", ", width 0.5"}, {.75, small, true, "075", ", width 0.75"}, {1, true, true, "100", ""},
		} {
			timm := a
			timm.Name, timm.Summary = "mobilenetv3_"+size+"_"+v.name, a.Summary+v.describe+", as timm's"
			timm.BatchNormEps, timm.BatchNormMomentum = 0, 0
			timm.Resize, timm.Interpolation = 256, bicubic
			timm.Block, timm.Init = timmBlock, google
			timm.Build = MobileNetV3{Small: small, Width: v.width, Timm: true}.Build
			tf := timm
			tf.Name, tf.Summary = "tf_"+timm.Name, a.Summary+v.describe+", with TensorFlow's padding, as timm's"
			tf.SamePadding, tf.BatchNormEps = true, .001
			tf.Interpolation, tf.Mean, tf.Std = "", half, half
			if v.plain {
				imageNet(timm)
			}
			if v.tf {
				imageNet(tf)
			}
		}
	}
}

// MobileNetV3 are the options of a net of inverted residuals, some with squeeze-and-excitation.
type MobileNetV3 struct {
	Small bool
	Width float64 // factor of the channels; 0 means 1
	// Timm are timm's names, and timm's rounding at other widths: the first convolution stays as wide for a Width below
	// .75, the last one always, and expansions are of rounded channels.
	Timm bool

	Reduced bool // the last three blocks and Last have half of the channels: torchvision's reduced_tail
	Dilated bool // the last three blocks have the dilation 2 and no stride: torchvision's dilated

	// Blocks are torchvision's inverted_residual_setting; nil means the paper's. They exclude Small, Timm, Reduced and
	// Dilated.
	Blocks []MobileBlock
	Stem   int // channels of the first convolution, the first block's input_channels, before Width; 0 means 16
	// Last is the number of channels of the last but one layer, before Width: torchvision's last_channel. 0 means 1280,
	// with Small 1024, and half with Reduced.
	Last int
}

// MobileBlock are the options of an inverted residual of MobileNetV3: torchvision's InvertedResidualConfig.
type MobileBlock struct {
	Kernel    int  // height and width of the depthwise convolution: odd
	Wide, Out int  // expanded_channels and out_channels, before Width
	Excite    bool // with squeeze-and-excitation: use_se
	Hardswish bool // in place of ReLU: the activation "HS"
	Stride    int  // 1, or 2 for a block without a shortcut
	Dilation  int  // of the depthwise convolution, whose stride is 1 if that is above 1; 0 means 1
}

var (
	mobileLarge = []MobileBlock{
		{3, 16, 16, false, false, 1, 1},
		{3, 64, 24, false, false, 2, 1}, {3, 72, 24, false, false, 1, 1},
		{5, 72, 40, true, false, 2, 1}, {5, 120, 40, true, false, 1, 1}, {5, 120, 40, true, false, 1, 1},
		{3, 240, 80, false, true, 2, 1}, {3, 200, 80, false, true, 1, 1}, {3, 184, 80, false, true, 1, 1},
		{3, 184, 80, false, true, 1, 1},
		{3, 480, 112, true, true, 1, 1}, {3, 672, 112, true, true, 1, 1},
		{5, 672, 160, true, true, 2, 1}, {5, 960, 160, true, true, 1, 1}, {5, 960, 160, true, true, 1, 1},
	}
	mobileSmall = []MobileBlock{
		{3, 16, 16, true, false, 2, 1},
		{3, 72, 24, false, false, 2, 1}, {3, 88, 24, false, false, 1, 1},
		{5, 96, 40, true, true, 2, 1}, {5, 240, 40, true, true, 1, 1}, {5, 240, 40, true, true, 1, 1},
		{5, 120, 48, true, true, 1, 1}, {5, 144, 48, true, true, 1, 1},
		{5, 288, 96, true, true, 2, 1}, {5, 576, 96, true, true, 1, 1}, {5, 576, 96, true, true, 1, 1},
	}
)

// check reports whether the options are right.
func (o MobileNetV3) check(b layer) bool {
	own := o.Blocks != nil
	b.options("MobileNetV3", o).least(0, "Width", "Stem", "Last").
		that(!own || len(o.Blocks) > 0, "Blocks", "nil or have a block").
		that(!own || !o.Small, "Small", "false with Blocks").
		that(!own || !o.Timm, "Timm", "false with Blocks").
		that(!o.Reduced || !own && !o.Timm, "Reduced", "false with Blocks or Timm").
		that(!o.Dilated || !own && !o.Timm, "Dilated", "false with Blocks or Timm")
	for i, s := range o.Blocks {
		b.options(fmt.Sprintf("MobileNetV3.Blocks[%d]", i), s).least(1, "Kernel", "Wide", "Out", "Stride").
			least(0, "Dilation").that(s.Kernel%2 == 1, "Kernel", "odd").that(s.Stride <= 2, "Stride", "1 or 2")
	}
	return b.Err() == nil
}

// blocks are the blocks and the number of channels of the last but one layer, before Width.
func (o MobileNetV3) blocks() ([]MobileBlock, int) {
	list, last := mobileLarge, 1280
	if o.Small {
		list, last = mobileSmall, 1024
	}
	if o.Blocks != nil {
		list = o.Blocks
	}
	list = slices.Clone(list)
	if o.Reduced {
		last /= 2
	}
	for i := range list {
		s, tail := &list[i], i-len(list)+3 // 0 to 2 are the last three
		if tail >= 0 && o.Dilated {
			s.Dilation = 2
		}
		if tail >= 0 && o.Reduced {
			s.Out /= 2
		}
		if tail >= 1 && o.Reduced {
			s.Wide /= 2
		}
	}
	return list, cmp.Or(o.Last, last)
}

// Build adds the layers to b.
func (o MobileNetV3) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !o.check(b) {
		return nil
	}
	blocks, last := o.blocks()
	channels := func(n int) int { return divisible(float64(n) * cmp.Or(o.Width, 1)) }
	base := cmp.Or(o.Stem, 16)
	in, hardswish := channels(base), nn.Activation((*nn.Builder).Hardswish)
	if o.Timm && o.Width < .75 {
		in = base
	}
	if o.Timm {
		x = b.convNorm([2]string{"conv_stem", "bn1"}, x, nn.Conv{Filters: in, Kernel: 3, Stride: 2}, hardswish)
	} else {
		x = b.norm("features.0", x, nn.Conv{Filters: in, Kernel: 3, Stride: 2}, hardswish)
	}
	stage, within := 0, 0
	for i, s := range blocks {
		if i > 0 && s.Out != blocks[i-1].Out {
			stage, within = stage+1, 0
		}
		name := fmt.Sprintf("features.%d", i+1)
		if o.Timm {
			name = fmt.Sprintf("blocks.%d.%d", stage, within)
		}
		if o.Timm {
			s.Wide = divisible(float64(in) * float64(s.Wide) / float64(base))
		} else {
			s.Wide = channels(s.Wide)
		}
		base = s.Out
		s.Out = channels(s.Out)
		x = b.mobileBlock(namesOf(name, o.Timm, s.Wide != in, s.Excite), x, in, s)
		in, within = s.Out, within+1
	}
	if o.Timm {
		name := fmt.Sprintf("blocks.%d.0", stage+1)
		x = b.convNorm([2]string{name + ".conv", name + ".bn1"}, x, nn.Conv{Filters: channels(6 * base), Kernel: 1}, hardswish)
		x = b.Conv("conv_head", b.pixel("pool", x), nn.Conv{Filters: last, Kernel: 1, Bias: true})
		x = b.Flatten("flatten", b.Hardswish("act2", x))
		return b.Linear("classifier", b.Dropout("dropout", x, b.Config().Dropout), b.Config().Classes)
	}
	x = b.norm(fmt.Sprintf("features.%d", len(blocks)+1), x, nn.Conv{Filters: 6 * in, Kernel: 1}, hardswish)
	x = b.Linear("classifier.0", b.GlobalAvgPool("avgpool", x), channels(last))
	x = b.Dropout("classifier.2", b.Hardswish("classifier.1", x), b.Config().Dropout)
	return b.Linear("classifier.3", x, b.Config().Classes)
}

// blockNames are the names of a block's parts: convolutions with their normalisations, and the excitation's two.
type blockNames struct {
	expand, deep, project [2]string
	excite                [2]string
	name                  string // the block's
}

// namesOf are timm's or torchvision's names of the parts of an inverted residual.
func namesOf(block string, timm, expands, excites bool) blockNames {
	n := blockNames{name: block}
	part := func(s string) string { return block + "." + s }
	if timm {
		n.excite = [2]string{part("se.conv_reduce"), part("se.conv_expand")}
		n.deep, n.project = [2]string{part("conv_dw"), part("bn1")}, [2]string{part("conv_pw"), part("bn2")}
		if expands {
			n.expand, n.deep[1] = [2]string{part("conv_pw"), part("bn1")}, part("bn2")
			n.project = [2]string{part("conv_pwl"), part("bn3")}
		}
		return n
	}
	at := 0
	next := func(first, second string) [2]string {
		at++
		name := part(fmt.Sprintf("block.%d.", at-1))
		return [2]string{name + first, name + second}
	}
	if expands {
		n.expand = next("0", "1")
	}
	n.deep = next("0", "1")
	if excites {
		n.excite = next("fc1", "fc2")
	}
	n.project = next("0", "1")
	return n
}

func (b layer) mobileBlock(of blockNames, x *G.Node, in int, s MobileBlock) *G.Node {
	act := nn.Activation((*nn.Builder).ReLU)
	if s.Hardswish {
		act = (*nn.Builder).Hardswish
	}
	y := x
	if s.Wide != in {
		y = b.convNorm(of.expand, y, nn.Conv{Filters: s.Wide, Kernel: 1}, act)
	}
	deep := nn.Conv{Filters: s.Wide, Kernel: s.Kernel, Stride: s.Stride, Dilation: s.Dilation, Groups: s.Wide}
	if s.Dilation > 1 {
		deep.Stride = 1
	}
	y = b.convNorm(of.deep, y, deep, act)
	if s.Excite {
		y = b.excite(of.excite, y, divisible(float64(s.Wide/4)), (*nn.Builder).ReLU, (*nn.Builder).HardSigmoid)
	}
	y = b.convNorm(of.project, y, nn.Conv{Filters: s.Out, Kernel: 1}, nil)
	if s.Stride == 1 && in == s.Out {
		return b.Add(of.name+".add", y, x)
	}
	return y
}
