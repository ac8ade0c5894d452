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
		"y_128gf": {Depth: 27, Start: 456, Slope: 160.83, Factor: 2.52, GroupWidth: 264, Excite: .25},
	} {
		a := nn.Architecture{
			Name:      "regnet_" + name,
			Family:    "regnet",
			Summary:   regNetSummary(name),
			Reference: regNetReference,
			Block:     `^(trunk_output\.block\d+\.block\d+-\d+)\.`,
			Resize:    232,
			Init:      regNetInit,
			Build:     o.Build,
		}
		if name == "y_128gf" {
			a.Size, a.Resize, a.Interpolation = 384, 384, bicubic
		}
		imageNet(a)
	}
	for _, v := range []struct { // timm's whose widths are those of none of torchvision's
		name, size string
		net        RegNet
		resize     int
	}{
		{"x_002", "200MF", RegNet{Depth: 13, Start: 24, Slope: 36.44, Factor: 2.49, GroupWidth: 8}, 256},
		{"x_004", "400MF", RegNet{Depth: 22, Start: 24, Slope: 24.48, Factor: 2.54, GroupWidth: 16}, 256},
		{"x_006", "600MF", RegNet{Depth: 16, Start: 48, Slope: 36.97, Factor: 2.24, GroupWidth: 24}, 256},
		{"x_040", "4.0GF", RegNet{Depth: 23, Start: 96, Slope: 38.65, Factor: 2.43, GroupWidth: 40}, 256},
		{"x_064", "6.4GF", RegNet{Depth: 17, Start: 184, Slope: 60.83, Factor: 2.07, GroupWidth: 56}, 256},
		{"x_120", "12GF", RegNet{Depth: 19, Start: 168, Slope: 73.36, Factor: 2.37, GroupWidth: 112}, 256},
		{"y_002", "200MF", RegNet{Depth: 13, Start: 24, Slope: 36.44, Factor: 2.49, GroupWidth: 8, Excite: .25}, 256},
		{"y_006", "600MF", RegNet{Depth: 15, Start: 48, Slope: 32.54, Factor: 2.32, GroupWidth: 16, Excite: .25}, 256},
		{"y_008", "800MF", RegNet{Depth: 14, Start: 56, Slope: 38.84, Factor: 2.4, GroupWidth: 16, Excite: .25}, 256},
		{"y_040", "4.0GF", RegNet{Depth: 22, Start: 96, Slope: 31.41, Factor: 2.24, GroupWidth: 64, Excite: .25}, 235},
		{"y_064", "6.4GF", RegNet{Depth: 25, Start: 112, Slope: 33.22, Factor: 2.27, GroupWidth: 72, Excite: .25}, 235},
		{"y_080", "8.0GF", RegNet{Depth: 17, Start: 192, Slope: 76.82, Factor: 2.19, GroupWidth: 56, Excite: .25}, 235},
		{"y_120", "12GF", RegNet{Depth: 19, Start: 168, Slope: 73.36, Factor: 2.37, GroupWidth: 112, Excite: .25}, 235},
		{"y_640", "64GF", RegNet{Depth: 20, Start: 352, Slope: 147.48, Factor: 2.4, GroupWidth: 328, Excite: .25}, 384},
		{"y_2560", "256GF", RegNet{Depth: 27, Start: 640, Slope: 230.83, Factor: 2.53, GroupWidth: 373, Excite: .25}, 384},
		{"v_040", "4.0GF", RegNet{Depth: 22, Start: 96, Slope: 31.41, Factor: 2.24, GroupWidth: 64, Excite: .25, SiLU: true,
			PreAct: true}, 235},
		{"v_064", "6.4GF", RegNet{Depth: 25, Start: 112, Slope: 33.22, Factor: 2.27, GroupWidth: 72, Excite: .25, SiLU: true,
			PreAct: true, AvgDown: true}, 235},
		{"z_040", "4.0GF", RegNet{Depth: 28, Start: 48, Slope: 14.5, Factor: 2.226, GroupWidth: 8, Excite: .25, Bottleneck: 4,
			SiLU: true, Linear: true}, 256},
		{"z_040_h", "4.0GF with a last convolution", RegNet{Depth: 28, Start: 48, Slope: 14.5, Factor: 2.226, GroupWidth: 8,
			Excite: .25, Bottleneck: 4, SiLU: true, Linear: true, Last: 1536}, 256},
	} {
		v.net.Timm = true
		a := nn.Architecture{
			Name:          "regnet" + v.name,
			Family:        "regnet",
			Summary:       "RegNet" + strings.ToUpper(v.name[:1]) + "-" + v.size + ", as timm's",
			Reference:     regNetReference,
			Block:         `^(s\d\.b\d+)\.`,
			Resize:        v.resize,
			Interpolation: bicubic,
			Init:          regNetTimmInit,
			Build:         v.net.Build,
		}
		switch {
		case v.resize == 384:
			a.Size = 384
		case v.net.Linear:
			a.Size, a.Reference = 256, "Dollár, Singh, Girshick, Fast and accurate model scaling, 2021"
			a.Init = regNetGroupInit
		}
		imageNet(a)
	}
}

const regNetReference = "Radosavovic et al., Designing network design spaces, 2020"

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

// regNetTimmInit is timm's: as regNetGroupInit, and blocks begin as their shortcuts.
func regNetTimmInit(p nn.Param) nn.Init {
	if strings.HasSuffix(p.Name, ".conv3.bn.weight") {
		return nn.Init{}
	}
	return regNetGroupInit(p)
}

// regNetGroupInit is timm's without zero_init_last: fans are of a group, and biases begin at 0.
func regNetGroupInit(p nn.Param) nn.Init {
	if strings.Contains(p.Name, ".conv2.conv.") || strings.HasSuffix(p.Name, ".conv2.weight") {
		return nn.Init{Distribution: nn.Normal, Scale: math.Sqrt(2 / float64(9*p.Shape[1]))}
	}
	return normal(.01)(p)
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
	Timm          bool    // names, order of parameters and the rounding to groups are timm's, else torchvision's

	// The others are Timm's, too.

	SiLU bool // activations, else ReLU; timm's act_layer
	// Linear leaves out the activation behind a block and the shortcut of blocks that change the shape. An activation
	// follows all blocks: timm's linear_out with downsample=None.
	Linear bool
	Last   int // channels of a last convolution; 0: there is none; timm's num_features
	// PreAct puts normalisations and activations before convolutions. A shortcut begins behind the first: timm's preact.
	PreAct  bool
	AvgDown bool // a pooling takes the stride of shortcuts, with PreAct; timm's downsample "avg"
}

// act is the activation.
func (o RegNet) act() nn.Activation {
	if o.SiLU {
		return (*nn.Builder).SiLU
	}
	return (*nn.Builder).ReLU
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
		rounded := divisibleBy(float64(wide), s.group)
		if o.Timm {
			rounded = int(math.RoundToEven(float64(wide)/float64(s.group))) * s.group
		}
		s.width = int(float64(rounded) / by)
		s.wide = int(math.RoundToEven(float64(s.width) * by))
	}
	return list
}

// Build adds the layers to b.
func (o RegNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, in := layer{builder}, cmp.Or(o.Stem, 32)
	check := b.options("RegNet", o).least(1, "Depth", "Start", "GroupWidth").
		least(0, "Slope", "Factor", "Excite", "Bottleneck", "Stem", "Last").
		that(o.Timm || !o.SiLU, "SiLU", "false without Timm").that(o.Timm || !o.Linear, "Linear", "false without Timm").
		that(o.Timm || o.Last == 0, "Last", "0 without Timm").
		that(o.Timm && !o.Linear || !o.PreAct, "PreAct", "false with Linear or without Timm").
		that(o.PreAct || !o.AvgDown, "AvgDown", "false without PreAct").
		that(o.Start%8 == 0, "Start", "divisible by 8").that(o.Factor > 1, "Factor", "above 1").
		that(o.Bottleneck == 0 || float64(o.Start)*o.Bottleneck >= 1, "Bottleneck", "0 or at least 1/Start")
	if !check.ok() {
		return nil
	}
	n := regNetTorchvision
	if o.Timm {
		n = regNetTimm
	}
	stem := nn.Conv{Filters: in, Kernel: 3, Stride: 2}
	if o.PreAct {
		x = b.conv("stem", x, stem)
	} else {
		x = b.convNorm(n.pair("stem"), x, stem, o.act())
	}
	var drop, dropout float64 // torchvision's has neither
	if o.Timm {
		dropout = b.Config().Dropout
	}
	done := 0
	for i, s := range o.stages() {
		check.that(s.wide >= s.group, "Bottleneck", fmt.Sprintf(
			"a factor that gives stage %d a group of %d channels: it gives %d", i+1, s.group, s.wide))
		for j := range s.blocks {
			stride := 1
			if j == 0 {
				stride = 2
			}
			excited := int(math.RoundToEven(o.Excite * float64(in)))
			if o.Timm {
				drop = b.Config().DropPathAt(done, o.Depth)
			}
			name := fmt.Sprintf(n.block, i+1, j+n.first)
			if o.PreAct {
				x = o.preBlock(b, name, x, in, s, stride, excited, drop)
			} else {
				x = o.block(b, n, name, x, in, s, stride, excited, drop)
			}
			done++
			in = s.width
		}
	}
	switch {
	case o.Last > 0:
		x = b.bnConv("final_conv", x, nn.Conv{Filters: o.Last, Kernel: 1}, o.act())
	case o.Linear, o.PreAct:
		x = o.act()(b.Builder, "final_conv.act", x)
	}
	return b.Linear(n.head, b.Dropout("head.drop", b.GlobalAvgPool("avgpool", x), dropout), b.Config().Classes)
}

// regNetNames are the names of a RegNet's layers.
type regNetNames struct {
	conv, norm              string // suffixes
	block                   string // with the number of the stage, from 1, and of the block, from first
	first                   int
	a, b, excite, c, shorts string // parts of a block
	head                    string
	shortLast               bool // parameters of a block's shortcut come last
}

var (
	regNetTorchvision = regNetNames{conv: ".0", norm: ".1", block: "trunk_output.block%d.block%[1]d-%d", a: ".f.a", b: ".f.b",
		excite: ".f.se", c: ".f.c", shorts: ".proj", head: "fc"}
	regNetTimm = regNetNames{conv: ".conv", norm: ".bn", block: "s%d.b%d", first: 1, a: ".conv1", b: ".conv2", excite: ".se",
		c: ".conv3", shorts: ".downsample", head: "head.fc", shortLast: true}
)

// pair are the names of a convolution and its normalisation.
func (n regNetNames) pair(name string) [2]string { return [2]string{name + n.conv, name + n.norm} }

// block is a residual block of a stage, with excited channels of squeeze-and-excitation unless that is 0. Its branch is
// dropped with probability drop in Train.
func (o RegNet) block(b layer, n regNetNames, name string, x *G.Node, in int, s regNetStage,
	stride, excited int, drop float64) *G.Node {
	shortcut := x
	changes := in != s.width || stride != 1
	shorten := func() {
		if changes && !o.Linear {
			shortcut = b.convNorm(n.pair(name+n.shorts), x, nn.Conv{Filters: s.width, Kernel: 1, Stride: stride}, nil)
		}
	}
	if !n.shortLast {
		shorten()
	}
	wide := nn.Conv{Filters: s.wide, Kernel: 3, Stride: stride, Groups: s.wide / s.group}
	y := b.convNorm(n.pair(name+n.a), x, nn.Conv{Filters: s.wide, Kernel: 1}, o.act())
	y = b.convNorm(n.pair(name+n.b), y, wide, o.act())
	if excited > 0 {
		y = b.SqueezeExcite(name+n.excite, y, excited, o.act(), (*nn.Builder).Sigmoid)
	}
	y = b.convNorm(n.pair(name+n.c), y, nn.Conv{Filters: s.width, Kernel: 1}, nil)
	if n.shortLast {
		shorten()
	}
	if !changes || !o.Linear {
		y = b.Add(name+".add", shortcut, b.StochasticDepth(name+".drop_path", y, drop))
	}
	if o.Linear {
		return y
	}
	return o.act()(b.Builder, name+".activation", y)
}

// preBlock is block with PreAct.
func (o RegNet) preBlock(b layer, name string, x *G.Node, in int, s regNetStage, stride, excited int,
	drop float64) *G.Node {
	norm := func(i int, x *G.Node) *G.Node {
		norm := fmt.Sprintf("%s.norm%d", name, i)
		return o.act()(b.Builder, norm+".act", b.BatchNorm(norm, x, 1))
	}
	x = norm(1, x)
	y := norm(2, b.conv(name+".conv1", x, nn.Conv{Filters: s.wide, Kernel: 1}))
	y = b.conv(name+".conv2", y, nn.Conv{Filters: s.wide, Kernel: 3, Stride: stride, Groups: s.wide / s.group})
	if excited > 0 {
		y = b.SqueezeExcite(name+".se", y, excited, o.act(), (*nn.Builder).Sigmoid)
	}
	y = b.conv(name+".conv3", norm(3, y), nn.Conv{Filters: s.width, Kernel: 1})
	if in != s.width || stride > 1 {
		conv := nn.Conv{Filters: s.width, Kernel: 1, Stride: stride}
		down := name + ".downsample"
		if o.AvgDown {
			if stride > 1 {
				x = b.Pairs(down+".0", x)
			}
			conv.Stride, down = 1, down+".1"
		}
		x = b.conv(down, x, conv)
	}
	return b.pathAdd(name, y, x, drop)
}
