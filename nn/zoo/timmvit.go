package zoo

import (
	"fmt"
	"math"

	"onlinerna/nn"
)

// The sizes of vision transformers that papers share.
var (
	vitTiny     = ViT{Width: 192, Heads: 3}
	vitSmall    = ViT{Width: 384, Heads: 6}
	vitMedium   = ViT{Width: 512, Heads: 8}
	vitBetwixt  = ViT{Width: 640, Heads: 10}
	vitBase     = ViT{Width: 768, Heads: 12}
	vitPlus     = ViT{Width: 896, Heads: 14}
	vitLarge    = ViT{Width: 1024, Heads: 16, Depth: 24}
	vitHuge     = ViT{Width: 1280, Heads: 16, Depth: 32}
	vitGiant    = ViT{Width: 1408, Heads: 16, Depth: 40, Hidden: 6144}
	vitGigantic = ViT{Width: 1664, Heads: 16, Depth: 48, Hidden: 8192}
	vitSO400M   = ViT{Width: 1152, Heads: 16, Depth: 27, Hidden: 4304}
)

// cropped is the length of an image's shorter side before the crop of a part, timm's crop_pct.
func cropped(size int, part float64) int { return int(math.Floor(float64(size) / part)) }

// timm registers a net with timm's names. Images are resized bicubically, to the size of the crop unless the
// architecture says otherwise.
func (v ViT) timm(a nn.Architecture) {
	a.Summary += ", with timm's names"
	a.MinSize = v.Patch
	if a.Family == "" {
		a.Family = "vit"
	}
	if a.Size == 0 {
		a.Size = 224
	}
	if a.Resize == 0 {
		a.Resize = a.Size
	}
	if a.Interpolation == "" {
		a.Interpolation = bicubic
	}
	imageNet(v.of(a))
}

func init() {
	const paper = "Dosovitskiy et al., An image is worth 16×16 words, 2021"
	for _, v := range []struct {
		name    string
		net     ViT
		patches []int
		sizes   []int
	}{
		{"tiny", vitTiny, []int{16}, []int{224, 384}},
		{"small", vitSmall, []int{16, 32}, []int{224, 384}},
		{"base", vitBase, []int{16, 32}, []int{224, 384}},
		{"large", vitLarge, []int{16, 32}, []int{224, 384}},
		{"base", vitBase, []int{8}, []int{224}},
		{"large", vitLarge, []int{14}, []int{224}},
		{"huge", vitHuge, []int{14}, []int{224}},
		{"giant", vitGiant, []int{14}, []int{224}},
		{"gigantic", vitGigantic, []int{14}, []int{224}},
	} {
		for _, v.net.Patch = range v.patches {
			for _, size := range v.sizes {
				a := nn.Architecture{
					Name:      fmt.Sprintf("vit_%s_patch%d_%d", v.name, v.net.Patch, size),
					Summary:   fmt.Sprintf("vision transformer, %s, patches of %d×%[2]d", v.name, v.net.Patch),
					Reference: paper,
					Size:      size,
					Mean:      half,
					Std:       half,
				}
				if size == 224 {
					a.Resize = 248
				}
				v.net.timm(a)
			}
		}
	}
	plus := vitPlus
	plus.LayerScale = 1e-5
	miil, rpn, deep, dino := vitBase, vitBase, vitSmall, vitSmall
	miil.Patch, miil.NoQKVBias = 16, true
	rpn.Patch, rpn.NoQKVBias, rpn.LayerScale, rpn.PostNorm, rpn.Mean, rpn.NormMean = 16, true, 1e-5, true, true, true
	deep.Patch, deep.Depth, deep.LayerScale = 16, 36, 1e-5
	dino.Patch = 8
	dino.timm(nn.Architecture{Name: "vit_small_patch8_224", Summary: "vision transformer, small, patches of 8×8",
		Reference: "Caron et al., Emerging properties in self-supervised vision transformers, 2021", Resize: 248})
	miil.timm(nn.Architecture{Name: "vit_base_patch16_224_miil",
		Summary:   "vision transformer, base, without biases of queries",
		Reference: "Ridnik et al., ImageNet-21K pretraining for the masses, 2021", Resize: 256, Interpolation: "bilinear",
		Mean: zeros3, Std: ones3})
	rpn.timm(nn.Architecture{Name: "vit_base_patch16_rpn_224",
		Summary:   "vision transformer, base, normalised behind branches",
		Reference: paper, Resize: 248, Mean: half, Std: half})
	deep.timm(nn.Architecture{Name: "vit_small_patch16_36x1_224", Summary: "vision transformer, small, 36 blocks",
		Reference: "Touvron et al., Three things everyone should know about vision transformers, 2022", Resize: 248,
		Mean: half, Std: half})
	for patch, size := range map[int]int{32: 256, 16: 240} {
		plus.Patch = patch
		plus.timm(nn.Architecture{Name: fmt.Sprintf("vit_base_patch%d_plus_%d", patch, size),
			Summary:   fmt.Sprintf("vision transformer, a wider base, patches of %d×%[1]d", patch),
			Reference: paper, Size: size, Resize: cropped(size, .95), Mean: half, Std: half})
	}
	for name, v := range map[string]ViT{"small": vitSmall, "base": vitBase, "large": vitLarge} {
		v.Patch, v.NoEmbedClass = 16, true
		v.timm(nn.Architecture{Name: "flexivit_" + name, Summary: "FlexiViT, " + name,
			Reference: "Beyer et al., FlexiViT: one model for all patch sizes, 2023", Size: 240, Resize: 252,
			Mean: half, Std: half})
	}
	eva := vitLarge
	eva.Patch, eva.Mean, eva.ClassBeside, eva.NormMean = 14, true, true, true
	for _, size := range []int{196, 336} {
		eva.timm(nn.Architecture{Name: fmt.Sprintf("eva_large_patch14_%d", size), Summary: "EVA, large, patches of 14×14",
			Reference: "Fang et al., EVA: exploring the limits of masked visual representation learning at scale, 2023",
			Size:      size, Mean: clipMean, Std: clipStd})
	}
	intern := vitLarge
	intern.Patch, intern.LayerScale, intern.NoNorm = 14, .1, true
	intern.timm(nn.Architecture{Name: "vit_intern300m_patch14_448", Summary: "InternViT, 300 million parameters",
		Reference: "Chen et al., How far are we to GPT-4V?, 2024", Size: 448})
	for _, v := range []struct {
		name        string
		net         ViT
		patch, size int
	}{
		{"base", vitBase, 16, 224}, {"large", vitLarge, 16, 224}, {"giant", vitGiant, 14, 224},
		{"giant", vitGiant, 14, 336},
	} {
		o := v.net
		o.Patch, o.Mean, o.ClassBeside, o.NormMean, o.ScaleNorms, o.Eps = v.patch, true, true, true, true, 1e-5
		o.timm(nn.Architecture{Name: fmt.Sprintf("beit3_%s_patch%d_%d", v.name, v.patch, v.size),
			Summary:   fmt.Sprintf("BEiT-3's image tower, %s, patches of %d×%[2]d", v.name, v.patch),
			Reference: "Wang et al., Image as a foreign language: BEiT pretraining for vision and vision-language tasks, 2023",
			Size:      v.size})
	}
	deits()
	means()
	foundations()
}

// Of pixels on the scale 0 to 1 that weights take as they are.
var (
	zeros3 = []float64{0, 0, 0}
	ones3  = []float64{1, 1, 1}
)

// deits registers DeiTs.
func deits() {
	const paper = "Touvron et al., Training data-efficient image transformers, 2021"
	for _, size := range []struct {
		name string
		net  ViT
	}{{"tiny", vitTiny}, {"small", vitSmall}, {"base", vitBase}} {
		for _, distilled := range []bool{false, true} {
			v := size.net
			v.Patch, v.Distilled = 16, distilled
			a := nn.Architecture{
				Name:      fmt.Sprintf("deit_%s_patch16_224", size.name),
				Family:    "deit",
				Summary:   "DeiT, " + size.name,
				Reference: paper,
				DropPath:  .1,
				Resize:    248,
			}
			if distilled {
				a.Name = fmt.Sprintf("deit_%s_distilled_patch16_224", size.name)
				a.Summary += ", the token and the head of distillation"
				a.Heads = []string{"head", "head_dist"}
			}
			v.timm(a)
			if size.name == "base" {
				a.Name, a.Size, a.Resize = a.Name[:len(a.Name)-3]+"384", 384, 384
				v.timm(a)
			}
		}
	}
	for _, v := range []struct {
		size  string
		net   ViT
		patch int
		sizes []int
	}{
		{"small", vitSmall, 16, []int{224, 384}}, {"medium", vitMedium, 16, []int{224}},
		{"base", vitBase, 16, []int{224, 384}}, {"large", vitLarge, 16, []int{224, 384}}, {"huge", vitHuge, 14, []int{224}},
	} {
		v.net.Patch, v.net.NoEmbedClass, v.net.LayerScale = v.patch, true, 1e-6
		for _, size := range v.sizes {
			a := nn.Architecture{
				Name:      fmt.Sprintf("deit3_%s_patch%d_%d", v.size, v.patch, size),
				Family:    "deit",
				Summary:   "DeiT III, " + v.size,
				Reference: "Touvron et al., DeiT III: revenge of the ViT, 2022",
				Size:      size,
			}
			if size == 224 {
				a.Resize = 248
			}
			v.net.timm(a)
		}
	}
}

// means registers vision transformers whose heads take the mean of the patches.
func means() {
	const dosovitskiy = "Dosovitskiy et al., An image is worth 16×16 words, 2021"
	const registers = "Darcet et al., Vision transformers need registers, 2024"
	const ijepa = "Assran et al., Self-supervised learning from images with a joint-embedding predictive " +
		"architecture, 2023"
	base := vitBase
	base.Heads = 16
	medium, betwixt := vitMedium, vitBetwixt
	medium.NoQKVBias, medium.LayerScale, betwixt.NoQKVBias, betwixt.LayerScale = true, 1e-6, true, 1e-6
	for _, v := range []struct {
		name        string
		net         ViT
		patch, size int
		part        float64
	}{
		{"base", base, 16, 224, .9}, {"medium", medium, 16, 240, .95}, {"medium", medium, 16, 256, .95},
		{"medium", medium, 16, 384, .95}, {"betwixt", betwixt, 16, 256, .95}, {"huge", vitHuge, 14, 224, .9},
		{"huge", vitHuge, 16, 448, 1}, {"giant", vitGiant, 16, 224, .9},
	} {
		v.net.Patch, v.net.Mean = v.patch, true
		a := nn.Architecture{Name: fmt.Sprintf("vit_%s_patch%d_gap_%d", v.name, v.patch, v.size),
			Summary:   fmt.Sprintf("vision transformer, %s, patches of %d×%[2]d, by their mean", v.name, v.patch),
			Reference: dosovitskiy, Size: v.size, Resize: cropped(v.size, v.part), Mean: half, Std: half}
		if v.name == "huge" || v.name == "giant" {
			a.Reference, a.Mean, a.Std = ijepa, nil, nil
		}
		v.net.timm(a)
	}
	scaled := func(v ViT, depth, hidden int) ViT {
		v.Patch, v.Depth, v.Hidden, v.LayerScale = 16, depth, hidden, 1e-5
		v.Mean, v.NormMean, v.NoEmbedClass = true, true, true
		return v
	}
	wee, little := ViT{Width: 256, Heads: 4}, ViT{Width: 320, Heads: 5}
	pwee, dwee, dlittle := scaled(wee, 16, 1280), scaled(wee, 14, 1280), scaled(little, 14, 1792)
	pwee.Parallel, dwee.Differential, dlittle.Differential = true, true, true
	dpwee := pwee
	dpwee.Differential = true
	reg4 := scaled(vitBase, 0, 0)
	reg4.LayerScale = 0
	so150m := ViT{Patch: 16, Width: 896, Heads: 14, Depth: 18, Hidden: 2304, Mean: true}
	so150m2 := ViT{Patch: 16, Width: 832, Heads: 13, Depth: 21, Hidden: 2176, Mean: true, NormMean: true, NoQKVBias: true,
		LayerScale: 1e-5}
	for _, v := range []struct {
		name      string
		net       ViT
		registers int
		size      int
		part      float64
	}{
		{"pwee", pwee, 1, 256, .95}, {"dwee", dwee, 1, 256, .95}, {"dlittle", dlittle, 1, 256, .95},
		{"dpwee", dpwee, 1, 256, .95},
		{"wee", scaled(wee, 14, 1280), 1, 256, .95}, {"little", scaled(little, 14, 1792), 1, 256, .95},
		{"little", scaled(little, 14, 1792), 4, 256, .95}, {"medium", scaled(vitMedium, 0, 0), 1, 256, .95},
		{"medium", scaled(vitMedium, 0, 0), 4, 256, .95}, {"mediumd", scaled(vitMedium, 20, 0), 4, 256, .95},
		{"mediumd", scaled(vitMedium, 20, 0), 4, 384, 1}, {"betwixt", scaled(vitBetwixt, 0, 0), 1, 256, .95},
		{"betwixt", scaled(vitBetwixt, 0, 0), 4, 256, .95}, {"betwixt", scaled(vitBetwixt, 0, 0), 4, 384, 1},
		{"base", reg4, 4, 256, .9}, {"so150m", so150m, 4, 256, .95}, {"so150m", so150m, 4, 384, 1},
		{"so150m2", so150m2, 1, 256, 1}, {"so150m2", so150m2, 1, 384, 1}, {"so150m2", so150m2, 1, 448, 1},
	} {
		v.net.Registers = v.registers
		v.net.timm(nn.Architecture{Name: fmt.Sprintf("vit_%s_patch16_reg%d_gap_%d", v.name, v.registers, v.size),
			Summary:   fmt.Sprintf("vision transformer, %s, %d registers, by the mean of its patches", v.name, v.registers),
			Reference: registers, Size: v.size, Resize: cropped(v.size, v.part), Mean: half, Std: half})
	}
	so150m.Mean, so150m.AttentionPool, so150m.Registers = false, true, 4
	so150m.timm(nn.Architecture{Name: "vit_so150m_patch16_reg4_map_256",
		Summary: "vision transformer, so150m, 4 registers, by attention", Reference: registers, Size: 256,
		Resize: cropped(256, .9), Mean: half, Std: half})
}

// foundations registers nets whose published weights have no classes.
func foundations() {
	dino := ViT{Width: 1536, Heads: 24, Depth: 40, Hidden: 4096, SwiGLU: true}
	for _, v := range []struct {
		name string
		net  ViT
	}{{"base", vitBase}, {"large", vitLarge}, {"so400m", vitSO400M}, {"giant", dino}} {
		v.net.Patch, v.net.LayerScale, v.net.Registers, v.net.NoEmbedClass = 14, 1, 1, true
		v.net.timm(nn.Architecture{Name: "vit_" + v.name + "_patch14_reg1_tipsv2", Summary: "TIPSv2, " + v.name,
			Reference: "Maninis et al., TIPS: text-image pretraining with spatial awareness, 2025", Size: 448,
			Mean: zeros3, Std: ones3})
	}
	giant := ViT{Width: 1536, Heads: 24, Depth: 40}
	for _, v := range []struct {
		name, version string
		net           ViT
		registers     int
		scale         float64
	}{
		{"base", "3", vitBase, 7, 1e-5}, {"large", "3", vitLarge, 7, 1e-5}, {"huge", "3", vitHuge, 7, 0},
		{"giant", "3", giant, 7, 0}, {"huge", "4", vitHuge, 9, 0}, {"so400m", "4", vitSO400M, 9, 0},
	} {
		v.net.Patch, v.net.Registers, v.net.LayerScale = 16, v.registers, v.scale
		v.net.NoEmbedClass, v.net.NoNorm = true, true
		v.net.timm(nn.Architecture{Name: "vit_" + v.name + "_patch16_radio_v" + v.version,
			Summary:   "C-RADIOv" + v.version + ", " + v.name,
			Reference: "Ranzinger et al., AM-RADIO: agglomerative vision foundation model, 2024", Size: 512,
			Mean: clipMean, Std: clipStd})
	}
	for _, v := range []struct {
		name                 string
		width, heads, hidden int
	}{{"large", 1024, 8, 2816}, {"huge", 1536, 12, 4096}, {"1b", 2048, 16, 5632}, {"3b", 3072, 24, 8192}} {
		o := ViT{Patch: 14, Width: v.width, Heads: v.heads, Depth: 24, Hidden: v.hidden, Mean: true, NoQKVBias: true,
			NoLinearBias: true, SwiGLU: true, SeparateMLP: true, RMSNorm: true, EmbedNorm: true, Eps: 1e-5}
		for _, size := range []int{224, 336, 448} {
			o.timm(nn.Architecture{Name: fmt.Sprintf("aimv2_%s_patch14_%d", v.name, size), Summary: "AIMv2, " + v.name,
				Reference: "Fini et al., Multimodal autoregressive pre-training of large vision encoders, 2024", Size: size,
				Mean: clipMean, Std: clipStd})
		}
	}
}
