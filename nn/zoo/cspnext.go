package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name, summary string
		first, second int // blocks of the outer and of the inner stages
		width         int
	}{
		{"tiny", "tiny", 1, 1, 48},
		{"s", "S", 1, 2, 64},
		{"m", "M", 2, 4, 96},
		{"l", "L", 3, 6, 128},
		{"x", "X", 4, 8, 160},
	} {
		o := CSPNeXt{Blocks: [4]int{v.first, v.second, v.second, v.first}, Width: v.width}
		imageNet(nn.Architecture{
			Name:          "cspnext_" + v.name,
			Family:        "cspnext",
			Summary:       "CSPNeXt-" + v.summary + " of RTMDet, with timm's names",
			Reference:     "Lyu et al., RTMDet: an empirical study of designing real-time object detectors, 2022",
			Resize:        236,
			Interpolation: bicubic,
			Block:         `^(stem|stages\.\d+\.\d+\.blocks\.\d+)\.`,
			Init:          torchInit,
			Build:         o.Build,
		})
	}
}

// CSPNeXt are the options of a net whose stages have blocks with 5×5 convolutions of channels for half of them.
type CSPNeXt struct {
	Blocks [4]int // of each stage; timm's depths
	Width  int    // channels of the first stage, which double from one to the next; timm's channels
}

// Build adds the layers to b.
func (o CSPNeXt) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("CSPNeXt", o).least(1, "Blocks", "Width").that(o.Width >= 4, "Width", "at least 4").ok() {
		return nil
	}
	half := o.Width / 4
	for i, c := range []nn.Conv{{Filters: half, Kernel: 3, Stride: 2}, {Filters: half, Kernel: 3},
		{Filters: o.Width / 2, Kernel: 3}} {
		x = o.conv(b, fmt.Sprintf("stem.%d", i), x, c)
	}
	done, all := 0, sum(o.Blocks[:3]) // the last stage's have no shortcut
	for i, n := range o.Blocks {
		name, next := fmt.Sprintf("stages.%d", i), 1
		c, last := o.Width<<i, i == 3
		x = o.conv(b, name+".0", x, nn.Conv{Filters: c, Kernel: 3, Stride: 2})
		if last {
			x = o.pyramid(b, name+".1", x)
			next = 2
		}
		name = fmt.Sprintf("%s.%d", name, next)
		short := o.point(b, name+".short_conv", x, c/2)
		x = o.point(b, name+".main_conv", x, c/2)
		for j := range n {
			x = o.block(b, fmt.Sprintf("%s.blocks.%d", name, j), x, c/2, !last, b.Config().DropPathAt(done, all))
			done++
		}
		x = b.selfExcite(name+".attention", ".fc", b.Concat(name+".concat", 1, x, short), (*nn.Builder).HardSigmoid)
		x = o.point(b, name+".final_conv", x, c)
	}
	return b.byobHead(x)
}

// conv is a convolution, its normalisation and a SiLU.
func (o CSPNeXt) conv(b layer, name string, x *G.Node, c nn.Conv) *G.Node {
	return b.bnConv(name, x, c, (*nn.Builder).SiLU)
}

// point is a convolution 1×1.
func (o CSPNeXt) point(b layer, name string, x *G.Node, channels int) *G.Node {
	return o.conv(b, name, x, nn.Conv{Filters: channels, Kernel: 1})
}

// pyramid adds maxima over squares of different sizes.
func (o CSPNeXt) pyramid(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	x = o.point(b, name+".conv1", x, c/2)
	all := []*G.Node{x}
	// The maximum over 9×9 pixels is that of maxima over 5×5, and so on.
	for i := range 3 {
		x = b.MaxPool(fmt.Sprintf("%s.poolings.%d", name, i), x, 5, 1, 2)
		all = append(all, x)
	}
	return o.point(b, name+".conv2", b.Concat(name+".concat", 1, all...), c)
}

// block convolves x, and adds the result to x if adds, as in all but the last stage. drop is the probability of
// dropping the result in Train.
func (o CSPNeXt) block(b layer, name string, x *G.Node, channels int, adds bool, drop float64) *G.Node {
	y := o.conv(b, name+".conv1", x, nn.Conv{Filters: channels, Kernel: 3})
	y = o.conv(b, name+".conv2.depthwise_conv", y, nn.Conv{Filters: channels, Kernel: 5, Groups: channels})
	y = o.point(b, name+".conv2.pointwise_conv", y, channels)
	if !adds {
		return y
	}
	return b.pathAdd(name, y, x, drop)
}
