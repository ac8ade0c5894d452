package zoo

import (
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
}

// regNetStage is a stage: blocks of equal width, in groups.
type regNetStage struct{ width, group, blocks int }

func (o RegNet) stages() []regNetStage {
	var list []regNetStage
	for j := range o.Depth {
		power := math.RoundToEven(math.Log((float64(o.Start)+o.Slope*float64(j))/float64(o.Start)) / math.Log(o.Factor))
		width := int(math.RoundToEven(float64(o.Start)*math.Pow(o.Factor, power)/8)) * 8
		if n := len(list) - 1; n >= 0 && list[n].width == width {
			list[n].blocks++
			continue
		}
		list = append(list, regNetStage{width, 0, 1})
	}
	for i := range list {
		s := &list[i]
		s.group = min(o.GroupWidth, s.width)
		s.width = divisibleBy(float64(s.width), s.group)
	}
	return list
}

// Build adds the layers to b.
func (o RegNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, in := layer{builder}, 32
	if !b.options("RegNet", o).least(1, "Depth", "Start", "GroupWidth").least(0, "Slope", "Factor", "Excite").
		that(o.Start%8 == 0, "Start", "divisible by 8").that(o.Factor > 1, "Factor", "above 1").ok() {
		return nil
	}
	x = b.norm("stem", x, nn.Conv{Filters: in, Kernel: 3, Stride: 2}, (*nn.Builder).ReLU)
	for i, s := range o.stages() {
		for j := range s.blocks {
			stride := 1
			if j == 0 {
				stride = 2
			}
			name := fmt.Sprintf("trunk_output.block%d.block%[1]d-%d", i+1, j)
			x = b.regNetBlock(name, x, in, s.width, stride, s.width/s.group, int(math.RoundToEven(o.Excite*float64(in))))
			in = s.width
		}
	}
	return b.Linear("fc", b.GlobalAvgPool("avgpool", x), b.Config().Classes)
}

// regNetBlock is a bottleneck that keeps its width, with excited channels of squeeze-and-excitation unless that is 0.
func (b layer) regNetBlock(name string, x *G.Node, in, width, stride, groups, excited int) *G.Node {
	shortcut := x
	if in != width || stride != 1 {
		shortcut = b.norm(name+".proj", x, nn.Conv{Filters: width, Kernel: 1, Stride: stride}, nil)
	}
	y := b.norm(name+".f.a", x, nn.Conv{Filters: width, Kernel: 1}, (*nn.Builder).ReLU)
	y = b.norm(name+".f.b", y, nn.Conv{Filters: width, Kernel: 3, Stride: stride, Groups: groups}, (*nn.Builder).ReLU)
	if excited > 0 {
		y = b.SqueezeExcite(name+".f.se", y, excited, (*nn.Builder).ReLU, (*nn.Builder).Sigmoid)
	}
	y = b.norm(name+".f.c", y, nn.Conv{Filters: width, Kernel: 1}, nil)
	return b.ReLU(name+".activation", b.Add(name+".add", shortcut, y))
}
