package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	imageNet(nn.Architecture{
		Name:      "mobilenet_v2",
		Family:    "mobilenet",
		Summary:   "MobileNetV2",
		Reference: "Sandler et al., MobileNetV2: inverted residuals and linear bottlenecks, 2018",
		Dropout:   .2,
		Resize:    232,
		Init:      normal(.01),
		Build:     MobileNetV2{}.Build,
	})
}

// MobileNetV2 are the options of a net of inverted residuals.
type MobileNetV2 struct {
	Width float64 // factor of the channels; 0 means 1
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
	if !b.options("MobileNetV2", o).least(0, "Width", "Round").least(1, "Settings").ok() {
		return nil
	}
	round := func(channels float64) int { return divisibleBy(channels, cmp.Or(o.Round, 8)) }
	channels, at := round(32*width), 1
	x = b.norm("features.0", x, nn.Conv{Filters: channels, Kernel: 3, Stride: 2}, relu6)
	for _, s := range o.Settings {
		for i := range s[2] {
			stride := 1
			if i == 0 {
				stride = s[3]
			}
			out := round(float64(s[1]) * width)
			x = b.inverted(fmt.Sprintf("features.%d", at), x, channels, out, s[0], stride)
			channels = out
			at++
		}
	}
	x = b.norm(fmt.Sprintf("features.%d", at), x, nn.Conv{Filters: round(1280 * max(1, width)), Kernel: 1}, relu6)
	return b.Linear("classifier.1", b.pooled("classifier.0", x), b.Config().Classes)
}

// inverted is an inverted residual: it expands the channels, convolves each separately, and reduces them.
func (b layer) inverted(name string, x *G.Node, in, out, expansion, stride int) *G.Node {
	y, at := x, 0
	next := func() string { at++; return fmt.Sprintf("%s.conv.%d", name, at-1) }
	if expansion != 1 {
		y = b.norm(next(), y, nn.Conv{Filters: in * expansion, Kernel: 1}, relu6)
	}
	y = b.norm(next(), y, nn.Conv{Filters: in * expansion, Kernel: 3, Stride: stride, Groups: in * expansion}, relu6)
	y = b.conv(next(), y, nn.Conv{Filters: out, Kernel: 1})
	y = b.BatchNorm(next(), y, 1)
	if stride == 1 && in == out {
		return b.Add(name+".add", y, x)
	}
	return y
}
