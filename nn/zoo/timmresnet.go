package zoo

import (
	"strings"

	"onlinerna/nn"
)

func init() {
	deep := [3]int{32, 32, 64}
	const d = "deep stem, pooled shortcuts, "
	for _, v := range []struct {
		name, summary string
		size, resize  int
		net           nn.ResNet
	}{
		{"resnet14t", "ResNet-14-T, " + d, 176, 201,
			nn.ResNet{Blocks: [4]int{1, 1, 1, 1}, Stem: [3]int{24, 32, 64}, AvgDown: true}},
		{"resnet18d", "ResNet-18-D, " + d, 224, 256,
			nn.ResNet{Blocks: [4]int{2, 2, 2, 2}, Basic: true, Stem: deep, AvgDown: true}},
		{"resnet34d", "ResNet-34-D, " + d, 224, 256,
			nn.ResNet{Blocks: [4]int{3, 4, 6, 3}, Basic: true, Stem: deep, AvgDown: true}},
		{"resnet26", "ResNet-26, ", 224, 256, nn.ResNet{Blocks: [4]int{2, 2, 2, 2}}},
		{"resnet26d", "ResNet-26-D, " + d, 224, 256, nn.ResNet{Blocks: [4]int{2, 2, 2, 2}, Stem: deep, AvgDown: true}},
		{"resnet50d", "ResNet-50-D, " + d, 224, 256, nn.ResNet{Blocks: [4]int{3, 4, 6, 3}, Stem: deep, AvgDown: true}},
		{"resnet101d", "ResNet-101-D, " + d, 256, 269, nn.ResNet{Blocks: [4]int{3, 4, 23, 3}, Stem: deep, AvgDown: true}},
		{"resnet152d", "ResNet-152-D, " + d, 256, 269, nn.ResNet{Blocks: [4]int{3, 8, 36, 3}, Stem: deep, AvgDown: true}},
		{"seresnet50", "SE-ResNet-50, ", 224, 235, nn.ResNet{Blocks: [4]int{3, 4, 6, 3}, Excite: 1. / 16}},
		{"seresnext50_32x4d", "SE-ResNeXt-50, ", 224, 256,
			nn.ResNet{Blocks: [4]int{3, 4, 6, 3}, Groups: 32, GroupWidth: 4, Excite: 1. / 16}},
	} {
		a := nn.Architecture{
			Name:          v.name,
			Family:        "resnet",
			Summary:       v.summary + "as timm's",
			Reference:     "He et al., Deep residual learning for image recognition, 2016",
			Size:          v.size,
			Resize:        v.resize,
			Interpolation: bicubic,
			Init:          zeroLast(v.net.Basic),
			Build:         v.net.Build,
		}
		switch {
		case v.net.AvgDown:
			a.Reference = "He et al., Bag of tricks for image classification with convolutional neural networks, 2019"
		case v.net.Excite > 0:
			a.Reference = "Hu, Shen, Sun, Squeeze-and-excitation networks, 2018"
		}
		imageNet(a)
	}
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
