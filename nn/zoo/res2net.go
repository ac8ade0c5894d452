package zoo

import (
	"strings"

	"onlinerna/nn"
)

func init() {
	deep, fifty, hundred := [3]int{32, 32, 64}, [4]int{3, 4, 6, 3}, [4]int{3, 4, 23, 3}
	for _, v := range []struct {
		name string
		net  nn.ResNet
	}{
		{"res2net50_14w_8s", nn.ResNet{Blocks: fifty, GroupWidth: 14, Scale: 8}},
		{"res2net50_26w_4s", nn.ResNet{Blocks: fifty, GroupWidth: 26, Scale: 4}},
		{"res2net50_26w_6s", nn.ResNet{Blocks: fifty, GroupWidth: 26, Scale: 6}},
		{"res2net50_26w_8s", nn.ResNet{Blocks: fifty, GroupWidth: 26, Scale: 8}},
		{"res2net50_48w_2s", nn.ResNet{Blocks: fifty, GroupWidth: 48, Scale: 2}},
		{"res2net50d", nn.ResNet{Blocks: fifty, GroupWidth: 26, Scale: 4, Stem: deep, AvgDown: true}},
		{"res2net101_26w_4s", nn.ResNet{Blocks: hundred, GroupWidth: 26, Scale: 4}},
		{"res2net101d", nn.ResNet{Blocks: hundred, GroupWidth: 26, Scale: 4, Stem: deep, AvgDown: true}},
		{"res2next50", nn.ResNet{Blocks: fifty, GroupWidth: 4, Groups: 8, Scale: 4}},
	} {
		size, kind, _ := strings.Cut(strings.TrimPrefix(v.name, "res2"), "_")
		summary := strings.NewReplacer("next", "Res2NeXt-", "net", "Res2Net-", "d", "-D").Replace(size)
		if kind != "" {
			summary += " " + strings.ReplaceAll(kind, "_", "×")
		}
		imageNet(nn.Architecture{
			Name:      v.name,
			Family:    "resnet",
			Summary:   summary + ", as timm's",
			Reference: "Gao et al., Res2Net: a new multi-scale backbone architecture, 2021",
			Resize:    256,
			Block:     deepStem,
			Init:      zeroLast(false),
			Build:     v.net.Build,
		})
	}
}
