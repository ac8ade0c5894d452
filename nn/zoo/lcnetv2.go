package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name string
		net  LCNetV2
	}{
		{"small", LCNetV2{Width: .75, Blocks: [4]int{2, 2, 4, 2}}},
		{"base", LCNetV2{Width: 1, Blocks: [4]int{2, 2, 6, 2}}},
		{"large", LCNetV2{Width: 1.25, Blocks: [4]int{2, 2, 8, 2}}},
	} {
		imageNet(nn.Architecture{
			Name:          "lcnetv2_" + v.name,
			Family:        "lcnet",
			Summary:       "PP-LCNetV2 with the branches of training, " + v.name + ", with timm's names",
			Reference:     "PaddlePaddle, PP-LCNetV2, 2022",
			Resize:        256,
			Interpolation: bicubic,
			Block:         `^(stem|stages\.\d\.\d+)\.`,
			Init:          heInitial,
			Build:         v.net.Build,
		})
	}
}

// LCNetV2 are the options of a net of depthwise convolutions, which have branches of several extents in later stages.
type LCNetV2 struct {
	Width  float64 // factor of the channels; 0 means 1; timm's scale
	Blocks [4]int  // of each stage; timm's depths
}

// lcBlock are the options of a stage's blocks.
type lcBlock struct {
	out, kernel              int
	split, rep, excite, adds bool // timm's split_pw, use_rep, use_se and use_shortcut
}

var lcStages = [4]lcBlock{
	{128, 3, false, false, false, false}, {256, 3, false, false, false, false}, {512, 5, true, true, true, false},
	{1024, 5, false, true, false, true},
}

// Build adds the layers to b.
func (o LCNetV2) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("LCNetV2", o).least(0, "Width").least(1, "Blocks").ok() {
		return nil
	}
	channels := func(n int) int { return divisible(float64(n) * cmp.Or(o.Width, 1)) }
	x = b.bnConv("stem.0", x, nn.Conv{Filters: channels(32), Kernel: 3, Stride: 2}, (*nn.Builder).ReLU)
	x = b.lcBlock("stem.1", x, lcBlock{out: channels(64), kernel: 3}, 1)
	for i, s := range lcStages {
		s.out = channels(s.out)
		for j := range o.Blocks[i] {
			stride := 1
			if j == 0 {
				stride = 2
			}
			x = b.lcBlock(fmt.Sprintf("stages.%d.%d", i, j), x, s, stride)
		}
	}
	x = b.ReLU("act2", b.Conv("conv_head", b.pixel("pool", x), nn.Conv{Filters: 1280, Kernel: 1}))
	x = b.Dropout("dropout", b.Flatten("flatten", x), b.Config().Dropout)
	return b.Linear("classifier", x, b.Config().Classes)
}

// lcBlock is a depthwise convolution, or the sum of several, and one or two of 1×1.
func (b layer) lcBlock(name string, x *G.Node, s lcBlock, stride int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	in, relu := x.Shape()[1], nn.Activation((*nn.Builder).ReLU)
	deep := nn.Conv{Filters: in, Kernel: s.kernel, Stride: stride, Groups: in}
	var y *G.Node
	if s.rep {
		for i := 0; deep.Kernel > 0 && (deep.Kernel > 1 || stride == 1); i++ {
			branch := fmt.Sprintf("%s.dw_conv_list.%d", name, i)
			if z := b.bnConv(branch, x, deep, nil); y == nil {
				y = z
			} else {
				y = b.Add(branch+".add", y, z)
			}
			deep.Kernel -= 2
		}
		y = b.ReLU(name+".dw_act", y)
	} else {
		y = b.bnConv(name+".dw_conv", x, deep, relu)
	}
	if s.excite {
		y = b.excite([2]string{name + ".se.fc1", name + ".se.fc2"}, y, in/4, relu, (*nn.Builder).Sigmoid)
	}
	if s.split {
		y = b.bnConv(name+".pw_conv.0", y, nn.Conv{Filters: s.out / 2, Kernel: 1}, relu)
		y = b.bnConv(name+".pw_conv.1", y, nn.Conv{Filters: s.out, Kernel: 1}, relu)
	} else {
		y = b.bnConv(name+".pw_conv", y, nn.Conv{Filters: s.out, Kernel: 1}, relu)
	}
	if s.adds && stride == 1 && in == s.out {
		y = b.Add(name+".add", y, x)
	}
	return y
}

// heInitial gives convolutions He's initial values, linear layers PyTorch's, and biases 0.
func heInitial(p nn.Param) nn.Init {
	if len(p.Shape) == 1 && p.Init.Distribution == nn.Uniform {
		return nn.Init{}
	}
	return p.Init
}
