package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		width    string
		channels [5]int
		resize   int
	}{
		{"0.5", [5]int{24, 48, 96, 192, 1024}, 0}, {"1.0", [5]int{24, 116, 232, 464, 1024}, 0},
		{"1.5", [5]int{24, 176, 352, 704, 1024}, 232}, {"2.0", [5]int{24, 244, 488, 976, 2048}, 232},
	} {
		imageNet(nn.Architecture{
			Name:      "shufflenet_v2_x" + v.width[:1] + "_" + v.width[2:],
			Family:    "shufflenet",
			Summary:   "ShuffleNetV2, width " + v.width,
			Reference: "Ma et al., ShuffleNet V2: practical guidelines for efficient CNN architecture design, 2018",
			Resize:    v.resize,
			Init: func(p nn.Param) nn.Init {
				if len(p.Shape) == 4 { // PyTorch's default
					return nn.FanInUniform(p.Shape[1:].Size())
				}
				return p.Init
			},
			Build: ShuffleNetV2{Blocks: [3]int{4, 8, 4}, Channels: v.channels}.Build,
		})
	}
}

// ShuffleNetV2 are the options of a net whose blocks convolve half of the channels and shuffle all.
type ShuffleNetV2 struct {
	Blocks   [3]int // of the stages
	Channels [5]int // of the first convolution, the stages and the last convolution
}

// Build adds the layers to b.
func (o ShuffleNetV2) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	c := o.Channels
	if !b.options("ShuffleNetV2", o).least(1, "Blocks", "Channels").
		that((c[1]|c[2]|c[3])%2 == 0, "Channels", "even for the stages, the middle three").ok() {
		return nil
	}
	x = b.norm("conv1", x, nn.Conv{Filters: o.Channels[0], Kernel: 3, Stride: 2}, (*nn.Builder).ReLU)
	x = b.MaxPool("maxpool", x, 3, 2, 1)
	for i, n := range o.Blocks {
		for j := range n {
			name := fmt.Sprintf("stage%d.%d", i+2, j)
			if j == 0 {
				x = b.shuffleDown(name, x, o.Channels[i], o.Channels[i+1])
			} else {
				x = b.shuffleKeep(name, x, o.Channels[i+1])
			}
		}
	}
	x = b.norm("conv5", x, nn.Conv{Filters: o.Channels[4], Kernel: 1}, (*nn.Builder).ReLU)
	return b.Linear("fc", b.GlobalAvgPool("avgpool", x), b.Config().Classes)
}

// shuffleDown halves the extent by two branches, each of half of the channels out.
func (b layer) shuffleDown(name string, x *G.Node, in, out int) *G.Node {
	one := b.normed(name+".branch1", 0, x, nn.Conv{Filters: in, Kernel: 3, Stride: 2, Groups: in})
	one = b.ReLU(name+".branch1.4", b.normed(name+".branch1", 2, one, nn.Conv{Filters: out / 2, Kernel: 1}))
	return b.shuffle(name, one, b.branch2(name+".branch2", x, out/2, 2), out)
}

// shuffleKeep convolves the second half of the channels.
func (b layer) shuffleKeep(name string, x *G.Node, channels int) *G.Node {
	half := channels / 2
	one, two := b.Slice(name+".first", x, 1, 0, half), b.Slice(name+".second", x, 1, half, channels)
	return b.shuffle(name, one, b.branch2(name+".branch2", two, half, 1), channels)
}

func (b layer) branch2(name string, x *G.Node, channels, stride int) *G.Node {
	x = b.ReLU(name+".2", b.normed(name, 0, x, nn.Conv{Filters: channels, Kernel: 1}))
	x = b.normed(name, 3, x, nn.Conv{Filters: channels, Kernel: 3, Stride: stride, Groups: channels})
	return b.ReLU(name+".7", b.normed(name, 5, x, nn.Conv{Filters: channels, Kernel: 1}))
}

// shuffle joins two halves, whose channels then take turns.
func (b layer) shuffle(name string, one, two *G.Node, channels int) *G.Node {
	x := b.Concat(name+".concat", 1, one, two)
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	x = b.Reshape(name+".split", x, s[0], 2, channels/2, s[2], s[3])
	x = b.Permute(name+".shuffle", x, 0, 2, 1, 3, 4)
	return b.Reshape(name+".join", x, s...)
}
