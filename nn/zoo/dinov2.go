package zoo

import (
	"fmt"

	"onlinerna/nn"
)

func init() {
	for _, size := range []struct {
		name string
		net  ViT
	}{
		{"small", ViT{Width: 384, Heads: 6}},
		{"base", ViT{Width: 768, Heads: 12}},
		{"large", ViT{Width: 1024, Heads: 16, Depth: 24}},
	} {
		for _, registers := range []int{0, 4} {
			v := size.net
			v.Patch, v.LayerScale, v.Registers, v.NoEmbedClass = 14, 1e-5, registers, registers > 0
			a := nn.Architecture{
				Name:          fmt.Sprintf("vit_%s_patch14_dinov2", size.name),
				Family:        "vit",
				Summary:       fmt.Sprintf("DINOv2, %s, with timm's names", size.name),
				Reference:     "Oquab et al., DINOv2: learning robust visual features without supervision, 2023",
				Size:          518,
				MinSize:       v.Patch,
				Resize:        518,
				Interpolation: bicubic,
			}
			if registers > 0 {
				a.Name = fmt.Sprintf("vit_%s_patch14_reg%d_dinov2", size.name, registers)
				a.Summary = fmt.Sprintf("DINOv2, %s, with %d registers", size.name, registers)
				a.Reference = "Darcet et al., Vision transformers need registers, 2024"
			}
			imageNet(v.of(a))
		}
	}
}
