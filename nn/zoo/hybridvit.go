package zoo

import (
	"cmp"
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	tiny, small, base, large := vitTiny, vitSmall, vitBase, vitLarge
	tiny.Patch = 8
	bit := func(blocks ...int) (o ResNetV2) {
		copy(o.Blocks[:], blocks)
		o.GroupNorm, o.StdEps = 32, 1e-8
		return o
	}
	fifty := bit(3, 4, 6, 3)
	for _, v := range []struct {
		name  string
		net   HybridViT
		sizes []int
	}{
		{"tiny_r_s16_p8", HybridViT{ViT: tiny, Backbone: bit()}, []int{224, 384}},
		{"small_r26_s32", HybridViT{ViT: small, Backbone: bit(2, 2, 2, 2)}, []int{224, 384}},
		{"base_r26_s32", HybridViT{ViT: base, Backbone: bit(2, 2, 2, 2)}, []int{224}},
		{"base_r50_s16", HybridViT{ViT: base, Backbone: bit(3, 4, 9)}, []int{224, 384}},
		{"large_r50_s32", HybridViT{ViT: large, Backbone: fifty}, []int{224, 384}},
	} {
		for _, size := range v.sizes {
			a := nn.Architecture{
				Name:      fmt.Sprintf("vit_%s_%d", v.name, size),
				Summary:   "vision transformer, " + strings.Replace(v.name, "_", ", patches by a ResNet's layers ", 1),
				Reference: "Steiner et al., How to train your ViT? Data, augmentation, and regularization, 2022",
				Size:      size,
				Resize:    size,
				Mean:      half,
				Std:       half,
			}
			if size == 224 {
				a.Resize = cropped(size, .9)
			}
			v.net.register(a)
		}
	}
	base.NoEmbedClass = true
	HybridViT{ViT: base, Convs: true}.register(nn.Architecture{
		Name:      "vit_base_mci_224",
		Summary:   "MobileCLIP's image tower, base, patches by three convolutions",
		Reference: "Vasu et al., MobileCLIP: fast image-text models through multi-modal reinforced training, 2024",
		Size:      224,
		Resize:    cropped(224, .9),
		Mean:      zeros3,
		Std:       ones3,
	})
}

// HybridViT are the options of a vision transformer whose patches are of images that convolutions make. ViT.Patch is
// the extent of a patch in pixels of these; 0 means 1.
type HybridViT struct {
	ViT

	// Backbone makes the images: a residual net whose normalisations follow the convolutions, without stages of 0 blocks.
	// It needs Architecture.SamePadding. Basic, Deep, Fixed and AvgDown are false.
	Backbone ResNetV2

	Convs bool // three convolutions make the patches, 16×16 pixels each, in place of Backbone: timm's ConvStem
}

// backbone begins the names of layers that make the patches.
const backbone = "patch_embed.backbone."

// register registers a net.
func (o HybridViT) register(a nn.Architecture) {
	v := o.vit()
	a = v.of(a)
	a.Family, a.MinSize, a.Interpolation = "vit", v.Patch, bicubic
	a.Summary += ", with timm's names"
	a.Init, a.Build, a.Block, a.SamePadding = o.Initial, o.Build, `^(patch_embed|blocks\.\d+)\.`, !o.Convs
	imageNet(a)
}

// vit are the options of the transformer, for patches of the net's images.
func (o HybridViT) vit() ViT {
	v := o.ViT
	v.Patch, v.embed = 4*cmp.Or(v.Patch, 1), o.patches
	if o.Convs {
		v.Patch = 16
	}
	for _, n := range o.Backbone.Blocks[1:] {
		if n > 0 {
			v.Patch *= 2
		}
	}
	return v
}

// Build adds the layers to b.
func (o HybridViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, r := layer{builder}, o.Backbone
	own := !o.Torchvision && !o.Distilled
	ok := b.options("HybridViT", o).that(own, "Torchvision", "false, as Distilled").
		that(!o.Convs || r.Blocks == [4]int{}, "Convs", "false with Backbone.Blocks").
		that(!o.Convs || o.Width%4 == 0, "Width", "divisible by 4 with Convs").
		that(!o.Convs || o.Patch == 0, "Patch", "0 with Convs").least(0, "Patch").ok()
	ok = ok && b.options("HybridViT.Backbone", r).least(0, "Blocks", "Channels", "Width", "Stem", "GroupNorm", "StdEps").
		that(!r.Basic, "Basic", "false").that(!r.Deep, "Deep", "false").that(!r.Fixed, "Fixed", "false").
		that(!r.AvgDown, "AvgDown", "false").ok()
	if !ok {
		return nil
	}
	return o.vit().Build(builder, x)
}

// patches makes patches of images x.
func (o HybridViT) patches(b layer, x *G.Node) *G.Node {
	if o.Convs {
		for i, stride := range []int{4, 2} {
			c := nn.Conv{Filters: o.Width / 4, Kernel: stride, Stride: stride}
			name := fmt.Sprint(backbone, i)
			x = b.GELU(name+".act", b.BatchNorm(name+".bn", b.Conv(name+".conv", x, c), 1))
		}
		return b.Conv(backbone+"2.conv", x, nn.Conv{Filters: o.Width, Kernel: 2, Stride: 2, Bias: true})
	}
	r, stem, patch := o.Backbone, backbone, cmp.Or(o.Patch, 1)
	r.hybrid = true
	if r.Blocks != [4]int{} { // else timm has the stem alone
		stem += "stem."
	}
	x = r.stages(b, backbone, r.stem(b, stem, x))
	return b.Conv(timmNames.patches, x, nn.Conv{Filters: o.Width, Kernel: patch, Stride: patch, Bias: true})
}

// Initial is the initial distribution of a parameter, for Architecture.Init. Branches of the backbone start as 0.
func (o HybridViT) Initial(p nn.Param) nn.Init {
	switch {
	case !strings.HasPrefix(p.Name, backbone):
		return o.ViT.initial(p)
	case o.Backbone.Blocks == [4]int{}:
		return torchInit(p)
	case strings.HasSuffix(p.Name, ".norm3.weight"):
		return nn.Init{}
	}
	return p.Init
}
