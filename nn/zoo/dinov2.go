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
		{"small", vitSmall}, {"base", vitBase}, {"large", vitLarge},
		{"giant", ViT{Width: 1536, Heads: 24, Depth: 40, Hidden: 4096, SwiGLU: true}},
	} {
		for _, registers := range []int{0, 4} {
			v := size.net
			v.Patch, v.LayerScale, v.Registers, v.NoEmbedClass = 14, 1e-5, registers, registers > 0
			a := nn.Architecture{
				Name:      fmt.Sprintf("vit_%s_patch14_dinov2", size.name),
				Summary:   "DINOv2, " + size.name,
				Reference: "Oquab et al., DINOv2: learning robust visual features without supervision, 2023",
				Size:      518,
			}
			if registers > 0 {
				a.Name = fmt.Sprintf("vit_%s_patch14_reg%d_dinov2", size.name, registers)
				a.Summary += fmt.Sprintf(", %d registers", registers)
				a.Reference = "Darcet et al., Vision transformers need registers, 2024"
			}
			v.timm(a)
		}
	}
}
