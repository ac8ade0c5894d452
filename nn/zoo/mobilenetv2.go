package zoo

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	a := nn.Architecture{
		Name:      "mobilenet_v2",
		Family:    "mobilenet",
		Summary:   "MobileNetV2",
		Reference: "Sandler et al., MobileNetV2: inverted residuals and linear bottlenecks, 2018",
		Dropout:   .2,
		Resize:    232,
		Init:      normal(.01),
		Build:     MobileNetV2{}.Build,
	}
	imageNet(a)
	for _, v := range []struct {
		name, summary string
		net           MobileNetV2
	}{
		{"050", "width 0.5", MobileNetV2{Width: .5}}, {"140", "width 1.4", MobileNetV2{Width: 1.4}},
		{"110d", "width 1.1, depth 1.2", MobileNetV2{Width: 1.1, Depth: 1.2}},
		{"120d", "width 1.2, depth 1.4", MobileNetV2{Width: 1.2, Depth: 1.4}},
	} {
		v.net.Timm = true
		timm := a
		timm.Name, timm.Summary = "mobilenetv2_"+v.name, a.Summary+", "+v.summary+", as timm's"
		timm.Resize, timm.Interpolation = 256, bicubic
		timm.Block, timm.Init, timm.Build = timmBlock, google, v.net.Build
		imageNet(timm)
	}
}

// MobileNetV2 are the options of a net of inverted residuals.
type MobileNetV2 struct {
	Width float64 // factor of the channels; 0 means 1
	// Depth is the factor of the blocks of all stages but the first and the last; 0 means none. With any, even 1, the first
	// and the last convolution keep their channels at any Width.
	Depth float64
	Timm  bool // names are timm's, else torchvision's
	// Settings are the stages, each of expansion, channels, blocks and stride; nil means the paper's.
	Settings [][4]int
	Round    int // channels are rounded to multiples of it; 0 means 8: torchvision's round_nearest
}

// Build adds the layers to b.
func (o MobileNetV2) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, width := layer{builder}, cmp.Or(o.Width, 1)
	if o.Settings == nil {
		o.Settings = [][4]int{{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
			{6, 320, 1, 1}}
	}
	if !b.options("MobileNetV2", o).least(0, "Width", "Depth", "Round").least(1, "Settings").ok() {
		return nil
	}
	round := func(channels float64) int { return divisibleBy(channels, cmp.Or(o.Round, 8)) }
	ends := width
	if o.Depth > 0 {
		ends = 1
	}
	channels, at, end := round(32*ends), 1, len(o.Settings)-1
	if o.Timm {
		x = b.convNorm([2]string{"conv_stem", "bn1"}, x, nn.Conv{Filters: channels, Kernel: 3, Stride: 2}, relu6)
	} else {
		x = b.norm("features.0", x, nn.Conv{Filters: channels, Kernel: 3, Stride: 2}, relu6)
	}
	for i, s := range o.Settings {
		blocks := s[2]
		if i > 0 && i < end {
			blocks = int(math.Ceil(float64(blocks) * cmp.Or(o.Depth, 1)))
		}
		for j := range blocks {
			stride := 1
			if j == 0 {
				stride = s[3]
			}
			name := fmt.Sprintf("features.%d", at)
			if o.Timm {
				name = fmt.Sprintf("blocks.%d.%d", i, j)
			}
			out := round(float64(s[1]) * width)
			x = b.inverted(invertedNames(name, o.Timm, s[0] != 1), x, channels, out, s[0], stride)
			channels = out
			at++
		}
	}
	last := nn.Conv{Filters: round(1280 * max(1, ends)), Kernel: 1}
	if o.Timm {
		x = b.convNorm([2]string{"conv_head", "bn2"}, x, last, relu6)
		return b.Linear("classifier", b.pooled("dropout", x), b.Config().Classes)
	}
	x = b.norm(fmt.Sprintf("features.%d", at), x, last, relu6)
	return b.Linear("classifier.1", b.pooled("classifier.0", x), b.Config().Classes)
}

// invertedNames are timm's or torchvision's names of the parts of a block.
func invertedNames(block string, timm, expands bool) blockNames {
	if timm {
		return namesOf(block, true, expands, false)
	}
	n, at := blockNames{name: block}, 0
	next := func() [2]string {
		name := fmt.Sprintf("%s.conv.%d", block, at)
		at++
		return [2]string{name + ".0", name + ".1"}
	}
	if expands {
		n.expand = next()
	}
	n.deep = next()
	n.project = [2]string{fmt.Sprintf("%s.conv.%d", block, at), fmt.Sprintf("%s.conv.%d", block, at+1)}
	return n
}

// inverted is an inverted residual: it expands the channels, convolves each separately, and reduces them.
func (b layer) inverted(of blockNames, x *G.Node, in, out, expansion, stride int) *G.Node {
	y, wide := x, in*expansion
	if expansion != 1 {
		y = b.convNorm(of.expand, y, nn.Conv{Filters: wide, Kernel: 1}, relu6)
	}
	y = b.convNorm(of.deep, y, nn.Conv{Filters: wide, Kernel: 3, Stride: stride, Groups: wide}, relu6)
	y = b.convNorm(of.project, y, nn.Conv{Filters: out, Kernel: 1}, nil)
	if stride == 1 && in == out {
		return b.Add(of.name+".add", y, x)
	}
	return y
}
