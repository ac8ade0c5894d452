package zoo

import (
	"fmt"
	"strings"

	"onlinerna/nn"
)

// Vision transformers with axial rotary positions or trained frequencies, and the perception encoders.
func init() {
	small, base, large := Eva{Width: 384, Heads: 6}, Eva{Width: 768, Heads: 12}, Eva{Width: 1024, Heads: 16, Depth: 24}
	for _, size := range []struct {
		name string
		net  Eva
	}{{"small", small}, {"base", base}, {"large", large}} {
		for _, kind := range []string{"", "ape_", "mixed_", "mixed_ape_"} {
			v := size.net
			v.Patch, v.Token, v.BiasedKeys, v.LayerScale, v.Temperature, v.ColumnsFirst = 16, true, true, 1e-5, 100, true
			v.NoEmbedClass, v.Mixed = strings.HasSuffix(kind, "ape_"), strings.HasPrefix(kind, "mixed_")
			v.NoPlaces = !v.NoEmbedClass
			a := nn.Architecture{
				Name:      fmt.Sprintf("vit_%s_patch16_rope_%s224", size.name, kind),
				Summary:   fmt.Sprintf("vision transformer, %s, rotary positions", size.name),
				Reference: "Heo et al., Rotary position embedding for vision transformer, 2024",
				Resize:    248,
			}
			if v.Mixed {
				v.Temperature = 10
				a.Summary += " of trained frequencies"
			}
			if v.NoEmbedClass {
				a.Summary += ", and trained ones"
			}
			v.timm(a)
		}
	}
	for _, v := range []struct {
		name      string
		net       Eva
		registers int
	}{
		{"medium", Eva{Width: 512, Heads: 8}, 1}, {"mediumd", Eva{Width: 512, Heads: 8, Depth: 20, NoQKVBias: true}, 1},
		{"betwixt", Eva{Width: 640, Heads: 10}, 4}, {"base", base, 1},
	} {
		o := v.net
		o.Patch, o.Registers, o.NoClass, o.NoPlaces, o.Grid, o.LayerScale = 16, v.registers, true, true, 16, 1e-5
		a := nn.Architecture{
			Name:      fmt.Sprintf("vit_%s_patch16_rope_reg%d_gap_256", v.name, v.registers),
			Summary:   fmt.Sprintf("vision transformer, %s, rotary positions, by the mean of its patches", v.name),
			Reference: "Heo et al., Rotary position embedding for vision transformer, 2024",
			Size:      256,
			Resize:    269,
			Mean:      half,
			Std:       half,
		}
		if v.name == "betwixt" {
			a.Mean, a.Std = clipMean, clipStd
		}
		o.timm(a)
	}
	tiny := Eva{Width: 192, Heads: 3}
	gigantic := Eva{Width: 1536, Heads: 16, Depth: 50, Hidden: 8960, NoClass: true}
	langLarge, langGigantic := large, gigantic
	langLarge.Depth, langLarge.LayerScale = 23, .1
	langGigantic.Depth, langGigantic.LayerScale = 47, .1
	spatialGigantic := gigantic
	spatialGigantic.LayerScale = .1
	for _, v := range []struct {
		kind, name  string
		net         Eva
		patch, size int
	}{
		{"core", "tiny", tiny, 16, 384}, {"core", "small", small, 16, 384}, {"core", "base", base, 16, 224},
		{"core", "large", large, 14, 336}, {"core", "gigantic", gigantic, 14, 448},
		{"lang", "large", langLarge, 14, 448}, {"lang", "gigantic", langGigantic, 14, 448},
		{"spatial", "tiny", tiny, 16, 512}, {"spatial", "small", small, 16, 512}, {"spatial", "base", base, 16, 512},
		{"spatial", "large", large, 14, 448}, {"spatial", "gigantic", spatialGigantic, 14, 448},
	} {
		o := v.net
		o.Patch, o.PreNorm, o.BiasedKeys, o.Grid, o.ColumnsFirst, o.Eps = v.patch, true, true, v.size/v.patch, true, 1e-5
		if o.NoNorm = true; v.kind == "core" {
			o.NoNorm, o.AttentionPool = false, 8
		}
		if !o.NoClass {
			o.Offset = 1
		}
		o.timm(nn.Architecture{
			Name:      fmt.Sprintf("vit_pe_%s_%s_patch%d_%d", v.kind, v.name, v.patch, v.size),
			Summary:   fmt.Sprintf("perception encoder, %s, %s, patches of %d×%[3]d", v.kind, v.name, v.patch),
			Reference: "Bolya et al., Perception encoder: the best visual embeddings are not at the output of the network, 2025",
			Size:      v.size,
			Mean:      half,
			Std:       half,
		})
	}
}
