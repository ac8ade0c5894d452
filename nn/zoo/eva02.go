package zoo

import (
	"fmt"

	"onlinerna/nn"
)

// timm registers a net with timm's names. Images are resized bicubically, to the size of the crop unless the
// architecture says otherwise.
func (v Eva) timm(a nn.Architecture) {
	a.Family = "vit"
	a.Summary += ", with timm's names"
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
	const paper = "Fang et al., EVA-02: a visual representation for neon genesis, 2023"
	for _, size := range []struct {
		name  string
		large int // size of the images that published weights for classes take
		net   Eva
	}{
		{"tiny", 336, Eva{Width: 192, Heads: 3, Hidden: 512}},
		{"small", 336, Eva{Width: 384, Heads: 6, Hidden: 1024}},
		{"base", 448, Eva{Width: 768, Heads: 12, Hidden: 2048, SeparateQKV: true, ScaleMLP: true}},
		{"large", 448, Eva{Width: 1024, Heads: 16, Depth: 24, Hidden: 2730, SeparateQKV: true, ScaleMLP: true}},
	} {
		v := size.net
		v.Patch, v.Grid, v.SwiGLU = 14, 16, true
		for _, pixels := range []int{224, size.large} {
			a := nn.Architecture{
				Name:      fmt.Sprintf("eva02_%s_patch14_%d", size.name, pixels),
				Summary:   fmt.Sprintf("EVA-02, %s, patches of 14×14", size.name),
				Reference: paper,
				Size:      pixels,
				Mean:      clipMean,
				Std:       clipStd,
			}
			if pixels == 224 {
				a.Resize = 248
			}
			v.timm(a)
		}
	}
	base := Eva{Patch: 16, Width: 768, Heads: 12, Hidden: 2048}
	large := Eva{Patch: 14, Width: 1024, Heads: 16, Depth: 24, Hidden: 2730}
	for _, v := range []struct {
		name string
		net  Eva
		size int
	}{
		{"eva02_base_patch16_clip_224", base, 224}, {"eva02_large_patch14_clip_224", large, 224},
		{"eva02_large_patch14_clip_336", large, 336},
		{"eva02_enormous_patch14_clip_224", Eva{Patch: 14, Width: 1792, Heads: 16, Depth: 64, Hidden: 15360, PostNorm: true,
			NoRope: true}, 224},
		{"eva_giant_patch14_clip_224", Eva{Patch: 14, Width: 1408, Heads: 16, Depth: 40, Hidden: 6144, NoRope: true}, 224},
	} {
		if v.net.Token = true; !v.net.NoRope {
			v.net.Grid, v.net.SeparateQKV, v.net.SwiGLU, v.net.ScaleMLP, v.net.ScaleHeads = 16, true, true, true, true
		}
		a := nn.Architecture{Name: v.name, Summary: fmt.Sprintf("EVA-CLIP's image tower, patches of %d×%[1]d", v.net.Patch),
			Reference: "Sun et al., EVA-CLIP: improved training techniques for CLIP at scale, 2023", Size: v.size,
			Mean: clipMean, Std: clipStd}
		if v.size == 224 {
			a.Resize = 248
		}
		v.net.timm(a)
	}
	giant := Eva{Patch: 14, Width: 1408, Heads: 16, Depth: 40, Hidden: 6144, NoRope: true}
	for _, size := range []int{224, 336, 560} {
		a := nn.Architecture{Name: fmt.Sprintf("eva_giant_patch14_%d", size), Summary: "EVA, giant, patches of 14×14",
			Reference: "Fang et al., EVA: exploring the limits of masked visual representation learning at scale, 2023",
			Size:      size, Mean: clipMean, Std: clipStd}
		switch size {
		case 224:
			a.Resize = 248
		case 560:
			a.Mean, a.Std = nil, nil
		}
		giant.timm(a)
	}
}
