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
	for name, o := range map[string]RegNet{
		"x_400mf": {Depth: 22, Start: 24, Slope: 24.48, Factor: 2.54, GroupWidth: 16},
		"x_800mf": {Depth: 16, Start: 56, Slope: 35.73, Factor: 2.28, GroupWidth: 16},
		"x_1_6gf": {Depth: 18, Start: 80, Slope: 34.01, Factor: 2.25, GroupWidth: 24},
		"x_3_2gf": {Depth: 25, Start: 88, Slope: 26.31, Factor: 2.25, GroupWidth: 48},
		"x_8gf":   {Depth: 23, Start: 80, Slope: 49.56, Factor: 2.88, GroupWidth: 120},
		"x_16gf":  {Depth: 22, Start: 216, Slope: 55.59, Factor: 2.1, GroupWidth: 128},
		"x_32gf":  {Depth: 23, Start: 320, Slope: 69.86, Factor: 2, GroupWidth: 168},
		"y_400mf": {Depth: 16, Start: 48, Slope: 27.89, Factor: 2.09, GroupWidth: 8, Excite: .25},
		"y_800mf": {Depth: 14, Start: 56, Slope: 38.84, Factor: 2.4, GroupWidth: 16, Excite: .25},
		"y_1_6gf": {Depth: 27, Start: 48, Slope: 20.71, Factor: 2.65, GroupWidth: 24, Excite: .25},
		"y_3_2gf": {Depth: 21, Start: 80, Slope: 42.63, Factor: 2.66, GroupWidth: 24, Excite: .25},
		"y_8gf":   {Depth: 17, Start: 192, Slope: 76.82, Factor: 2.19, GroupWidth: 56, Excite: .25},
		"y_16gf":  {Depth: 18, Start: 200, Slope: 106.23, Factor: 2.48, GroupWidth: 112, Excite: .25},
		"y_32gf":  {Depth: 20, Start: 232, Slope: 115.89, Factor: 2.53, GroupWidth: 232, Excite: .25},
	} {
		imageNet(nn.Architecture{
			Name:      "regnet_" + name,
			Family:    "regnet",
			Summary:   regNetSummary(name),
			Reference: "Radosavovic et al., Designing network design spaces, 2020",
			Block:     `^(trunk_output\.block\d+\.block\d+-\d+)\.`,
			Resize:    232,
			Init:      regNetInit,
			Build:     o.Build,
		})
	}
}

// regNetSummary is "RegNetX-1.6GF" for x_1_6gf.
func regNetSummary(name string) string {
	return "RegNet" + strings.ToUpper(name[:1]+"-"+strings.ReplaceAll(name[2:], "_", "."))
}

// regNetInit is normal(.01) of the last layer; the biases of squeeze-and-excitation are PyTorch's default.
func regNetInit(p nn.Param) nn.Init {
	if strings.HasPrefix(p.Name, "fc.") {
		return normal(.01)(p)
	}
	return p.Init
}

// RegNet are the options of a net whose stages are quantised from a line: block j is Start + Slope·j channels wide,
// rounded to Start times a power of Factor, and that to a multiple of 8.
type RegNet struct {
	Depth, Start  int
	Slope, Factor float64
	GroupWidth    int     // channels of a group of the 3×3 convolutions
	Excite        float64 // channels of squeeze-and-excitation by those of a block's input; 0: there is none
	Bottleneck    float64 // channels of the 3×3 convolutions by a block's; 0 means 1: torchvision's bottleneck_multiplier
	Stem          int     // channels of the first convolution; 0 means 32: torchvision's stem_width
}

// regNetStage is a stage: blocks of equal width, whose 3×3 convolutions have wide channels in groups.
type regNetStage struct{ width, wide, group, blocks int }

func (o RegNet) stages() []regNetStage {
	var list []regNetStage
	for j := range o.Depth {
		power := math.RoundToEven(math.Log((float64(o.Start)+o.Slope*float64(j))/float64(o.Start)) / math.Log(o.Factor))
		width := int(math.RoundToEven(float64(o.Start)*math.Pow(o.Factor, power)/8)) * 8
		if n := len(list) - 1; n >= 0 && list[n].width == width {
			list[n].blocks++
			continue
		}
		list = append(list, regNetStage{width: width, blocks: 1})
	}
	by := cmp.Or(o.Bottleneck, 1)
	for i := range list {
		s := &list[i]
		wide := int(float64(s.width) * by)
		s.group = min(o.GroupWidth, wide)
		s.width = int(float64(divisibleBy(float64(wide), s.group)) / by)
		s.wide = int(math.RoundToEven(float64(s.width) * by))
	}
	return list
}

// Build adds the layers to b.
func (o RegNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, in := layer{builder}, cmp.Or(o.Stem, 32)
	check := b.options("RegNet", o).least(1, "Depth", "Start", "GroupWidth").
		least(0, "Slope", "Factor", "Excite", "Bottleneck", "Stem").
		that(o.Start%8 == 0, "Start", "divisible by 8").that(o.Factor > 1, "Factor", "above 1").
		that(o.Bottleneck == 0 || float64(o.Start)*o.Bottleneck >= 1, "Bottleneck", "0 or at least 1/Start")
	if !check.ok() {
		return nil
	}
	x = b.norm("stem", x, nn.Conv{Filters: in, Kernel: 3, Stride: 2}, (*nn.Builder).ReLU)
	for i, s := range o.stages() {
		check.that(s.wide >= s.group, "Bottleneck", fmt.Sprintf(
			"a factor that gives stage %d a group of %d channels: it gives %d", i+1, s.group, s.wide))
		for j := range s.blocks {
			stride := 1
			if j == 0 {
				stride = 2
			}
			name := fmt.Sprintf("trunk_output.block%d.block%[1]d-%d", i+1, j)
			x = b.regNetBlock(name, x, in, stride, int(math.RoundToEven(o.Excite*float64(in))), s)
			in = s.width
		}
	}
	return b.Linear("fc", b.GlobalAvgPool("avgpool", x), b.Config().Classes)
}

// regNetBlock is a residual block of a stage, with excited channels of squeeze-and-excitation unless that is 0.
func (b layer) regNetBlock(name string, x *G.Node, in, stride, excited int, s regNetStage) *G.Node {
	shortcut := x
	if in != s.width || stride != 1 {
		shortcut = b.norm(name+".proj", x, nn.Conv{Filters: s.width, Kernel: 1, Stride: stride}, nil)
	}
	y := b.norm(name+".f.a", x, nn.Conv{Filters: s.wide, Kernel: 1}, (*nn.Builder).ReLU)
	y = b.norm(name+".f.b", y, nn.Conv{Filters: s.wide, Kernel: 3, Stride: stride, Groups: s.wide / s.group},
		(*nn.Builder).ReLU)
	if excited > 0 {
		y = b.SqueezeExcite(name+".f.se", y, excited, (*nn.Builder).ReLU, (*nn.Builder).Sigmoid)
	}
	y = b.norm(name+".f.c", y, nn.Conv{Filters: s.width, Kernel: 1}, nil)
	return b.ReLU(name+".activation", b.Add(name+".add", shortcut, y))
}
