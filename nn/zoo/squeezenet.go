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
	for _, v := range []string{"1_0", "1_1"} {
		imageNet(nn.Architecture{
			Name:      "squeezenet" + v,
			Family:    "squeezenet",
			Summary:   "SqueezeNet " + strings.Replace(v, "_", ".", 1),
			Reference: "Iandola et al., SqueezeNet: AlexNet-level accuracy with 50× fewer parameters, 2016",
			MinSize:   SqueezeNet{Version: v}.minSize(),
			Dropout:   .5,
			Init: func(p nn.Param) nn.Init {
				switch {
				case p.BiasOrNorm:
					return nn.Init{}
				case strings.HasPrefix(p.Name, "classifier."):
					return nn.Init{Distribution: nn.Normal, Scale: .01}
				}
				return nn.Init{Distribution: nn.Uniform, Scale: math.Sqrt(6 / float64(p.Shape[1:].Size()))}
			},
			Build: SqueezeNet{Version: v}.Build,
		})
	}
}

// SqueezeNet are the options of a net of fire modules: 1×1 convolutions, and 1×1 and 3×3 ones side by side.
type SqueezeNet struct {
	Version string // "1_0", the paper's, or "1_1", which takes less time
	Narrow  int    // divides all channels; 0 means 1
}

// minSize is the smallest input's: the three poolings take 8 pixels or more, and the first convolution has stride 2.
func (o SqueezeNet) minSize() int {
	if o.Version == "1_1" {
		return 17
	}
	return 21
}

// Build adds the layers to b.
func (o SqueezeNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, narrow := layer{builder}, cmp.Or(o.Narrow, 1)
	b.options("SqueezeNet", o).that(o.Version == "1_0" || o.Version == "1_1", "Version", `"1_0" or "1_1"`).
		least(0, "Narrow").that(o.Narrow <= 16, "Narrow", "at most 16")
	if !b.atLeast(x, o.minSize()) {
		return nil
	}
	stem, pools := nn.Conv{Filters: 96, Kernel: 7}, []int{2, 6, 11}
	if o.Version == "1_1" {
		stem, pools = nn.Conv{Filters: 64, Kernel: 3}, []int{2, 5, 8}
	}
	stem.Filters, stem.Stride, stem.Bias = stem.Filters/narrow, 2, true
	x = b.ReLU("features.1", b.Conv("features.0", x, stem))
	// squeezed, expanded
	fire := [][2]int{{16, 64}, {16, 64}, {32, 128}, {32, 128}, {48, 192}, {48, 192}, {64, 256}, {64, 256}}
	for at := 2; len(fire) > 0; at++ {
		name := fmt.Sprintf("features.%d", at)
		if len(pools) > 0 && at == pools[0] {
			x, pools = b.poolUp(name, x, 3), pools[1:]
			continue
		}
		x = b.fire(name, x, fire[0][0]/narrow, fire[0][1]/narrow)
		fire = fire[1:]
	}
	x = b.Dropout("classifier.0", x, b.Config().Dropout)
	x = b.Conv("classifier.1", x, nn.Conv{Filters: b.Config().Classes, Kernel: 1, Bias: true})
	return b.GlobalAvgPool("avgpool", b.ReLU("classifier.2", x))
}

func (b layer) fire(name string, x *G.Node, squeezed, expanded int) *G.Node {
	x = b.Conv(name+".squeeze", x, nn.Conv{Filters: squeezed, Kernel: 1, Bias: true})
	x = b.ReLU(name+".squeeze_activation", x)
	one := b.Conv(name+".expand1x1", x, nn.Conv{Filters: expanded, Kernel: 1, Bias: true})
	three := b.Conv(name+".expand3x3", x, nn.Conv{Filters: expanded, Kernel: 3, Pad: 1, Bias: true})
	return b.Concat(name+".concat", 1, b.ReLU(name+".expand1x1_activation", one),
		b.ReLU(name+".expand3x3_activation", three))
}
