package zoo

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"onlinerna/nn"
)

func init() {
	const bilinear = ""
	for _, v := range []struct {
		size, resize  int
		interpolation string
		names         string
	}{
		{176, 201, bicubic, "resnet10t resnet14t"},
		{224, 235, bicubic, "seresnet50 seresnext101_32x8d seresnext101d_32x8d resnetaa50 resnetaa50d resnetaa101d"},
		{224, 238, bicubic, "resnet50_gn"},
		{224, 256, bicubic, "resnet18d resnet26 resnet26d resnet34d resnet50c resnet50d resnet50s resnet101c resnet101s " +
			"resnet152c resnet152s resnext50d_32x4d seresnext26d_32x4d seresnext26t_32x4d seresnext50_32x4d " +
			"seresnext101_32x4d seresnext101_64x4d senet154 ecaresnet50d ecaresnet101d ecaresnetlight resnetblur50"},
		{224, 256, bilinear, "resnext101_32x4d resnext101_32x16d resnext101_32x32d"},
		{256, 269, bicubic, "resnet101d resnet152d resnet200d seresnet152d"},
		{256, 272, bicubic, "resnet26t"},
		{256, 292, bicubic, "ecaresnet26t ecaresnet50t"},
		{320, 336, bicubic, "ecaresnet269d"},
		{288, 303, bicubic, "seresnextaa101d_32x8d"},
		{384, 384, bicubic, "seresnextaa201d_32x8d"},
		{160, 175, bicubic, "resnetrs50"},
		{192, 204, bicubic, "resnetrs101"},
		{256, 256, bicubic, "resnetrs152 resnetrs200 resnetrs270"},
		{288, 288, bicubic, "resnetrs350"},
		{320, 320, bicubic, "resnetrs420"},
	} {
		for name := range strings.FieldsSeq(v.names) {
			net, summary := timmResNet(name)
			imageNet(nn.Architecture{
				Name:          name,
				Family:        "resnet",
				Summary:       summary,
				Reference:     timmResNetPaper(name, net),
				Size:          v.size,
				Resize:        v.resize,
				Interpolation: v.interpolation,
				Block:         deepStem,
				Init:          zeroLast(net.Basic),
				Build:         net.Build,
			})
		}
	}
}

// timmResNets takes timm's names of ResNets apart: attention, ResNeXt, kind, layers, stem, groups and their width,
// normalisation.
var timmResNets = regexp.MustCompile(`^(se|eca)?resne(xt|t)(aa|blur|rs)?(\d+)([cdst])?(?:_(\d+)x(\d+)d)?(_gn)?$`)

// timmResNetBlocks are the blocks of the stages by the number of layers.
var timmResNetBlocks = map[string][4]int{
	"10": {1, 1, 1, 1}, "14": {1, 1, 1, 1}, "18": {2, 2, 2, 2}, "26": {2, 2, 2, 2}, "34": {3, 4, 6, 3}, "50": {3, 4, 6, 3},
	"101": {3, 4, 23, 3}, "152": {3, 8, 36, 3}, "200": {3, 24, 36, 3}, "201": {3, 24, 36, 4}, "269": {3, 30, 48, 8},
	"270": {4, 29, 53, 4}, "350": {4, 36, 72, 4}, "420": {4, 44, 87, 4},
}

// timmResNet is the net of timm's name, and its summary.
func timmResNet(name string) (net nn.ResNet, summary string) {
	deep, wide := [3]int{32, 32, 64}, [3]int{64, 64, 128}
	switch name {
	case "senet154":
		return nn.ResNet{Blocks: timmResNetBlocks["152"], Groups: 64, GroupWidth: 4, Stem: wide, DownKernel: 3,
			ReduceFirst: 2, Excite: 1. / 16}, "SENet-154, deep stem, as timm's"
	case "ecaresnetlight":
		return nn.ResNet{Blocks: [4]int{1, 1, 11, 3}, AvgDown: true, ECA: true},
			"ECA-ResNet-Light, pooled shortcuts, as timm's"
	}
	f := timmResNets.FindStringSubmatch(name)
	attention, next, kind, layers, stem := f[1], f[2] == "xt", f[3], f[4], f[5]
	summary = map[bool]string{false: "ResNet", true: "ResNeXt"}[next] + map[string]string{"rs": "-RS"}[kind] + "-" + layers
	net.Blocks = timmResNetBlocks[layers]
	net.Basic = layers == "10" || layers == "18" || layers == "34"
	if next {
		net.Groups, _ = strconv.Atoi(f[6])
		net.GroupWidth, _ = strconv.Atoi(f[7])
	}
	if stem != "" {
		summary += "-" + strings.ToUpper(stem)
	}
	if next {
		summary += fmt.Sprintf(" %d×%dd", net.Groups, net.GroupWidth)
	}
	switch attention {
	case "se":
		summary, net.Excite = "SE-"+summary, 1./16
	case "eca":
		summary, net.ECA = "ECA-"+summary, true
	}
	switch kind {
	case "aa":
		net.AntiAlias = "avg"
		summary += " with means of 2×2 pixels in place of strides"
	case "blur":
		net.AntiAlias = "blur"
		summary += " with blurs in place of strides"
	case "rs":
		net.Stem, net.AvgDown, net.StemConv, net.Excite = deep, true, true, .25
		summary += ", deep stem without pooling, pooled shortcuts, SE"
	}
	if f[8] != "" {
		net.GroupNorm = 32
		summary += " with group normalisation"
	}
	switch {
	case stem == "t":
		net.Stem = [3]int{24, 32, 64}
	case stem == "s" || layers == "201":
		net.Stem = wide
	case stem != "":
		net.Stem = deep
	}
	if stem != "" {
		summary += ", deep stem"
	}
	if stem == "d" || stem == "t" {
		net.AvgDown = true
		summary += ", pooled shortcuts"
	}
	return net, summary + ", as timm's"
}

// timmResNetPaper is where a net was published.
func timmResNetPaper(name string, net nn.ResNet) string {
	switch {
	case strings.HasPrefix(name, "resnetrs"):
		return "Bello et al., Revisiting ResNets: improved training and scaling strategies, 2021"
	case net.ECA:
		return "Wang et al., ECA-Net: efficient channel attention for deep convolutional neural networks, 2020"
	case net.AntiAlias == "blur":
		return "Zhang, Making convolutional networks shift-invariant again, 2019"
	case net.GroupNorm > 0:
		return "Wu, He, Group normalization, 2018"
	case net.AvgDown:
		return "He et al., Bag of tricks for image classification with convolutional neural networks, 2019"
	case net.Excite > 0:
		return "Hu, Shen, Sun, Squeeze-and-excitation networks, 2018"
	case net.Groups > 1:
		return "Xie et al., Aggregated residual transformations for deep neural networks, 2017"
	}
	return "He et al., Deep residual learning for image recognition, 2016"
}

// zeroLast makes residual blocks begin as their shortcuts: timm's zero_init_last.
func zeroLast(basic bool) func(p nn.Param) nn.Init {
	last := ".bn3.weight"
	if basic {
		last = ".bn2.weight"
	}
	return func(p nn.Param) nn.Init {
		if strings.HasSuffix(p.Name, last) {
			return nn.Init{}
		}
		return p.Init
	}
}
